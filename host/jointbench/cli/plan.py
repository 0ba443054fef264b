"""Plan an excitation: the feasible motion that tells a robot's parameters apart best, checked before anything moves."""

from __future__ import annotations

import argparse
import math
import signal
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.plan_options import (
    ON_ONE_FOOT,
    PLAN,
    add_arguments,
    check_options,
    motion_settings,
    noise_of,
    plan_words,
    prior_of,
    search_settings,
    stance_prior_of,
    support_settings,
    workspace_of,
)
from jointbench.errors import ExcitationError, MissingExtra
from jointbench.excitation import (
    DEFAULT_STARTS,
    ZMP_TOLERANCE,
    Excitation,
    Workspace,
    check_samples,
    make_basis,
    plan_excitation,
    plan_single_support,
    random_excitation,
    support_workspace,
    taught_excitation,
)
from jointbench.model import Robot, base_parameters, load_robot, robot_digests, with_reduced_limits
from jointbench.recording import open_run
from jointbench.results import PlanEvidence, SupportEvidence, Trace, check_picture, percent, plain, plan_picture

VERB = "plan"
EXAMPLE = "jointbench plan cobot6 --out excitation.json"
WRITES = ("out", "picture")

__all__ = ["EXAMPLE", "VERB", "WRITES", "add_arguments", "run"]

_INSTANTS = 601
_BAR = 20
_FEW_JOINTS = 8

