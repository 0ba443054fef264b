"""Page of a proof: what the model does for this arm, before and after, and what its torque is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.bench import Trajectory
from jointbench.drawing import (
    BINS,
    PALETTE,
    draw_torques,
    mark_horizontal,
    mark_time,
    mark_vertical,
    name_vertical,
    stack,
    thin,
)
from jointbench.identification import Model
from jointbench.identification.feedforward import FRICTION_WIDTH, torque_parts
from jointbench.identification.proof import Proof
from jointbench.model.model_columns import torque_unit
from jointbench.results.content import NOT_A_NUMBER, Fact, Panel, fixed, percent
from jointbench.results.joint_panels import panel_of, panel_style
from jointbench.results.pages import render

_MILLI = 1e3
_ROW = 26.0  # height of a joint's row in the picture of shares, in SVG units


@dataclass(frozen=True)
class ProofJoint:
    """One judged joint in the table: errors in 1e-3 rad (mm), ratios and shares as finished numbers."""

    name: str
    without: str
    fed: str
    ratio: str
    link_ratio: str
    share: str
    predicted: str
    limit: str
    passes: bool


@dataclass(frozen=True)
class ProofControl:
    """One feed-forward that must fail, and what became of it."""

    name: str
    outcome: str
    fails: bool


@dataclass(frozen=True)
class ProofContent:
    """Everything a proof's page shows, in the order it shows it.

    Attributes:
        robot: its name.
        answer: proven or refused.
        mark: what the answer looks like: yes or no.
        sentence: the answer in one sentence.
        warnings: what speaks against the model.
        facts: numbers worth seeing first.
        joints: the table, one row a judged joint.
        shares: the picture of shares, their predictions and limits; one panel.
        tracking_note: what the tracking panels show.
        tracking: panels of the error without and with feed-forward.
        parts: panels of the torque's parts and of what feedback supplied.
        has_springs: whether any part is of springs.
        controls: what must fail; none where nothing was played.
        heavier: a sentence on the model with a heavier link; "" where it was not played.
        commands: what to type to get this page again.
    """

    robot: str
    answer: str
    mark: str
    sentence: str
    warnings: tuple[str, ...]
    facts: tuple[Fact, ...]
    joints: tuple[ProofJoint, ...]
    shares: tuple[Panel, ...]
    tracking_note: str
    tracking: tuple[Panel, ...]
    parts: tuple[Panel, ...]
    has_springs: bool
    controls: tuple[ProofControl, ...]
    heavier: str
    commands: tuple[str, ...]


def proof_html(
    proof: Proof,
    model: Model,
    motion: Trajectory,
    friction_width: float = FRICTION_WIDTH,
    commands: tuple[str, ...] = (),
) -> str:
    """Return the page as HTML text that refers to nothing outside itself."""
    return render("proof.html", proof_content(proof, model, motion, friction_width, commands))


def proof_content(
    proof: Proof,
    model: Model,
    motion: Trajectory,
    friction_width: float = FRICTION_WIDTH,
    commands: tuple[str, ...] = (),
) -> ProofContent:
    """Return everything the page says, in words, finished numbers and pictures."""
    share = float(proof.share[proof.modelled].max())
    links = proof.pooled_link_ratio
    failing = f"{sum(proof.fails(control) for control in proof.controls)} of {len(proof.controls)}"
    return ProofContent(
        robot=model.robot.name,
        answer="proven" if proof.is_proven else "refused",
        mark="yes" if proof.is_proven else "no",
        sentence=(
            f"On {motion.period:g} s of motion that it was not fitted to, the model supplies the motors' torque: of "
            f"no joint's torque below 10 Hz does feedback still supply more than {percent(share)}. The tracking error "
            f"is divided by {proof.pooled_ratio:.3g}."
        ),
        warnings=proof.against,
        facts=(
            Fact(percent(share), "largest share of torque from feedback"),
            Fact(f"÷ {proof.pooled_ratio:.3g}", "tracking error of the motors, all joints"),
            Fact(f"÷ {proof.worst_ratio:.3g}", "the same, worst joint"),
            *(() if links is None else (Fact(f"÷ {links:.3g}", "tracking error of the links, all joints"),)),
            Fact(f"{proof.distance:.2f}", "distance from the nearest fitted motion [its deviations]"),
            *((Fact(failing, "controls fail, as they must"),) if proof.controls else ()),
        ),
        joints=_rows(proof),
        shares=_share_panel(proof),
        tracking_note=_tracking_note(proof),
        tracking=_tracking_panels(proof, model),
        parts=_part_panels(proof, model, motion, friction_width),
        has_springs=bool(model.robot.compensations),
        controls=tuple(_control(proof, k) for k in range(len(proof.controls))),
        heavier=_heavier(proof),
        commands=commands,
    )


def _judged(proof: Proof) -> list[int]:
    return np.flatnonzero(proof.modelled).tolist()


def _rows(proof: Proof) -> tuple[ProofJoint, ...]:
    link = proof.link_ratio
    without, fed = (
        _MILLI * np.sqrt(np.mean([played.rms**2 for played in runs], axis=0)) for runs in (proof.without, proof.fed)
    )
    return tuple(
        ProofJoint(
            name=proof.joint_names[j],
            without=fixed(float(without[j]), 3),
            fed=fixed(float(fed[j]), 3),
            ratio=fixed(float(proof.ratio[j]), 1),
            link_ratio=NOT_A_NUMBER if link is None else fixed(float(link[j]), 1),
            share=fixed(100.0 * float(proof.share[j]), 1),
            predicted=(
                f"{100.0 * proof.predicted.share[j]:.1f} "
                f"({100.0 * proof.predicted.low[j]:.1f} … {100.0 * proof.predicted.high[j]:.1f})"
            ),
            limit=fixed(100.0 * float(proof.limit[j]), 1),
            passes=bool(proof.share[j] <= proof.limit[j] and proof.is_as_predicted[j]),
        )
        for j in _judged(proof)
    )


def _share_panel(proof: Proof) -> tuple[Panel, ...]:
    """A row for each judged joint: the share of feedback, its predicted interval, and what is allowed."""
    joints = _judged(proof)
    names = [proof.joint_names[j] for j in joints]
    low, high, share, limit = (
        100.0 * values[joints] for values in (proof.predicted.low, proof.predicted.high, proof.share, proof.limit)
    )
    rows, passes = np.arange(len(joints)), share <= limit
    with panel_style():
        figure, (axes,) = stack([_ROW * len(joints)], left=12.0 + 8.0 * max(map(len, names)))
        axes.hlines(rows, low, high, color=PALETTE.measured, linewidth=6.0, alpha=0.35)
        axes.vlines(limit, rows - 0.32, rows + 0.32, color=PALETTE.limit, linewidth=1.4, linestyles=(0, (3, 2)))
        axes.plot(share[passes], rows[passes], "o", color=PALETTE.measured, markersize=6.0)
        axes.plot(share[~passes], rows[~passes], "o", color=PALETTE.predicted, markersize=6.0)
        axes.set_xlim(0.0, 1.08 * float(max(high.max(), limit.max(), share.max())))
        axes.set_ylim(len(joints) - 0.5, -0.5)
        axes.set_yticks(rows, names)
        axes.grid(visible=False, axis="y")
        mark_horizontal(axes, "%")
        within = int(np.sum(proof.is_as_predicted[joints]))
        note = f"{within} of {len(joints)} within the interval"
        return (panel_of(figure, "shares", "all joints", note, "share of torque below 10 Hz from feedback"),)


def _tracking_note(proof: Proof) -> str:
    note = (
        "Reference less position at the motor encoders, the same motion without and with the model's feed-forward. "
        "The servo's gains are the same."
    )
    leading = [proof.joint_names[j] for j in np.flatnonzero(proof.leads).tolist()]
    if not leading:
        return note
    return (
        f"{note} With feed-forward the motors' reference leads by the wind-up of the gears of {', '.join(leading)}, so "
        "that the links follow: their errors have the ratio of links in the table."
    )


def _tracking_panels(proof: Proof, model: Model) -> tuple[Panel, ...]:
    """Tracking error of each judged joint without (wide, pale) and with feed-forward (thin)."""
    without, fed = proof.without[0], proof.fed[0]
    panels: list[Panel] = []
    with panel_style():
        for joint in _judged(proof):
            turns = model.robot.independent_joints[joint].kind == "revolute"
            figure, (axes,) = stack([120.0])
            axes.axhline(0.0, color=PALETTE.rule, linewidth=0.8)
            at_same_time = np.interp(without.time, fed.time, fed.error[:, joint])
            draw_torques(axes, without.time, _MILLI * without.error[:, joint], _MILLI * at_same_time, BINS)
            name_vertical(axes, "mrad" if turns else "mm")
            note = f"divided by {proof.ratio[joint]:.3g}"
            panels.append(
                panel_of(figure, f"tracking-{joint}", proof.joint_names[joint], note, "tracking error without and with")
            )
    return tuple(panels)


def _part_panels(proof: Proof, model: Model, motion: Trajectory, friction_width: float) -> tuple[Panel, ...]:
    """Rigid body, springs, friction, and what feedback supplied beside them, of each judged joint over the motion."""
    fed = proof.fed[0]
    parts = torque_parts(model, motion, np.minimum(fed.time, motion.period), friction_width=friction_width)
    drawn = (*parts, fed.torque - fed.fed_forward)
    colours = (PALETTE.measured, PALETTE.limit, PALETTE.predicted, PALETTE.muted)
    panels: list[Panel] = []
    with panel_style():
        for joint in _judged(proof):
            unit = torque_unit(model.robot, joint)
            figure, (axes,) = stack([150.0])
            for values, colour in zip(drawn, colours, strict=True):
                if values[:, joint].any():
                    axes.plot(*thin(fed.time, values[:, joint], BINS), color=colour, linewidth=1.2)
            axes.margins(y=0.08)
            mark_vertical(axes, most=5)
            mark_time(axes, fed.time)
            name_vertical(axes, unit)
            panels.append(
                panel_of(figure, f"parts-{joint}", proof.joint_names[joint], _sizes(drawn, joint, unit), "torque")
            )
    return tuple(panels)


def _sizes(parts: tuple[Array, ...], joint: int, unit: str) -> str:
    """Root mean square of each part that there is, such as "bodies 12, friction 3.1, residual 0.11 N·m rms"."""
    rigid_body, springs, friction, residual = (float(np.sqrt(np.mean(part[:, joint] ** 2))) for part in parts)
    middle = f", springs {springs:.2g}" if springs else ""
    return f"bodies {rigid_body:.2g}{middle}, friction {friction:.2g}, residual {residual:.2g} {unit} rms"


def _control(proof: Proof, k: int) -> ProofControl:
    control = proof.controls[k]
    fails = proof.fails(control)
    if control.tracking is None:
        return ProofControl(control.name, f"stopped: {control.tripped}", fails)
    over = np.where(proof.modelled, control.tracking.share - proof.limit, -np.inf)
    joint = int(over.argmax())
    share, allowed = (percent(float(values[joint])) for values in (control.tracking.share, proof.limit))
    return ProofControl(control.name, f"{proof.joint_names[joint]}: {share} by feedback, allowed {allowed}", fails)


def _heavier(proof: Proof) -> str:
    heavier = proof.heavier
    if heavier is None:
        return ""
    joint, played = heavier.joint, heavier.tracking
    if played is None:
        return f"With {heavier.link} 20 % heavier the boards stopped the motion."
    return (
        f"With {heavier.link} 20 % heavier feedback supplies {percent(float(played.share[joint]))} of "
        f"{proof.joint_names[joint]}'s torque; with the model as it is, {percent(float(proof.share[joint]))}."
    )
