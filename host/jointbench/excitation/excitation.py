"""The excitation: one motion of a family, with its margins to the limits and its support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jointbench.arrays import Array
from jointbench.errors import ExcitationError
from jointbench.excitation.families.basis import Basis, displacement
from jointbench.excitation.families.catalogue import family_name, motion_from_dict, motion_to_dict
from jointbench.excitation.limits.motion_limits import Limit, Motion, SpaceLimit, check_share
from jointbench.excitation.limits.torque_limits import TorqueLimit, torque_limit
from jointbench.files import sealed_json, write_file
from jointbench.model import Robot
from jointbench.notebook import card, data_frame, need_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_REST_SPEED_SHARE = 1e-6
"""Share of a joint's largest speed below which it counts as standing: rounding is no reversal."""

_DRAWN_TIMES = 600

_WHOLE_SAMPLE_TOLERANCE = 1e-6  # of a sample: far above rounding of a period in seconds


@dataclass(frozen=True)
class JointMargins:
    """Margins of a motion to one joint's limits, as fractions: 0 touches the limit, below 0 breaks it.

    Attributes:
        joint: name.
        position: smallest distance to either end of the range, over the range.
        velocity, acceleration: 1 - largest magnitude / limit.
        torque: the same of the torque that the nominal inertias ask for; None where the robot has none.
        jerk: the same of the jerk; None where the joint has no such limit.
        position_coverage: share of the range of positions that the motion visits.
        velocity_coverage: share of the range of velocities, from one limit to the other, that it visits.
        reversals: how often it turns round: where friction changes its sign.
    """

    joint: str
    position: float
    velocity: float
    acceleration: float
    torque: float | None = None
    jerk: float | None = None
    position_coverage: float | None = None
    velocity_coverage: float | None = None
    reversals: int | None = None

    @property
    def smallest(self) -> float:
        """The smallest of the margins."""
        known = (self.position, self.velocity, self.acceleration, self.torque, self.jerk)
        return min(margin for margin in known if margin is not None)

    def scaled(self, share: float) -> JointMargins:
        """Margins of the motion at a share of its size about home: of the position at least, of the torque unknown."""

        def scaled_margin(value: float | None, upper: float = 1.0) -> float | None:
            return None if value is None else upper - share * (upper - value)

        return replace(
            self,
            velocity=1.0 - share * (1.0 - self.velocity),
            acceleration=1.0 - share * (1.0 - self.acceleration),
            torque=None,
            jerk=scaled_margin(self.jerk),
            position_coverage=scaled_margin(self.position_coverage, 0.0),
            velocity_coverage=scaled_margin(self.velocity_coverage, 0.0),
        )


def motion_margins(
    robot: Robot,
    q: Array,
    dq: Array,
    ddq: Array,
    dddq: Array | None = None,
    torque_model: TorqueLimit | None = None,
) -> tuple[JointMargins, ...]:
    """Margins of every joint over a sampled motion, shape (n_samples, n_joints) each; of the jerk where it is given.

    Args:
        robot: the robot.
        q, dq, ddq, dddq: the motion and its derivatives [rad or m, s].
        torque_model: what predicts torque; the robot's own inertias where not given.
    """
    low, high = robot.position_limits.T
    position = np.minimum(q - low, high - q).min(axis=0) / (high - low)
    velocity = 1.0 - np.abs(dq).max(axis=0) / robot.velocity_limits
    acceleration = 1.0 - np.abs(ddq).max(axis=0) / robot.acceleration_limits
    torque = _torque(robot, torque_model or torque_limit(robot), (q, dq, ddq, np.zeros_like(q)))
    jerk = _jerk(robot, dddq)
    position_coverage_by_joint = (q.max(axis=0) - q.min(axis=0)) / (high - low)
    velocity_coverage_by_joint = (dq.max(axis=0) - dq.min(axis=0)) / (2.0 * robot.velocity_limits)
    return tuple(
        JointMargins(
            joint=name,
            position=float(position[j]),
            velocity=float(velocity[j]),
            acceleration=float(acceleration[j]),
            torque=torque[j],
            jerk=jerk[j],
            position_coverage=float(position_coverage_by_joint[j]),
            velocity_coverage=float(velocity_coverage_by_joint[j]),
            reversals=_reversals(dq[:, j]),
        )
        for j, name in enumerate(robot.joint_names)
    )