_BLANK = 0x2800
_DOT_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Which bit of a character lights the dot in each of its four rows and two columns (Unicode, Braille Patterns)."""

ALPHABET = chr(_BLANK + 0xFF) + "┤│└─−°"
"""What a stream must be able to encode."""

_LEAST_WIDTH = 20

_NONE = "–"
_MOST_DISTANCES = 6
_MOST_WEAK = 8
_NOTHING = 1e-6
"""Share of a limit below which a peak is rounding."""

_WIDTH = 80
"""Of sentences, in characters."""


class Interruption:
    """Notices Ctrl-C within a `with` block, and lets it do what it does.

    Outside the main thread, and where the program has a handler of its own, it notices nothing.

    Attributes:
        happened: whether it was pressed.
    """

    def __init__(self) -> None:
        """Not pressed yet."""
        self.happened: bool = False
        self._noticing = False

    def __enter__(self) -> Interruption:
        """Notice from now on."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._notice)
                self._noticing = True
            except ValueError:  # not the main thread: signals do not come here anyway
                pass
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Notice no longer."""
        if self._noticing:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        signal.default_int_handler(number, frame)


def run(options: argparse.Namespace, console: Console) -> Result:
    """Plans, writes the plan as JSON, says and draws what it does; exit code 1 where it is not proved feasible."""
    check_options(options)
    out = Path(options.out or PLAN)
    picture = Path(options.picture or out.with_suffix(".png"))
    if options.picture:
        check_picture(picture)
    if picture == out:
        raise ExcitationError(f"{picture} cannot be both the plan (--out) and its picture; name another")
    whole = load_robot(options.robot)
    robot = with_reduced_limits(whole, options.speed, options.range)
    for warning in robot.warnings:
        console.say(f"warning: {warning}")
    workspace, noise, prior = workspace_of(options), noise_of(options, robot), prior_of(options, robot)
    try:
        with Interruption() as interruption:
            if options.family == ON_ONE_FOOT:
                plan = plan_on_one_foot(options, robot, stance_prior_of(options, robot), console)
                workspace = support_workspace(robot, plan.support.foot) if plan.support else workspace
            elif options.taught:
                plan = plan_taught(options, robot, workspace, console)
                robot = replace(robot, home=tuple(plan.home.tolist()))
            else:
                plan = plan_within(options, robot, workspace, noise, prior, console)
    except KeyboardInterrupt:
        console.say("stopped before a first motion was found: no plan is written")
        raise
    plan = replace(plan, digests=robot_digests(whole))
    console.keep_earlier(out, options.out)
    plan.save(out)
    if interruption.happened:
        console.say("stopped by Ctrl-C: this is the best so far")
    evidence = PlanEvidence.of(robot, plan, workspace=workspace, noise=noise, prior=prior, samples=options.samples)
    console.say("\n" + plan_text(evidence))
    draw_positions(console, evidence)
    console.say(f"plan: {out}")
    console.keep_earlier(picture, options.picture or options.force)
    drawn = draw_picture(console, picture, evidence)
    fields = plan_fields(evidence) | {
        "plan": out, "picture": drawn, "stopped_by_ctrl_c": interruption.happened,
    }  # fmt: skip
    return Result("plan", options.seed, plan_checks(evidence), fields)


def plan_within(
    options: argparse.Namespace,
    robot: Robot,
    workspace: Workspace,
    noise: Sequence[float] | None,
    prior: Mapping[str, float] | None,
    console: Console,
) -> Excitation:
    """The best motion of a family of series or moves, or a random one, after saying what is planned."""
    check_samples(options.samples, make_basis(**motion_settings(options)), robot, base_parameters(robot).rank)
    for line in plan_words(options, robot, workspace):
        console.say(line)
    motion: dict[str, Any] = motion_settings(options) | {
        "workspace": workspace, "prior": prior, "seed": options.seed,
    }  # fmt: skip
    if options.random:
        return random_excitation(robot, **motion)
    progress = progress_line(console, options)
    search: dict[str, Any] = search_settings(options) | {"noise": noise, "progress": progress}
    return plan_excitation(robot, **motion, **search)


def plan_taught(options: argparse.Namespace, robot: Robot, workspace: Workspace, console: Console) -> Excitation:
    """The motion that a hand has led the arm, after saying what is planned."""
    for line in plan_words(options, robot, workspace):
        console.say(line)
    led = open_run(options.taught).samples
    if led.joint_names != robot.joint_names:
        raise ExcitationError(
            f"run {options.taught} is of joints {', '.join(led.joint_names)}, {robot.name} has "
            f"{', '.join(robot.joint_names)}; give the run's robot"
        )
    return taught_excitation(robot, led.motor_position[led.play_tick >= 0], led.sample_period, workspace=workspace)


def plan_on_one_foot(
    options: argparse.Namespace, robot: Robot, parameters: Array | None, console: Console
) -> Excitation:
    """A random motion on one foot, after saying what is planned; balanced with these standard parameters, if any."""
    masses = "its file's inertias predict" if parameters is None else f"the masses of {options.prior} predict"
    console.say(f"planning a random motion on one foot for {robot.name}, in balance as {masses} it")
    return plan_single_support(robot, seed=options.seed, parameters=parameters, **support_settings(options))


def progress_line(console: Console, options: argparse.Namespace) -> Callable[[int, int, float], None]:
    """A bar of the searches that are done, or of the time; which was told last; and the best value so far."""
    began = time.monotonic()
    words = (options.objective or "condition_number").replace("_", " ")
    starts = options.starts or DEFAULT_STARTS

    def show(start: int, step: int, best: float) -> None:
        passed = time.monotonic() - began
        done = max(start / starts, passed / (options.time_limit or math.inf))
        bar = "#" * round(_BAR * min(done, 1.0))
        value = f"{best:.5g}" if math.isfinite(best) else "none yet"
        console.progress(
            f"[{bar:{_BAR}}] {passed:.0f} s, start {start + 1} of {starts}, step {step}: best {words} {value}",
            done,
        )

    return show


def draw_positions(console: Console, evidence: PlanEvidence) -> None:
    """Each joint's position between its limits over the motion, where the stream has the characters for it."""
    if not console.can_say(ALPHABET):
        return
    position = evidence.traces[0]
    chosen = np.linspace(0, len(evidence.time) - 1, _INSTANTS).astype(int)
    curves = [
        Curve(name, position.values[chosen, j], low, high, position.units[j])
        for j, (name, (low, high)) in enumerate(zip(evidence.robot.joint_names, position.limits.tolist(), strict=True))
    ]
    height = 3 if len(curves) <= _FEW_JOINTS else 2
    console.say("\npositions between their limits:")
    console.say(braille_plot(curves, evidence.excitation.duration, height=height))


def draw_picture(console: Console, path: Path, evidence: PlanEvidence) -> Path | None:
    """The picture as a file; None where nothing can draw it."""
    console.progress("drawing")
    try:
        plan_picture(path, evidence)
    except MissingExtra as error:
        console.say(f"no picture: {error}")
        return None
    console.say(f"picture: {path}")
    return path


