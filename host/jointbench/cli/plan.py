"""Plan an excitation: the feasible motion that tells a robot's parameters apart best, checked before anything moves."""

from __future__ import annotations

import argparse
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console
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
from jointbench.cli.plan_tables import ALPHABET, Curve, braille_plot, plan_text
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
)
from jointbench.model import Robot, base_parameters, load_robot, robot_digests, with_reduced_limits
from jointbench.results import PlanEvidence, check_picture, plan_picture

VERB = "plan"
EXAMPLE = "jointbench plan cobot6 --out excitation.json"
WRITES = ("out", "picture")

__all__ = ["EXAMPLE", "VERB", "WRITES", "add_arguments", "run"]

_INSTANTS = 601
_BAR = 20
_FEW_JOINTS = 8


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
