"""Prove a model on a bench: play a new motion without and with its feed-forward, and with wrong ones that must fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array
from jointbench.bench import Bench, Feedforward, ProgressCallback, Trajectory
from jointbench.errors import BoardFault, ExcitationError, FitError, JointbenchError
from jointbench.excitation import Excitation, Workspace, random_excitation
from jointbench.identification.feedforward import (
    FRICTION_WIDTH,
    MotorReference,
    command_times,
    feedback_band,
    feedback_current,
    feedforward_of_model,
    feedforward_of_torque,
    gear_stiffness,
    motor_reference,
    observer_current,
    planned_torque,
    sensor_offset,
    torque_parts,
)
from jointbench.identification.model import Model
from jointbench.identification.proof import (
    BAND_HZ,
    LEAST_DISTANCE,
    Control,
    HeavierLink,
    Proof,
    Tracking,
    check_half,
    explained_wind_up,
    motion_distance,
    predicted_share,
    tracking,
)
from jointbench.identification.validation import fitted_runs, validate
from jointbench.model import Robot, robot_digests
from jointbench.model.model_columns import model_columns
from jointbench.recording import Recorder, open_run

FOLLOWING_OVER_ERROR = 2.0
"""limit.following in runs with feed-forward over the largest error without."""

FALSE_ALARMS_PER_HOUR = 0.1
"""Of all boards together, for which the bands of runs with feed-forward are made."""

TORQUE_OFF, LINK_OFF = 0.8, 0.2
_SEEDS = 20


def fitted_motions(model: Model) -> dict[str, Excitation]:
    """Return the motions that a model was fitted to, by their runs.

    Raises:
        FitError: a run's motion is not known, as of an imported log, so that no other can be told from it.
    """
    motions: dict[str, Excitation] = {}
    for run in fitted_runs(model):
        recorded: Mapping[str, Any] = run.get("recorded", {})
        if "excitation" not in recorded:
            raise FitError(
                f"model of {run.get('run')}: the motion of that run is not in its provenance, so that none can be "
                "shown to be another; fit a run that `jointbench run` or `identify` recorded"
            )
        motions[str(run["run"])] = Excitation.from_dict(dict(recorded["excitation"]))
    return motions


def check_same_robot(model: Model, robot: Robot) -> None:
    """Refuse a model of another robot than the one on the bench.

    Masses, friction and limits may differ: the first two are what was identified, the last are not the model's.

    Raises:
        FitError: joints, kinematics or drives differ; names what does.
    """
    if model.robot.joint_names != robot.joint_names:
        raise FitError(
            f"the model is of joints {', '.join(model.robot.joint_names)}, the bench has "
            f"{', '.join(robot.joint_names)}; take the model that was fitted on this bench"
        )
    own, theirs = robot_digests(model.robot), robot_digests(robot)
    for part in ("kinematics", "drives"):
        if own[part] != theirs[part]:
            raise FitError(
                f"the {part} of the model's robot {model.robot.name!r} (digest {own[part]}) are not those of the "
                f"bench's {robot.name!r} ({theirs[part]}); fit anew with the robot's file as it is now"
            )


def check_new_motion(model: Model, motion: Excitation) -> float:
    """Return the distance of a motion from the nearest that the model was fitted to.

    Raises:
        FitError: it is one of them, or too near to one; a replay of the current of that run would track it as well.
    """
    advice = "give another with --plan (`jointbench plan ROBOT --seed N`), or leave --plan out to have one drawn"
    least = np.inf
    for name, fitted in fitted_motions(model).items():
        distance = motion_distance(motion, fitted)
        if motion.to_dict() == fitted.to_dict():
            raise FitError(f"the motion is that of run {name}, which the model was fitted to; {advice}")
        if distance < LEAST_DISTANCE:
            raise FitError(
                f"the motion is {distance:.2g} standard deviations from that of run {name}, which the model was "
                f"fitted to, and must be {LEAST_DISTANCE:g} away at least; {advice}"
            )
        least = min(least, distance)
    return least


def draw_motion(model: Model, period: float, seed: int, workspace: Workspace | None = None) -> Excitation:
    """Draw a random motion that is far enough from those the model was fitted to, by this seed or one after it.

    Raises:
        FitError: none of 20 seeds gives one.
        ExcitationError: as of `random_excitation`.
    """
    for attempt in range(_SEEDS):
        motion = random_excitation(model.robot, period=period, seed=seed + attempt, workspace=workspace)
        try:
            check_new_motion(model, motion)
        except FitError:
            if attempt == _SEEDS - 1:
                raise
            continue
        return motion
    raise AssertionError


@dataclass
class _Player:
    """Plays a motion with one feed-forward after the other, each kept under its name.

    Attributes:
        motion: of the links.
        reference: of the motors where a feed-forward plays along: they may lead by the gears' wind-up.
    """

    bench: Bench
    model: Model
    motion: Excitation
    reference: Trajectory
    out: Path
    progress: Callable[[str], ProgressCallback] | None

    def __call__(self, name: str, feedforward: Feedforward | None) -> Tracking:
        bench = self.bench
        reference = self.motion if feedforward is None else self.reference
        bench.move_to(reference.evaluate(np.zeros(1))[0][0])
        about = bench.provenance(excitation=self.motion.to_dict(), repeats=1, feedforward=name)
        with Recorder(self.out / name, about) as recorder:
            bench.play(reference, 1, recorder, self.progress(name) if self.progress else None, feedforward=feedforward)
        return self.tracking(name, feedforward)

    def tracking(self, name: str, feedforward: Feedforward | None) -> Tracking:
        """Return the tracking of the run of a name, with the feed-forward that was played.

        The feed-forward also takes off what the servo's damping pushes too much because its velocity lags. That is no
        torque of the model's, and is not counted as such.
        """
        facts = self.bench.facts
        knot_period = facts[0].tick_period * facts[0].knot_ticks
        supplied, reference = None, self.motion if feedforward is None else self.reference
        if feedforward is not None:
            time = np.minimum(knot_period * np.arange(len(feedforward.motor_current_A)), self.motion.period)
            lag = observer_current(self.bench.robot, facts, reference.evaluate(time)[2])
            supplied = feedforward.motor_current_A + lag
        run, offset = open_run(self.out / name), sensor_offset(self.model)
        return tracking(run, reference, self.motion, self.bench.robot, supplied, knot_period, offset)

    def proving(self, name: str, feedforward: Feedforward) -> Tracking:
        """Play what must not trip.

        Raises:
            FitError: a board stopped it.
        """
        try:
            return self(name, feedforward)
        except BoardFault as fault:
            raise FitError(
                f"run {name} with the model's feed-forward: {fault}. Boards trip at {FOLLOWING_OVER_ERROR:g} times the "
                f"largest error without, and where servos add more than the run before lets expect; look at what "
                f"touches the arm, then at sign, scale and order of the joints, and fit anew"
            ) from fault

    def control(self, name: str, feedforward: Feedforward) -> tuple[Tracking | None, str]:
        """Play what may trip: a fault is cleared, and the bench goes on."""
        try:
            return self(name, feedforward), ""
        except BoardFault as fault:
            self.bench.clear()
            self.bench.configure(
                self.bench.settings
            )  # a board in FAULT keeps the limits of the motion with feed-forward
            return None, str(fault)
        except ExcitationError as error:
            return None, f"not played: {error}"


def prove(
    model: Model,
    bench: Bench,
    motion: Excitation,
    out: str | Path,
    *,
    controls: bool = False,
    friction_width: float = FRICTION_WIDTH,
    stiffness: ArrayLike | None = None,
    told: Callable[[str], None] | None = None,
    progress: Callable[[str], ProgressCallback] | None = None,
) -> Proof:
    """Play a new motion without a model's feed-forward, with half of it, with it, without and with it again.

    The share of feedback is predicted from the first run, before any feed-forward is played. Where half the
    feed-forward does not halve the error of every joint, it stops. In runs with feed-forward boards trip at twice the
    largest error of the run without, and trip UNEXPECTED where their servos add more to the feed-forward than the run
    before lets expect once in ten hours (`feedback_band`).

    Args:
        model: of the bench's robot.
        bench: connected and configured.
        motion: that the model was not fitted to.
        out: directory of all runs, to create.
        controls: whether feed-forward that is wrong on purpose is played, too.
        friction_width: velocity over which friction changes its sign [rad/s; m/s].
        stiffness: of each gear at the joint side [N·m/rad], inf or NaN where it is not known, shape (n_joints,); None:
            of the robot's file. Motors lead by the gears' wind-up where it is known, so that the links follow.
        told: called with a line on each step.
        progress: called with a run's name, gives what is called some times a second while it is played.

    Raises:
        FitError: the motion is one the model was fitted to, or too near; or the model is of another robot.
        FitError: half the feed-forward does not halve the error, or a board trips with it: names the joint and the
            likely cause.
        ExcitationError: the motion may not be played on this bench, or asks for more current than the boards allow.
        BoardFault, BoardLost, BoardSilent, BoardRefused: the motion without feed-forward was stopped.

    >>> model = jb.fit(jb.open_run("runs/arm"))
    >>> with jb.open_bench("bench.toml") as bench:
    ...     jb.prove(model, bench, jb.random_excitation(bench.robot, period=5.024, seed=7), "runs/proof")
    Traceback (most recent call last):
        ...
    jointbench.errors.FileError: bench 'arm' is open but not connected; call connect() first
    """
    say = told or (lambda _: None)
    robot, out = bench.robot, Path(out)
    check_same_robot(model, robot)
    bench.admit(motion)
    distance = check_new_motion(model, motion)
    out.mkdir(parents=True)
    gears = gear_stiffness(robot, stiffness)
    play = _Player(bench, model, motion, _reference(model, bench, motion, gears), out, progress)
    modelled = model.robot.modelled

    without = play("without-1", None)
    if isinstance(play.reference, MotorReference):
        gears, zeros, sentences = explained_wind_up(without, play.reference, robot.joint_names, gears)
        play.reference = _reference(model, bench, motion, gears, zeros)
        for sentence in sentences:
            say(sentence)
    reference = play.reference
    validation = validate(model, open_run(out / "without-1"))
    largest = np.abs(robot.drive_train.motor_motion(without.error)).max(axis=0)
    feedforward = replace(
        feedforward_of_model(model, reference, bench.facts, friction_width=friction_width),
        following_limit_rad=FOLLOWING_OVER_ERROR * largest,
    )
    at_10_Hz = validate(model, open_run(out / "without-1"), cutoff_Hz=BAND_HZ)
    predicted = predicted_share(
        at_10_Hz, *_planned(model, bench, reference, friction_width), bench.facts[0].tick_period
    )
    joints = [name for name, judged in zip(robot.joint_names, modelled, strict=True) if judged]
    pairs = zip(joints, predicted.share[modelled], strict=True)
    say(f"predicted share of feedback: {', '.join(f'{name} {100.0 * share:.1f}' for name, share in pairs)} %")
    half = play.proving("half", feedforward.scaled(0.5))
    ratios = half.rms / without.rms
    say(
        "error with half the feed-forward over that without: " + ", ".join(f"{ratio:.2f}" for ratio in ratios[modelled])
    )
    check_half(ratios, robot.joint_names, modelled)
    fed = play.proving("with-1", _watched(model, feedforward, reference, bench, out / "without-1", say))
    again = play("without-2", None)
    watched = _watched(model, feedforward, reference, bench, out / "with-1", say)
    fed_again = play.proving("with-2", watched)
    proof = Proof(
        robot.joint_names, modelled, (without, again), (fed, fed_again), half, predicted, validation.relative,
        distance, stiffness=gears, unexpected_limit_A=watched.unexpected_limit_A,
    )  # fmt: skip
    if not controls:
        return proof
    wrong: list[Control] = []
    for name, (words, other) in _wrong(model, bench, motion, reference, feedforward, friction_width).items():
        say(f"control: {words}")
        wrong.append(Control(words, *play.control(name, other)))
    heavier = _heavier_link(model, bench, reference, feedforward, play, say)
    return replace(proof, controls=tuple(wrong), heavier=heavier)


def _watched(
    model: Model,
    feedforward: Feedforward,
    motion: Trajectory,
    bench: Bench,
    quiet: Path,
    say: Callable[[str], None],
) -> Feedforward:
    """The feed-forward with a band made of a quiet recording of the motion, beyond which boards trip UNEXPECTED.

    Without a band, which is said, where the recording gives none: less than six seconds tell no rare level.
    """
    try:
        current = feedback_current(open_run(quiet), feedforward, bench.facts)
        period = bench.facts[0].tick_period
        band = feedback_band(model, current, motion, period, false_alarms_per_hour=FALSE_ALARMS_PER_HOUR)
    except FitError as error:
        say(f"no board watches for pushes: {error}")
        return feedforward
    watched = replace(feedforward, unexpected_limit_A=band)
    say(watched.watch_text(bench.robot.joint_names))
    return watched


def _reference(model: Model, bench: Bench, motion: Excitation, gears: Array, zeros: ArrayLike = 0.0) -> Trajectory:
    """Reference for the motors: they lead by the wind-up of the gears whose stiffness is known [N·m/rad]."""
    if not np.isfinite(gears).any():
        return motion
    return motor_reference(model, motion, bench.facts[0].tick_period * bench.facts[0].knot_ticks, gears, zeros)


def _planned(model: Model, bench: Bench, motion: Trajectory, friction_width: float) -> tuple[Array, Array]:
    """Torque of the model along the planned motion, tick by tick: all of it, and linear between its knots."""
    torque = planned_torque(model, motion, command_times(motion, bench.facts), friction_width=friction_width)
    ticks = np.arange(len(torque))
    knots = ticks[:: bench.facts[0].knot_ticks]
    return torque, np.stack([np.interp(ticks, knots, own) for own in torque[knots].T], axis=1)


def _wrong(
    model: Model,
    bench: Bench,
    motion: Excitation,
    reference: Trajectory,
    feedforward: Feedforward,
    friction_width: float,
) -> dict[str, tuple[str, Feedforward]]:
    """Feed-forward that is wrong on purpose, by the name of its run, and what is wrong with it."""
    robot, facts, time = model.robot, bench.facts, command_times(reference, bench.facts)

    def of_torque(wrong: Array) -> Feedforward:
        fed = feedforward_of_torque(wrong, robot, reference, facts)
        return replace(fed, following_limit_rad=feedforward.following_limit_rad)

    torque = planned_torque(model, reference, time, friction_width=friction_width)
    # The joint with the smallest torque: what shows there shows anywhere.
    size = np.where(robot.modelled, np.mean(torque**2, axis=0), np.inf)
    joint = int(size.argmin())
    flipped = torque.copy()
    flipped[:, joint] *= -1.0
    other = random_excitation(robot, period=motion.period, seed=motion.seed + 1000)
    another = planned_torque(model, other, time, friction_width=friction_width)
    parts = torque_parts(model, reference, time, friction_width=friction_width)
    return {
        "control-scale": (f"torque × {TORQUE_OFF:g}", of_torque(TORQUE_OFF * torque)),
        "control-sign": (f"sign of {robot.joint_names[joint]}", of_torque(flipped)),
        "control-motion": ("another motion's torque", of_torque(another)),
        "control-rigid": ("rigid body alone", of_torque(parts.rigid_body + parts.springs)),
    }


def _heavier_link(
    model: Model,
    bench: Bench,
    reference: Trajectory,
    feedforward: Feedforward,
    play: _Player,
    say: Callable[[str], None],
) -> HeavierLink | None:
    """Play the feed-forward of the model with that link 20 % heavier which changes a joint's torque most."""
    facts, robot = bench.facts[0], bench.robot
    knots = len(feedforward.motor_current_A)
    time = np.minimum(facts.tick_period * facts.knot_ticks * np.arange(knots), reference.period)
    columns, _ = model_columns(model.robot, *reference.evaluate(time))
    try:
        standard = model.physical.standard_parameters
    except JointbenchError as error:
        say(f"no control with a heavier link: {error}")
        return None
    torque = robot.drive_train.joint_torque_of_current(feedforward.motor_current_A)
    size = np.sqrt(np.mean(torque**2, axis=0))
    best, link, joint, change = 0.0, -1, -1, torque
    for k in range(model.robot.n_links):
        full = np.zeros(columns.shape[-1])
        full[10 * k : 10 * k + 10] = LINK_OFF * standard[10 * k : 10 * k + 10]
        more = (columns @ full).reshape(len(time), -1) * model.robot.modelled
        relative = np.where(size > 0.0, np.sqrt(np.mean(more**2, axis=0)) / np.where(size > 0.0, size, 1.0), 0.0)
        if relative.max() > best:
            best, link, joint, change = float(relative.max()), k, int(relative.argmax()), more
    if link < 0:
        return None
    name = f"link {link + 1}"
    say(f"{name} 20 % heavier: {100.0 * best:.1f} % more torque at {robot.joint_names[joint]}")
    heavier = Feedforward.of_joint_torque(torque + change, robot)
    played, _ = play.control("heavier-link", replace(heavier, following_limit_rad=feedforward.following_limit_rad))
    return HeavierLink(name, joint, played)
