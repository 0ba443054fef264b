"""The panels of a report on two models: their torques over one motion, and how far their parameters are apart."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.results.comparison_evidence import ComparisonEvidence
from jointbench.results.content import Panel
from jointbench.results.joint_panels import panel_of, panel_style
from jointbench.results.panels import stack, torque_panel
from jointbench.results.theme import PALETTE
from jointbench.results.units import torque_unit

_ROW = 20.0
"""Height of a parameter's row [SVG units]."""
_NAMES = 112.0
"""Room for their names, left of the axis [SVG units]."""
_LINEAR = 3.0
"""σ up to which the axis is linear, and beyond which it is logarithmic: differences of 2 σ and of 200 both show."""
_MARKS = (0.0, 2.0, 10.0, 100.0, 1000.0)


def trace_panels(evidence: ComparisonEvidence) -> tuple[Panel, ...]:
    """Return both models' torque of each joint over the motion."""
    robot, torque = evidence.models[0].robot, evidence.comparison.torques["all"]
    panels: list[Panel] = []
    if evidence.time.size:
        with panel_style():
            for joint, name in enumerate(robot.joint_names):
                unit = torque_unit(robot, joint)
                figure = torque_panel(evidence.time, evidence.torques[0, :, joint], evidence.torques[1, :, joint], unit)
                note = f"apart by {torque.rms[joint]:.2g} {unit} rms"
                panels.append(panel_of(figure, f"trace-{joint}", name, note, "torque of A and of B"))
    return tuple(panels)


def difference_panels(evidence: ComparisonEvidence) -> tuple[Panel, ...]:
    """Return the differences in σ of the parameters that both models tell, by the joint or coupling they belong to."""
    found = evidence.comparison
    told = [k for k in range(len(found.names)) if np.isfinite(found.sigma[k])]
    owners = dict.fromkeys(found.names[k].rpartition(".")[0] for k in told)
    reach = max([4.0, *(1.3 * abs(float(found.in_sigma[k])) for k in told)])
    panels: list[Panel] = []
    with panel_style():
        for number, owner in enumerate(owners):
            mine = [k for k in told if found.names[k].rpartition(".")[0] == owner]
            differ = np.array([found.names[k] in found.different for k in mine], dtype=np.bool_)
            names = tuple(found.names[k].rpartition(".")[2] for k in mine)
            figure = difference_panel(names, np.array([found.in_sigma[k] for k in mine]), differ, reach)
            count = int(differ.sum())
            note = f"{count} of {len(mine)} differ" if count else f"none of {len(mine)} differs"
            panels.append(panel_of(figure, f"difference-{number}", owner, note, "B less A in σ of the difference"))
    return tuple(panels)


def difference_panel(names: tuple[str, ...], in_sigma: Array, differ: NDArray[np.bool_], reach: float) -> Figure:
    """Draw a row for each parameter: B less A in σ, between lines at two σ; filled where it differs for sure.

    Args:
        names: of the parameters, from the top down.
        in_sigma: of the same, shape (n,).
        differ: which differ for sure, shape (n,).
        reach: where the axis ends [σ].
    """
    figure, (axes,) = stack([_ROW * len(names)], left=_NAMES)
    rows = np.arange(len(names))
    axes.set_xscale("symlog", linthresh=_LINEAR, linscale=1.0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(0.0, color=PALETTE.rule, linewidth=0.8)
    for bound in (-2.0, 2.0):
        axes.axvline(bound, color=PALETTE.limit, linewidth=1.0, dashes=(4, 3))
    axes.hlines(rows, 0.0, in_sigma, color=PALETTE.measured, linewidth=1.2, alpha=0.6)
    axes.plot(in_sigma[~differ], rows[~differ], "o", color=PALETTE.measured, markersize=5.0, markerfacecolor="none")
    axes.plot(in_sigma[differ], rows[differ], "o", color=PALETTE.predicted, markersize=6.0)
    axes.set_yticks(rows, list(names))
    axes.grid(visible=False)
    marks = [mark for mark in _MARKS if mark <= reach]
    marks = [*(-mark for mark in reversed(marks) if mark), *marks]
    labels = [f"{mark:g}".replace("-", "−") for mark in marks]
    axes.set_xticks(marks, [*labels[:-1], f"{labels[-1]} σ"], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    return figure
