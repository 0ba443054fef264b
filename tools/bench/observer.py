"""`./run bench observer`: pushes on a simulated arm, found by the momentum that its identified model expects."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import Model, fit
from jointbench.identification.momentum_observer import (
    MomentumObserver,
    Observed,
    Thresholds,
    hand_force,
    observe_run,
    pushes,
    quiet_thresholds,
)
from jointbench.model import Wrench, external_torques
from tools.bench.simulated_recordings import REST_TICKS, TICK, Arm, Playing, arms, play, record

SECONDS, QUIET_MOTIONS = 20.0, 3
MOTIONS = 180
"""Of twenty seconds without a push: an hour."""

PUSHES = 200
_EVERY_S, _PUSH_S = 2.5, 0.3
_FORCE_N = 30.0
"""Of pushes at the hand, root mean square a direction."""

LATEST_S, NAMED, HELD = 0.020, 0.95, (0.90, 0.97)
NOISE_FLOORS = 3.0
"""Torque of a push over the joint's threshold, the largest of the time in which it must be found: that of a joint that
comes near rest meanwhile grows by the range of its friction."""


@dataclass(frozen=True)
class Pushed:
    """A push on one joint.

    Attributes:
        joint: that was pushed.
        latency: from its beginning to where a threshold is passed [s], infinite where none is.
        named: joint that the observer says, "" for none.
        near_rest: whether the joint was near rest when it began.
    """

    joint: str
    latency: float
    named: str
    near_rest: bool


@dataclass(frozen=True, eq=False)
class Watched:
    """An arm with its identified model, and thresholds by quiet motions.

    Attributes:
        arm: simulated, and its boards' seed.
        model: identified from a recording of it.
        observer: of the model, as recordings of the boards are observed.
        thresholds: of its joints.
        seed: of the boards.
    """

    arm: Arm
    model: Model
    observer: MomentumObserver
    thresholds: Thresholds
    seed: int

    def observe(self, seed: int, extra: Array | None = None) -> Observed:
        """Observe a motion of its own, with torque from outside at its samples [N·m], shape (n, n_joints)."""
        return recorded(self.arm, self.model, _motion(self.arm, seed), self.seed, extra)[1]


def watched(seed: int) -> Watched:
    """Identify an arm from two playings of a motion, and set thresholds by motions that nothing disturbs."""
    arm = arms(2, seed)[1]
    excitation = _motion(arm, seed)
    model = fit(record(arm, excitation, play(arm, excitation), 2, seed).run)
    quiet = [recorded(arm, model, _motion(arm, 10_000 + seed + k), seed) for k in range(QUIET_MOTIONS)]
    parts = [observed for _, observed in quiet]
    whole = Observed(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))
    return Watched(arm, model, quiet[0][0], quiet_thresholds(quiet[0][0], whole), seed)


def _motion(arm: Arm, seed: int) -> Excitation:
    return random_excitation(arm.robot, 5, SECONDS, seed)


def recorded(
    arm: Arm, model: Model, excitation: Excitation, seed: int, extra: Array | None = None
) -> tuple[MomentumObserver, Observed]:
    """Record a motion by the arm's boards, pushed or not, and observe it; the rest before it is left out."""
    playing = play(arm, excitation)
    if extra is not None:
        per_current = np.array([drive.torque_per_current for drive in arm.robot.drives])
        # As `play` has it: the converter's samples of a tick are those before it.
        playing = Playing(playing.position, playing.current + (extra / per_current)[:, None])
    observer, observed = observe_run(model, record(arm, excitation, playing, 1, seed).run)
    return observer, Observed(*(value[REST_TICKS:] for value in vars(observed).values()))


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Watch an hour without a push, 200 pushes of joints, and as many of the hand, or as many as asked."""
    quiet_motions, count = int(options.motions), int(options.pushes)
    with console.working("an arm is identified, and watched while nothing pushes"):
        subject = watched(options.seed)
    names = subject.arm.robot.joint_names
    alarms = 0
    with console.working(f"{quiet_motions} motions without a push"):
        for k in range(quiet_motions):
            alarms += len(pushes(subject.observe(20_000 + k), subject.thresholds, names))
    with console.working(f"{count} pushes of joints, and of the hand"):
        found = pushed_joints(subject, count)
        within = np.concatenate([hand_deviations(subject, seed) for seed in range(-(-count // _per_motion()))])
    console.say(pushes_table(subject, found))
    watched_s = quiet_motions * SECONDS
    console.say(
        f"{watched_s:g} s without a push; {len(found)} pushes of joints, the latest found after "
        f"{1e3 * max(push.latency for push in found):.0f} ms; {len(within)} components of forces at the hand"
    )
    late = np.array([push.latency for push in found])
    held = float(np.mean(np.abs(within) < 2.0))
    checks = (
        Check(f"false alarms in {watched_s:g} s", alarms, "==", 0),
        Check("pushes of three noise floors found in 20 ms, share", float(np.mean(late <= LATEST_S)), ">=", 1.0),
        Check("joints named right, share", float(np.mean([push.joint == push.named for push in found])), ">=", NAMED),
        Check("force at the hand within 2 σ, share", held, ">=", HELD[0]),
        Check("force at the hand within 2 σ, share, at most", held, "<=", HELD[1]),
    )
    fields = {"watched_s": watched_s, "pushes": [vars(push) for push in found], "hand_deviations": within.tolist()}
    return Result("bench", options.seed, checks, fields)


def _per_motion() -> int:
    return int(SECONDS / _EVERY_S) - 1


def _times(count: int) -> list[int]:
    """Ticks at which pushes begin."""
    return [round((1.0 + k * _EVERY_S) / TICK) for k in range(count)]


def pushed_joints(subject: Watched, count: int) -> list[Pushed]:
    """Push one joint after the other with three times its threshold."""
    found: list[Pushed] = []
    rng = np.random.default_rng(subject.seed)
    names, length, window = subject.arm.robot.joint_names, round(_PUSH_S / TICK), round(LATEST_S / TICK)
    while len(found) < count:
        seed = 30_000 + len(found)
        quiet = subject.observe(seed)
        limit, extra = subject.thresholds.of(quiet), np.zeros_like(quiet.torque)
        chosen = [(start, int(rng.integers(len(names)))) for start in _times(min(_per_motion(), count - len(found)))]
        for start, joint in chosen:
            floor = limit[start : start + window + 1, joint].max()
            extra[start : start + length, joint] = rng.choice([-1.0, 1.0]) * NOISE_FLOORS * floor
        seen = pushes(subject.observe(seed, extra), subject.thresholds, names)
        for start, joint in chosen:
            first = next((p for p in seen if start * TICK <= p.start < start * TICK + _PUSH_S), None)
            latency = float("inf") if first is None else first.start - start * TICK
            near_rest = bool(quiet.near_rest[start, joint])
            found.append(Pushed(names[joint], latency, "" if first is None else first.joint, near_rest))
    return found


def hand_deviations(subject: Watched, seed: int) -> Array:
    """(estimated - true force) / σ in the middle of pushes at the last link, by direction, joints moving."""
    robot, rng = subject.arm.robot, np.random.default_rng([subject.seed, seed])
    frame, length = robot.joints[-1].link.name, round(_PUSH_S / TICK)
    excitation = _motion(subject.arm, 40_000 + seed)
    q = excitation.evaluate(TICK * np.arange(round(SECONDS / TICK)))[0]
    extra, forces = np.zeros_like(q), dict[int, Array]()
    for start in _times(_per_motion()):
        force = _FORCE_N * rng.standard_normal(3)
        part = slice(start, start + length)
        extra[part] = external_torques(robot, q[part], Wrench(frame, force))
        forces[start + length - 1] = force
    observed = subject.observe(40_000 + seed, extra)
    estimate = hand_force(subject.observer, observed, subject.thresholds, frame)
    moving = [k for k in forces if not observed.near_rest[k].any()]
    away = [(estimate.force[k] - forces[k]) / estimate.sigma[k] for k in moving]
    return np.concatenate(away) if away else np.zeros(0)


def pushes_table(subject: Watched, found: Sequence[Pushed]) -> str:
    """A row for each joint."""
    rows: list[list[str]] = []
    thresholds = subject.thresholds
    for j, name in enumerate(subject.arm.robot.joint_names):
        of = [push for push in found if push.joint == name]
        late = [1e3 * push.latency for push in of]
        rows.append(
            [
                *(name, f"{thresholds.torque[j]:.2f}", f"{thresholds.at_rest[j]:.2f}", str(len(of))),
                *((f"{np.median(late):.0f}", f"{max(late):.0f}") if of else ("", "")),
                str(sum(push.named == name for push in of)),
                str(sum(push.near_rest for push in of)),
            ]
        )
    heads = (
        "joint",
        "threshold [N·m]",
        "more at rest",
        "pushes",
        "found after [ms]",
        "longest",
        "named right",
        "at rest",
    )
    return table(heads, rows)