def plan_checks(evidence: PlanEvidence) -> tuple[Check, ...]:
    """Every limit is kept at every time, and every joint stays within the robot's own limits."""
    checks = (
        Check("limits_broken", len(evidence.certificate.violations), "<=", 0, "limits"),
        Check("smallest_margin_between_samples", evidence.smallest_margin, ">=", 0.0, "of the usable limit"),
        Check("smallest_joint_margin", evidence.excitation.tightest.smallest, ">=", 0.0, "of the joint's limit"),
    )
    if evidence.support is None:
        return checks
    support = evidence.support.support
    return (*checks, Check("zmp_from_edge_of_sole", support.distance, ">=", min(support.margin) - ZMP_TOLERANCE, "m"))


def plan_fields(evidence: PlanEvidence) -> dict[str, object]:
    """Return what a plan tells in JSON."""
    plan, certificate = evidence.excitation, evidence.certificate
    return {
        "family": plan.family,
        "motion": plan.basis.description,
        "duration_s": plan.duration,
        "objective": plan.objective,
        "objective_value": plan.objective_value,
        "condition_number": plan.condition_number,
        "scaled_condition_number": evidence.scaled_condition_number,
        "joints": [asdict(margins) for margins in plan.margins],
        "distances_m": dict(plan.distances),
        "certificate": {
            "feasible": certificate.feasible,
            "worst": certificate.worst,
            "samples": certificate.samples,
            "margins": certificate.margins,
            "violations": certificate.violations,
        },
        "parameters": evidence.weak.to_dict(),
        "support": plan.support and plan.support.to_dict() | {"sigma": foreseen(evidence)},
    }