def space_margins(limits: Sequence[Limit], motion: Motion) -> dict[str, float]:
    """Smallest distance [m] that a sampled motion leaves to each limit in space, by its name, the nearest first."""
    distances: dict[str, float] = {}
    for limit in limits:
        if isinstance(limit, SpaceLimit):
            usage = limit.usage(motion).max(axis=0).tolist()
            distances |= {name: limit.distance(k, usage[k]) for k, name in enumerate(limit.names)}
    return dict(sorted(distances.items(), key=lambda item: item[1]))


def _torque(robot: Robot, limit: TorqueLimit | None, motion: Motion) -> list[float | None]:
    if limit is None:
        return [None] * robot.n_joints
    usage = limit.usage(motion).max(axis=0).reshape(2, -1).max(axis=0) * limit.allowed / robot.torque_limits
    return [1.0 - share if modelled else None for share, modelled in zip(usage.tolist(), robot.modelled, strict=True)]


def _jerk(robot: Robot, dddq: Array | None) -> list[float | None]:
    limits = [joint.jerk_limit for joint in robot.independent_joints]
    if dddq is None:
        return [None] * len(limits)
    largest = np.abs(dddq).max(axis=0).tolist()
    return [None if limit is None else 1.0 - value / limit for limit, value in zip(limits, largest, strict=True)]


def _reversals(velocity: Array) -> int:
    """Number of sign changes of a joint's velocity."""
    moving = velocity[np.abs(velocity) > _REST_SPEED_SHARE * np.abs(velocity).max(initial=0.0)]
    return int(np.count_nonzero(np.diff(np.sign(moving))))


