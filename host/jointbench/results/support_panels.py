"""Two panels of a plan on one foot: the predicted zero-moment point on the sole, and what the foot will tell."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from jointbench.excitation import sole_half_lengths
from jointbench.results.support_evidence import SupportEvidence
from jointbench.results.theme import PALETTE

_MM = 1e3


def draw_sole(axes: Axes, evidence: SupportEvidence) -> None:
    """The sole from above, forward up and left to the left, with the margin and the predicted zero-moment point."""
    sole, points = evidence.balance.foot, _MM * evidence.balance.points
    forward, left = _MM * sole.points.T
    axes.fill(left, forward, facecolor=PALETTE.rule, alpha=0.18, linewidth=0)
    axes.fill(left, forward, fill=False, edgecolor=PALETTE.rule, linewidth=1.0)
    axes.plot(left, forward, "o", color=PALETTE.muted, markersize=4)
    room = _MM * (sole_half_lengths(sole) - evidence.support.margin)
    inside = Rectangle((-room[1], -room[0]), 2.0 * room[1], 2.0 * room[0], fill=False, edgecolor=PALETTE.limit)
    inside.set_linestyle((0, (4, 3)))
    axes.add_patch(inside)
    axes.plot(points[:, 1], points[:, 0], color=PALETTE.measured, linewidth=0.5)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_ylim(forward.min() - 8.0, forward.max() + 8.0)
    axes.invert_xaxis()
    axes.grid(visible=False)
    axes.tick_params(labelsize=8)
    axes.set_xticks([left.max(), 0.0, left.min()])
    axes.set_yticks([forward.min(), 0.0, forward.max()])
    axes.set_xlabel("left, mm of the sole's middle", color=PALETTE.muted, fontsize=9, labelpad=2)


def draw_foreseen(axes: Axes, evidence: SupportEvidence) -> None:
    """A bar for each parameter: the least σ of it, over its value."""
    places, shares = np.arange(len(evidence.names)), 100.0 * evidence.relative_sigma
    axes.barh(places, shares, color=PALETTE.predicted, alpha=0.75, height=0.22)
    axes.set_xscale("log")
    axes.set_xlim(0.3 * shares.min(), 3.0 * shares.max())
    axes.set_ylim(len(places) - 0.6, -0.8)
    for place, name, value, sigma in zip(places, evidence.names, evidence.values, evidence.sigma, strict=True):
        axes.annotate(
            f"{name} {_sized(name, value)} ± {_sized(name, sigma)}", (0.0, float(place)), xytext=(6, 4),
            xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8, va="bottom",
        )  # fmt: skip
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("least σ, % of the parameter", color=PALETTE.muted, fontsize=9, labelpad=2)


def _sized(name: str, value: float) -> str:
    """A length in millimetres, a mass in kilograms."""
    return f"{_MM * value:.3g} mm" if name.startswith("lc") else f"{value:.3g} kg"
