"""Commissioning of a bench: wiring, ratio and friction of one joint after the other, by the smallest motions first.

Three steps, each for all joints before the next begins: a push by a current that grows until the joint moves a degree,
in either direction; a wave of a few degrees, for the gear's ratio; strokes at several speeds, for friction. Each motion
is a run in the directory, so that what was done is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench import Bench, ProgressCallback
from jointbench.bench.single_motor import JointMotion, OwnLimits, play_alone, why_not_alone
from jointbench.errors import FitError, RobotError, RunError
from jointbench.identification.commission_readings import (
    MOST_SHARE,
    WAVE,
    WAVE_PERIOD,
    Fault,
    Push,
    Value,
    judge_push,
    push_currents,
    push_values,
    read_friction,
    read_push,
    read_ratio,
)
from jointbench.identification.friction import SpeedSweep
from jointbench.recording import Recorder, Run, open_run, read_result

_ENOUGH, _REACH, _OTHERS = np.radians([1.0, 2.5, 0.5])
_PUSH_VELOCITY = np.radians(30.0)
_WAVE_REACH = np.radians(4.0)
_STROKE, _STROKE_REACH = np.radians(6.0), np.radians(8.0)
_SPEEDS, _LOWEST_SPEED, _TOP_SPEED = 7, np.radians(2.0), np.radians(16.0)


@dataclass(frozen=True)
class CommissionedJoint:
    """Results of commissioning one joint.

    Attributes:
        name: of the joint.
        values: measured, in the order of the steps.
        fault: what is wrong with it, None for nothing.
        evidence: of the fault, or why nothing was tried.
        moved: the farthest that it was away from where it stood before a fault was named [rad].
        runs: evidence, in the order in which they were played.
    """

    name: str
    values: tuple[Value, ...] = ()
    fault: Fault | None = None
    evidence: str = ""
    moved: float = 0.0
    runs: tuple[Path, ...] = ()

    def value(self, name: str) -> Value:
        """Return the value of a name.

        Raises:
            FitError: there is none.
        """
        for each in self.values:
            if each.name == name:
                return each
        raise FitError(f"joint {self.name!r} has no {name!r}; it has {', '.join(each.name for each in self.values)}")


@dataclass
class _Joint:
    """What is known so far of a joint that is being commissioned."""

    name: str
    index: int
    values: list[Value] = field(default_factory=list[Value])
    fault: Fault | None = None
    evidence: str = ""
    moved: float = 0.0
    runs: list[Path] = field(default_factory=list[Path])
    ratio: float = 0.0


class _Commissioning:
    """The steps on one bench, each motion a run in the directory."""

    def __init__(self, bench: Bench, directory: Path, again: bool, progress: ProgressCallback | None) -> None:
        self.bench, self.directory, self.again, self.progress = bench, directory, again, progress
        self.step = bench.facts[0].tick_period * bench.facts[0].knot_ticks

    def push(self, joint: _Joint) -> None:
        """Find out about wiring, and the current that breaks the joint away."""
        drive = self.bench.robot.drives[joint.index]
        facts = self.bench.facts[joint.index]
        has_link = drive.link_encoder or facts.has("link_position")
        pushes: list[Push] = []
        for direction in (1, -1):
            currents = push_currents(self.bench.settings[joint.index].current_limit, direction, self.step)
            run = self._played(joint, f"push-{'up' if direction > 0 else 'down'}", self._still, currents, direction)
            push = read_push(run)
            joint.moved = max(joint.moved, abs(push.moved), abs(push.link_moved or 0.0), abs(push.other[1]))
            joint.fault, joint.evidence = judge_push(push, has_link)
            if joint.fault:
                return
            pushes.append(push)
        joint.values += push_values(pushes, drive.ratio, has_link)
        joint.ratio = next((each.value for each in joint.values if each.name == "ratio by push"), None) or drive.ratio

    def wave(self, joint: _Joint) -> None:
        """Measure the gear's ratio."""
        drive = self.bench.robot.drives[joint.index]
        joint.values = [each for each in joint.values if each.name != "ratio by push"]
        if not self.bench.facts[joint.index].has("link_position"):
            why = "there is no link encoder; the file's is taken"
            joint.values.append(Value("ratio", in_file=drive.ratio, key="ratio", why_not=why))
            return
        try:
            run = self._played(joint, "wave", self._waving)
            measured, why = read_ratio(run), f"the motion ended too early ({_outcome(run.path)})"
        except FitError as error:
            measured, why = None, str(error)
        if measured is None:
            joint.values.append(Value("ratio", in_file=drive.ratio, key="ratio", why_not=why))
            return
        joint.ratio = measured[0]
        joint.values.append(Value("ratio", *measured, "", drive.ratio, "ratio"))

    def strokes(self, joint: _Joint) -> None:
        """Measure friction."""
        drive = self.bench.robot.drives[joint.index]
        in_file = {"coulomb": drive.link_coulomb, "viscous": drive.link_viscous}
        keys = {"coulomb": ("link_coulomb_Nm", "N·m"), "viscous": ("link_viscous_Nms_rad", "N·m·s/rad")}
        try:
            measured, why = read_friction(self._played(joint, "strokes", self._stroking), joint.ratio), ""
        except FitError as error:
            measured, why = {}, str(error)
        for name, (key, unit) in keys.items():
            value, sigma = measured.get(name, (None, 0.0))
            joint.values.append(Value(name, value, sigma, unit, in_file[name], key, why))

    def _played(
        self,
        joint: _Joint,
        name: str,
        motion: Callable[[_Joint, Array], tuple[JointMotion, OwnLimits]],
        currents: Array | None = None,
        direction: int = 0,
    ) -> Run:
        """Run of a step: the newest that was done, or one that is played now."""
        folder = self.directory / joint.name
        earlier = sorted(folder.glob(f"{name}-*"), key=lambda path: int(path.name.rpartition("-")[2]))
        done = [path for path in earlier if _is_done(path)]
        if done and not self.again:
            joint.runs.append(done[-1])
            return open_run(done[-1])
        path = folder / f"{name}-{len(earlier) + 1}"
        planned, limits = motion(joint, self.bench.positions())
        about: dict[str, Any] = {
            "step": name.partition("-")[0],
            "joint": joint.name,
            "link_counts": int(self.bench.facts[joint.index].si("encoder.link_counts")),
        }
        if currents is not None:
            about |= {"direction": direction, "knot_s": self.step, "currents_A": currents}
        with Recorder(path, self.bench.provenance(repeats=1, commission=about)) as recorder:
            play_alone(self.bench, planned, limits, recorder, motor_currents=currents, progress=self.progress)
        joint.runs.append(path)
        return open_run(path)

    def _still(self, joint: _Joint, stand: Array) -> tuple[JointMotion, OwnLimits]:
        period = (len(push_currents(1.0, 1, self.step)) - 1) * self.step
        most = 1.1 * MOST_SHARE * self.bench.settings[joint.index].current_limit
        still = JointMotion(stand, joint.index, period, _nowhere)
        reach, speed = self._allowed
        return still, OwnLimits(
            min(_REACH, reach), min(_ENOUGH, 0.4 * reach), _OTHERS, min(_PUSH_VELOCITY, speed), most
        )

    def _waving(self, joint: _Joint, stand: Array) -> tuple[JointMotion, OwnLimits]:
        w = 2.0 * np.pi / WAVE_PERIOD
        size = 0.5 * WAVE * self._share(joint)
        for side in (-1.0, 1.0):
            self._check_room(joint, stand, side * _WAVE_REACH)

        def way(time: Array) -> tuple[Array, Array, Array]:
            side = size * np.where(time < WAVE_PERIOD, 1.0, -1.0)
            return side * (1.0 - np.cos(w * time)), side * w * np.sin(w * time), side * w**2 * np.cos(w * time)

        motion = JointMotion(stand, joint.index, 2.0 * WAVE_PERIOD, way)
        return motion, self._limits(joint, _WAVE_REACH, 3.0 * size * w)

    def _stroking(self, joint: _Joint, stand: Array) -> tuple[JointMotion, OwnLimits]:
        own = self.bench.robot.independent_joints[joint.index]
        acceleration = 0.5 * own.acceleration_limit
        fastest = min(own.velocity_limit, self._allowed[1])
        top = min(_TOP_SPEED, 0.4 * fastest, float(np.sqrt(0.3 * _STROKE * acceleration)))
        first = min(_LOWEST_SPEED, 0.25 * top)
        sweep = SpeedSweep(0.0, _STROKE, first, (top - first) / (_SPEEDS - 1), _SPEEDS, 0.1, acceleration)
        direction = 1.0 if sum(own.position_limits) > 2.0 * stand[joint.index] else -1.0
        self._check_room(joint, stand, direction * _STROKE_REACH)
        side = direction * joint.ratio / self.bench.robot.drives[joint.index].ratio
        period = np.ceil(sweep.duration / self.step + 1e-9) * self.step

        def way(time: Array) -> tuple[Array, Array, Array]:
            h = 1e-4
            before, now, after = (sweep.position(np.clip(time + d, 0.0, sweep.duration)) for d in (-h, 0.0, h))
            return side * now, side * (after - before) / (2.0 * h), side * (after - 2.0 * now + before) / h**2

        motion = JointMotion(stand, joint.index, float(period), way)
        return motion, self._limits(joint, _STROKE_REACH, 2.0 * abs(side) * top)

    @property
    def _allowed(self) -> tuple[float, float]:
        """Way from where a joint stands, and speed, that the bench's file allows [rad], [rad/s]."""
        limits = self.bench.file.terms.limits
        return limits.get("position_rad", np.inf), limits.get("velocity_rad_s", np.inf)

    def _check_room(self, joint: _Joint, stand: Array, way: float) -> None:
        """Refuse a motion that goes farther than the bench's file or the joint's own limits allow.

        Raises:
            FitError: says how far it would go, and what is allowed.
        """
        low, high = self.bench.robot.independent_joints[joint.index].position_limits
        at, asked = float(stand[joint.index]), f"it may need {np.degrees(way):+.0f}° from where it stands"
        if abs(way) > self._allowed[0]:
            raise FitError(f"{asked}, and the bench's file allows {np.degrees(self._allowed[0]):.3g}° (position_rad)")
        if not low <= at + way <= high:
            raise FitError(
                f"{asked}, {np.degrees(at):.1f}°, and its limits are {np.degrees(low):g} to {np.degrees(high):g}°; "
                "move it away from its end, or set its zero"
            )

    def _share(self, joint: _Joint) -> float:
        """Way by the file's ratio for a way of the joint by the one that was measured."""
        return abs(joint.ratio / self.bench.robot.drives[joint.index].ratio)

    def _limits(self, joint: _Joint, reach: float, velocity: float) -> OwnLimits:
        own = self.bench.settings[joint.index]
        share = self._share(joint)
        return OwnLimits(share * reach, None, _OTHERS, min(velocity, share * own.velocity_limit), own.current_limit)