@dataclass(frozen=True)
class Support:
    """The region of a sole that a motion in single support keeps its zero-moment point in, and its margins.

    Attributes:
        foot: that it stands on.
        margin: what is kept free of the sole, before and behind, and at either side [m].
        zmp_offset: what the real zero-moment point is beside the predicted one, forward and left [m].
        room: distance that the predicted point leaves inside the margin at its nearest [m]; negative outside.
        distance: of the predicted point from the sole's edge at its nearest [m].
        friction: that the ground must have: largest horizontal force over the vertical one.
        lightest: smallest vertical force over the weight.
        standard_parameters: that the point was predicted with, ten of the base's link, then ten per link; None: those
            of the robot's file.
    """

    foot: str
    margin: tuple[float, float]
    zmp_offset: tuple[float, float]
    room: float
    distance: float
    friction: float
    lightest: float
    standard_parameters: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain numbers, lists and strings, with units in the names."""
        values: dict[str, Any] = {
            "foot": self.foot,
            "margin_m": list(self.margin),
            "zmp_offset_m": list(self.zmp_offset),
            "room_m": self.room,
            "distance_m": self.distance,
            "friction": self.friction,
            "lightest": self.lightest,
        }
        if self.standard_parameters is not None:
            values["standard_parameters"] = list(self.standard_parameters)
        return values

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Support:
        """Make it from what `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError: an entry is missing or damaged.
        """
        margin, offset = ((float(x), float(y)) for x, y in (values["margin_m"], values["zmp_offset_m"]))
        room, distance, friction, lightest = (
            float(values[key]) for key in ("room_m", "distance_m", "friction", "lightest")
        )
        given = values.get("standard_parameters")
        parameters = None if given is None else tuple(float(value) for value in given)
        return Support(str(values["foot"]), margin, offset, room, distance, friction, lightest, parameters)


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion from rest at home to rest at home that can be played again and again.

    q(t) = home + phi(t) @ weights, phi of its basis.

    Attributes:
        robot_name: the robot it was made for.
        basis: the family of motions it is of, with its settings.
        home: where it begins and ends [rad], shape (n_joints,).
        weights: shape (n_joints, basis.size).
        condition_number: of the base regressor with the drives' columns at `basis.sample_times`, columns not scaled.
        margins: per joint, what is left to each limit.
        seed: that it came from.
        objective: what it is the best found for; None for a motion drawn at random, or stored before this was.
        objective_value: of it, at `basis.sample_times`; None where there is no objective.
        distances: room that it leaves at its narrowest, by the limit in space [m].
        support: how a robot stands that moves on one foot; None for one that stands on its base.
        digests: of the robot's kinematics, limits and drives that it was made for, as `robot_digests` gives them; empty
            of one stored before they were.
        not_checked: what was not watched in space and why, such as "no capsules: self-collision and table NOT checked";
            "" where all was.

    >>> motion = jb.random_excitation(jb.load_robot("cobot6"), period=4.0, seed=1)
    >>> motion.family, motion.duration, motion.tightest.smallest > 0.0  # no limit is reached
    ('fourier', 4.0, True)
    >>> q, dq, ddq = motion.evaluate([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> q.shape, bool(abs(q[-1] - motion.home).max() < 1e-9)  # home again
    ((5, 6), True)
    """

    robot_name: str
    basis: Basis
    home: Array
    weights: Array
    condition_number: float
    margins: tuple[JointMargins, ...]
    seed: int
    objective: str | None = None
    objective_value: float | None = None
    distances: Mapping[str, float] = field(default_factory=dict[str, float])
    support: Support | None = None
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    not_checked: str = ""

    def __repr__(self) -> str:
        """Return one line: robot, family, duration, condition number, and what it leaves to the nearest limit."""
        tightest = self.tightest
        room = f"{tightest.joint} leaves {tightest.smallest:.1%} of a limit"
        condition = f"condition number {self.condition_number:.4g}"
        return f"<Excitation of {self.robot_name}: {self.family}, {self.duration:g} s, {condition}; {room}>"

    def _repr_html_(self) -> str:
        facts = [
            ("motion", f"{self.family}, {self.duration:g} s, seed {self.seed}"),
            ("condition number", f"{self.condition_number:.4g}"),
            ("nearest limit", f"{self.tightest.joint}, {self.tightest.smallest:.1%} of it left"),
            *((("not checked", self.not_checked),) if self.not_checked else ()),
        ]
        return card(f"Excitation of {self.robot_name}", facts, self.plot)

    def plot(self) -> Figure:
        """Draw position and velocity of each joint over time.

        Returns:
            The figure; a notebook shows it, `savefig` writes it.

        Raises:
            MissingExtra: matplotlib is not installed; names the extra.
        """
        need_figures("the picture of a plan")
        from jointbench.drawing import Curves, joint_figure

        time = np.linspace(0.0, self.duration, _DRAWN_TIMES)
        q, dq, _ = self.evaluate(time)
        joints = [margins.joint for margins in self.margins]
        quantities = [  # the kind of its joints is in the robot's file alone
            Curves("position", len(joints) * ["rad or m"], [q]),
            Curves("velocity", len(joints) * ["rad/s or m/s"], [dq]),
        ]
        return joint_figure(f"{self.robot_name}: {self.family}", time, joints, quantities)

    def to_pandas(self, sample_period: float = 0.01) -> Any:
        """Return the motion as a table of pandas (a DataFrame), indexed by time [s].

        Args:
            sample_period: between two rows [s], above 0.

        Returns:
            For "j1" j1.position, j1.velocity and j1.acceleration [rad or m, and per s and s²].

        Raises:
            ExcitationError: the period is not above 0, or longer than the motion.
            MissingExtra: pandas is not installed; names the extra.
        """
        if not 0.0 < sample_period <= self.duration:
            raise ExcitationError(f"sample_period = {sample_period:g} s must be above 0, up to {self.duration:g} s")
        time = np.arange(round(self.duration / sample_period) + 1) * sample_period
        columns: dict[str, Any] = {"time_s": time}
        motion = self.evaluate(time)
        for k, margins in enumerate(self.margins):
            for name, values in zip(("position", "velocity", "acceleration"), motion, strict=True):
                columns[f"{margins.joint}.{name}"] = values[:, k]
        return data_frame(columns, "time_s", "the table of a plan")

    @property
    def family(self) -> str:
        """Name of its family."""
        return family_name(self.basis)

    @property
    def duration(self) -> float:
        """Duration from rest at home to rest at home [s]."""
        return self.basis.duration

    @property
    def period(self) -> float:
        """Period of repeated playback [s]: the duration of the motion, not the period of a series in it."""
        return self.basis.duration

    @property
    def tightest(self) -> JointMargins:
        """Margins of the joint that has least left."""
        return min(self.margins, key=lambda margins: margins.smallest)

    def evaluate(self, time: ArrayLike) -> tuple[Array, Array, Array]:
        """Position [rad], velocity [rad/s] and acceleration [rad/s²] at times [s], shape (n_times, n_joints) each.

        Raises:
            ExcitationError: time is not one-dimensional.
        """
        times = np.asarray(time, dtype=np.float64)
        if times.ndim != 1:
            raise ExcitationError(f"time has shape {times.shape}; give the times as one row, shape (n_times,)")
        displacement_from_home, dq, ddq = displacement(self.basis, self.weights, times, 2)
        return self.home + displacement_from_home, dq, ddq

    def scaled(self, share: float) -> Excitation:
        """Return the same motion with a share of its way about home, and so of its speed.

        Args:
            share: above 0 to 1.

        Raises:
            ExcitationError: the share is none, or the motion is one on one foot, whose balance depends on its size.
        """
        check_share("share", share)
        if self.support is not None:
            raise ExcitationError(
                f"a motion of {self.robot_name} on one foot cannot be made smaller: its balance was planned for its "
                "size; plan one within smaller ranges"
            )
        return replace(
            self,
            weights=share * self.weights,
            condition_number=math.nan,
            margins=tuple(margins.scaled(share) for margins in self.margins),
            objective=None,
            objective_value=None,
            distances={},
        )

    def fold(self, play_tick: NDArray[np.intp], sample_period: float) -> tuple[NDArray[np.intp], int]:
        """Lay all samples of a played motion over the shortest motion that has them all, for averaging.

        Playings lie upon each other, and so do the periods of a series between its ramps, if they are a whole number
        of samples. What is left goes on without a jump from its ramp through one period to its other ramp.

        Args:
            play_tick: samples since the motion began, negative where it was not playing, shape (n,).
            sample_period: [s].

        Returns:
            Sample of the folded motion that each is of, negative as before, shape (n,); and its number of samples.
        """
        n_samples = round(self.duration / sample_period)
        repeated = self.basis.repetition
        folded_tick = play_tick % n_samples
        period = round(repeated.period / sample_period)
        if abs(repeated.period / sample_period - period) < _WHOLE_SAMPLE_TOLERANCE:
            first_sample = int(np.ceil(repeated.start / sample_period - _WHOLE_SAMPLE_TOLERANCE))
            completed_periods = np.clip((folded_tick - first_sample) // period, 0, repeated.times - 1)
            folded_tick, n_samples = folded_tick - completed_periods * period, n_samples - (repeated.times - 1) * period
        return np.where(play_tick < 0, play_tick, folded_tick), n_samples

    def save(self, path: str | Path) -> Path:
        """Write the motion as JSON; `load_excitation` reads it.

        Raises:
            FileNotWritten: the file cannot be written; what was there is as it was.
        """
        return write_file(path, sealed_json(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Return the motion as plain numbers, lists and strings, for JSON or TOML."""
        values = {"robot": self.robot_name, **motion_to_dict(self.basis, self.home, self.weights)}
        if self.objective is not None:
            values |= {"objective": self.objective, "objective_value": self.objective_value}
        if self.distances:
            values["distances_m"] = dict(self.distances)
        if self.support is not None:
            values["support"] = self.support.to_dict()
        if self.digests:
            values["robot_digests"] = dict(self.digests)
        if self.not_checked:
            values["not_checked"] = self.not_checked
        return values | {
            "condition_number": self.condition_number,
            "margins": [
                {key: value for key, value in asdict(margins).items() if value is not None} for margins in self.margins
            ],
            "seed": self.seed,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Excitation:
        """Make a motion from what `to_dict` returned.

        Raises:
            ExcitationError: an unknown family, or entries that are missing, damaged or contradict each other.
        """
        basis, home, weights = motion_from_dict(values)
        try:
            objective, value = values.get("objective"), values.get("objective_value")
            return Excitation(
                robot_name=str(values["robot"]),
                basis=basis,
                home=home,
                weights=weights,
                condition_number=float(values["condition_number"]),
                margins=tuple(JointMargins(**margins) for margins in values["margins"]),
                seed=int(values["seed"]),
                objective=None if objective is None else str(objective),
                objective_value=None if value is None else float(value),
                distances={str(name): float(room) for name, room in dict(values.get("distances_m", {})).items()},
                support=Support.from_dict(values["support"]) if "support" in values else None,
                digests={str(name): str(digest) for name, digest in dict(values.get("robot_digests", {})).items()},
                not_checked=str(values.get("not_checked", "")),
            )
        except KeyError as error:
            raise ExcitationError(f"the stored excitation has no {error}; it was not written by to_dict") from error
        except (TypeError, ValueError) as error:
            raise ExcitationError(f"the stored excitation is damaged: {error}") from error