def foreseen(evidence: PlanEvidence) -> dict[str, float]:
    """Least σ of each parameter that the foot's forces tell [m, kg], of a motion on one foot."""
    support = evidence.support
    return {} if support is None else dict(zip(support.names, support.sigma.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve, with its name and the limits that are the edges of its picture.

    Attributes:
        name: stands to its left.
        values: evenly spaced in time, shape (n,).
        low, high: limits.
        unit: of both.
    """

    name: str
    values: Array
    low: float
    high: float
    unit: str


def braille_plot(curves: Sequence[Curve], duration: float, width: int = 80, height: int = 3) -> str:
    """Draw curves above each other over a common time axis.

    Args:
        curves: what to draw.
        duration: what their values span [s].
        width: of the whole picture, in characters.
        height: of each curve, in lines.
    """
    labels = [(f"{plain(curve.high)}{curve.unit}", f"{plain(curve.low)}{curve.unit}") for curve in curves]
    names = max(len(curve.name) for curve in curves)
    numbers = max(len(label) for pair in labels for label in pair)
    indent = 2 + names + 2 + numbers + 2
    across = max(_LEAST_WIDTH, width - indent)
    lines: list[str] = []
    for curve, (top, bottom) in zip(curves, labels, strict=True):
        for row, dots in enumerate(braille(curve.values, curve.low, curve.high, across, height)):
            edge = top if row == 0 else bottom if row == height - 1 else ""
            name = curve.name if row == 0 else ""
            lines.append(f"  {name:<{names}}  {edge:>{numbers}} {'┤' if edge else '│'}{dots}".rstrip())
    end = f" {duration:g} s"
    lines.append(" " * (indent - 1) + "└" + "─" * (across - len(end)) + end)
    return "\n".join(lines)


def braille(values: Array, low: float, high: float, width: int, height: int) -> list[str]:
    """Draw one curve in lines of dots, the first line's top at `high` and the last one's bottom at `low`.

    Each column of dots is lit from the lowest to the highest value within it, and on to the column before, so that the
    line is whole; what is beyond an edge is drawn at it.
    """
    rows, columns = 4 * height, 2 * width
    level = np.clip((high - values) / (high - low) * rows, 0.0, rows - 1.0).astype(int)
    dots = np.zeros((rows, columns), dtype=np.bool_)
    ends = np.linspace(0, len(level), columns + 1)
    for column in range(columns):
        first, last = int(ends[column]), max(int(ends[column]) + 1, int(ends[column + 1]))
        part = level[max(first - 1, 0) : last]
        dots[part.min() : part.max() + 1, column] = True
    cells = dots.reshape(height, 4, width, 2)
    codes = _BLANK + np.einsum("hrwc,rc->hw", cells, _DOT_BITS)
    # A blank is a space: some fonts draw the pattern without dots as empty rings.
    return ["".join(map(chr, line)).replace(chr(_BLANK), " ") for line in codes.tolist()]


def plan_text(evidence: PlanEvidence) -> str:
    """All of it, in parts with a blank line between."""
    return "\n\n".join("\n".join(part) for part in _parts(evidence))


def _parts(evidence: PlanEvidence) -> Iterator[list[str]]:
    yield [_position_table(evidence)]
    yield [_peaks_table(evidence)]
    if evidence.excitation.distances:
        yield [_distances_table(evidence.excitation.distances)]
    if evidence.support is None:
        yield [*_quality(evidence), *_weak(evidence)]
    else:
        yield [_foreseen_table(evidence.support), _wrapped(evidence.support.told)]
        yield [_wrapped(evidence.support.answer)]
    yield [_wrapped(evidence.answer), *([evidence.excitation.not_checked] if evidence.excitation.not_checked else [])]


def _position_table(evidence: PlanEvidence) -> str:
    """Return where each joint goes from and to, how much of range and speeds it visits, how often it turns round."""
    position = evidence.traces[0]
    rows = [
        (
            margins.joint,
            _range(position.lowest[j], position.highest[j]),
            _range(*position.limits[j]),
            _percent(margins.position_coverage),
            _percent(margins.velocity_coverage),
            _NONE if margins.reversals is None else str(margins.reversals),
        )
        for j, margins in enumerate(evidence.excitation.margins)
    ]
    heads = ("joint", f"position [{position.unit}]", "allowed", "range used", "speeds used", "reversals")
    return table(heads, rows)


def _peaks_table(evidence: PlanEvidence) -> str:
    """Largest magnitudes against their limits."""
    traces = evidence.traces[1:]
    rows = [[name, *(_peak(trace, j) for trace in traces)] for j, name in enumerate(evidence.robot.joint_names)]
    return table(["joint", *(f"{trace.name} [{trace.unit}]" for trace in traces)], rows)


def _distances_table(distances: Mapping[str, float]) -> str:
    """The narrowest places first."""
    nearest = sorted(distances.items(), key=lambda item: item[1])
    rows = [(name, f"{1e3 * room:.1f}") for name, room in nearest[:_MOST_DISTANCES]]
    if len(nearest) > _MOST_DISTANCES:
        name, room = nearest[_MOST_DISTANCES]
        rows.append((f"{len(nearest) - _MOST_DISTANCES} more, the nearest of them {name}", f"{1e3 * room:.1f}"))
    return table(("in space", "room left [mm]"), rows)


def _foreseen_table(support: SupportEvidence) -> str:
    """Return what the file says of each parameter, and how well the foot's forces will tell it."""
    rows = [
        (name, f"{value:.4g}", f"{sigma:.2g}", f"{share:.1%}")
        for name, value, sigma, share in zip(
            support.names, support.values, support.sigma, support.relative_sigma, strict=True
        )
    ]
    return table(("parameter [m, kg]", "in the file", "least σ", "of it"), rows)


def _quality(evidence: PlanEvidence) -> Iterator[str]:
    plan = evidence.excitation
    if plan.objective_value not in (None, plan.condition_number):
        yield f"objective {plan.objective}: {plan.objective_value:.4g}"
    yield (
        f"condition number of the base regressor: {plan.condition_number:.1f}; "
        f"{evidence.scaled_condition_number:.1f} with all columns made one long"
    )


def _weak(evidence: PlanEvidence) -> Iterator[str]:
    head, *sentences = evidence.weak.words
    yield head
    for sentence in sentences[:_MOST_WEAK]:
        yield _wrapped(sentence, "  ")
    if len(sentences) > _MOST_WEAK:
        yield _wrapped(f"and {', '.join(evidence.weak.names[_MOST_WEAK:])}", "  ")
    if sentences and evidence.weak.judged_by == "relative_sigma":
        yield f"  (σ as of {evidence.samples} samples with independent noise; of n times as many it is 1/√n of that)"


def _wrapped(sentence: str, indent: str = "") -> str:
    return textwrap.fill(
        sentence, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _range(low: float, high: float) -> str:
    low, high = round(low, 1) + 0.0, round(high, 1) + 0.0  # no "−0.0"
    return f"{low:.1f} … {high:.1f}".replace("-", "−")


def _peak(trace: Trace, joint: int) -> str:
    if not trace.says(joint):
        return _NONE
    limit = float(trace.limits[joint, 1])
    peak = float(trace.peak[joint])
    if not math.isfinite(limit):
        return f"{plain(peak, 3)}, no limit"
    share = float(trace.share[joint])
    return f"{plain(peak, 3) if share > _NOTHING else 0} of {plain(limit)} ({percent(share)})"


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{share:.0%}"