def _nowhere(time: Array) -> tuple[Array, Array, Array]:
    rest = np.zeros(len(time))
    return rest, rest, rest


def commission(
    bench: Bench,
    directory: str | Path,
    joints: Sequence[str] | None = None,
    *,
    again: bool = False,
    only_wiring: bool = False,
    told: Callable[[CommissionedJoint, str], None] | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[CommissionedJoint, ...]:
    """Commission a bench's joints one by one, where they stand; its motors are off before and afterwards.

    A joint whose fault is named is not moved again. The others are.

    Args:
        bench: connected and configured.
        directory: of the runs, one folder a joint; what was done there is read, not done again.
        joints: names of those to commission; all by default.
        again: do all steps again, in new runs beside the earlier ones.
        only_wiring: the pushes alone.
        told: called with a joint and the name of the step after each.
        progress: called some times a second while a joint moves.

    Returns:
        A record for each of the joints, in the robot's order.

    Raises:
        RobotError: the robot has no such joint.
        BoardLost, BoardSilent, BoardRefused: a board is gone, or does not do what it is asked; the motors are off.

    >>> with jb.open_bench("bench.toml") as bench:
    ...     jb.commission(bench, "runs/commission", ["elbow"])
    Traceback (most recent call last):
        ...
    jointbench.errors.RobotError: robot 'cobot6:2' has no joint 'elbow'; its joints: j1, j2
    """
    robot = bench.robot
    wanted = robot.joint_names if joints is None else tuple(joints)
    if unknown := [name for name in wanted if name not in robot.joint_names]:
        raise RobotError(
            f"robot {robot.name!r} has no joint {unknown[0]!r}; its joints: {', '.join(robot.joint_names)}"
        )
    steps = _Commissioning(bench, Path(directory), again, progress)
    found = [_Joint(name, robot.joint_index(name)) for name in robot.joint_names if name in wanted]
    for joint in found:
        if why := why_not_alone(bench, joint.index):
            joint.evidence = f"not commissioned: {why}"
    for name, step in (("push", steps.push), ("wave", steps.wave), ("strokes", steps.strokes)):
        for joint in found:
            if joint.evidence or (only_wiring and name != "push"):
                continue
            step(joint)
            if told:
                told(_record(joint), name)
    return tuple(_record(joint) for joint in found)


def changes(before: Sequence[CommissionedJoint], now: Sequence[CommissionedJoint]) -> tuple[str, ...]:
    """Sentences on what differs between two commissionings of the same joints: faults, and values by more than 3 σ."""
    sentences: list[str] = []
    for was, joint in zip(before, now, strict=True):
        if joint.fault != was.fault:
            sentences.append(
                f"{joint.name}: {joint.fault or 'no fault any more'}, it was {was.fault or 'without fault'}"
            )
        earlier = {each.name: each for each in was.values}
        for value in joint.values:
            old = earlier.get(value.name)
            if old is None or old.value is None or value.value is None:
                continue
            sigma = float(np.hypot(value.sigma, old.sigma))
            if abs(value.value - old.value) > 3.0 * sigma:
                sentences.append(
                    f"{joint.name} {value.name}: {value.value:.4g} ± {value.sigma:.2g} {value.unit}".rstrip()
                    + f", it was {old.value:.4g} ± {old.sigma:.2g}"
                )
    return tuple(sentences)


def _record(joint: _Joint) -> CommissionedJoint:
    return CommissionedJoint(
        joint.name, tuple(joint.values), joint.fault, joint.evidence, joint.moved, tuple(joint.runs)
    )


def _outcome(run: Path) -> str:
    result = read_result(run)
    return "" if result is None else str(result["outcome"])


def _is_done(run: Path) -> bool:
    """Whether a step ended by itself, or by its board, and not by a person or a lost board."""
    try:
        return _outcome(run).startswith(("finished", "ended", "stopped by BoardFault"))
    except RunError:
        return False
