"""Friction with memory of a model: its columns, filtered as the torque was, and its prediction with state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import ShapeError
from jointbench.identification.friction.memory import Carriers, FrictionWithMemory
from jointbench.identification.judgement import TwoErrors
from jointbench.identification.model import FrictionState, Prediction
from jointbench.identification.observations import Observations
from jointbench.identification.parallel_filter import Stretch, spread
from jointbench.identification.rows import BaseColumns, Block, ChangedRows, JointRows, PredictedTorqueRows, Rows
from jointbench.model import BaseParameters
from jointbench.model.chosen_columns import DriveTerms
from jointbench.model.model_columns import drive_parameter_names
from jointbench.signals import LowPass, Motion

_MOTION_HZ = 40.0
"""Cut-off of the motion that friction goes by, at least; 20 to 80 Hz are alike, less smears where it turns over."""

_OF_RATE = 0.2
"""Of the sample rate, at most."""

_AT_ONCE = 8
"""Columns of an axis that are computed and filtered at once."""

_FRICTION = (".viscous", ".coulomb")


@dataclass(frozen=True, eq=False)
class Axis:
    """Axis with friction of its own: a joint, or a motor that several joints turn.

    Attributes:
        name: of the joint or the motor, as of its Coulomb friction.
        shares: its position by those of the joints, and each joint's torque by its own, shape (n_joints,).
    """

    name: str
    shares: Array

    @property
    def joint(self) -> int | None:
        """The one joint that it is of, whose load is its load."""
        turned = np.flatnonzero(self.shares)
        return int(turned[0]) if len(turned) == 1 else None


def axes_of(base: BaseParameters) -> tuple[Axis, ...]:
    """Everything whose Coulomb friction is one base parameter by itself."""
    terms, names = DriveTerms.of(base.robot), drive_parameter_names(base.robot)
    alone = {
        name
        for name, row in zip(base.leading_names, base.grouping, strict=True)
        if name.endswith(".coulomb") and np.count_nonzero(row) == 1
    }
    columns, axes = terms.column[terms.rubbing], list[Axis]()
    for column, name in enumerate(names):
        if name in alone and np.any(columns == column):
            shares = terms.speeds[:, int(np.flatnonzero(columns == column)[0])]
            axes.append(Axis(name.removesuffix(".coulomb"), np.where(base.robot.modelled, shares, 0.0)))
    return tuple(axes)


def loading(base: BaseParameters, parameters: Array) -> Array:
    """The base parameters whose torque is load to friction, zero in place of the others, shape (rank,)."""
    return np.where([name.endswith(_FRICTION) for name in base.leading_names], 0.0, parameters)


@dataclass(frozen=True, eq=False)
class MemoryColumns:
    """Friction columns of a recording, stretch by stretch as its blocks come.

    Stops go on from stretch to stretch, so that they are the same wherever the log is cut; in each part without a gap
    they begin in their middle. Friction's motion has a cut-off of its own, of 40 Hz at least; load is that of the
    regressor's motion.

    Attributes:
        observations: of the recording.
        axes: which rub, and on which grids.
        load: base parameters whose torque is load to friction, shape (rank,); None where no grid asks for load.
        most: rows of time that are asked for: of a log with more, stretches spread evenly over it, in which stops begin
            in their middle; None: all.
    """

    observations: Observations
    axes: Sequence[tuple[Axis, Carriers]]
    load: Array | None = None
    most: int | None = None

    def on_joint(self, joint: int) -> list[int]:
        """Indices of the axes that push a joint, in the order of their columns."""
        return [number for number, (axis, _) in enumerate(self.axes) if axis.shares[joint] != 0.0]

    @cached_property
    def asked(self) -> frozenset[int]:
        """First row of each stretch whose columns are asked for."""
        own = [stretch for stretch in self.observations.stretches if stretch.n_rows]
        return frozenset(stretch.rows.start for stretch in (own if self.most is None else spread(own, self.most)))

    def blocks(self) -> Iterator[dict[int, Array]]:
        """Yield by joint the columns of its axes one after the other, times its share in them, shape (m, n_rows).

        Nothing of joints without an axis, and of stretches that are not asked for.
        """
        state: list[Array | None] = [None] * len(self.axes)
        for stretch in self.observations.stretches:
            if stretch.n_rows and stretch.rows.start in self.asked:
                yield self._filtered(stretch, state)
            elif stretch.n_rows:
                state = [None] * len(self.axes)
                yield {}

    def _filtered(self, stretch: Stretch, state: list[Array | None]) -> dict[int, Array]:
        """A stretch's columns; the state of the stops goes from one to the next."""
        parallel = self.observations.filter
        felt = parallel.low_pass.memory + parallel.board_memory + 2
        span = stretch.around(felt + max(self._low_pass.memory, parallel.low_pass.memory))
        fresh = span.start == stretch.part.start
        first = 0 if fresh else stretch.own.start - felt - span.start
        carried = stretch.own.stop - felt - span.start
        motion, load, rows = parallel.motion(span, self._low_pass), self._load(span), stretch.places(span)
        at_rows: dict[int, list[Array]] = {}
        # Few columns after the others: all of them at every sample would be most of what a fit keeps in memory.
        for number, (axis, carriers) in enumerate(self.axes):
            position, velocity = motion.q @ axis.shares, motion.dq @ axis.shares
            stops = np.empty((len(position), len(carriers.thresholds)))
            stops[first:] = carriers.stops(position[first:], None if fresh else state[number])
            stops[:first] = stops[first]
            if carried >= first:
                state[number] = stops[carried].copy()
            own = load[:, axis.joint] if carriers.load and axis.joint is not None else np.zeros_like(position)
            for piece, part in carriers.pieces(_AT_ONCE):
                columns = piece.columns(position, velocity, own, stops[:, part]).T
                for joint in np.flatnonzero(axis.shares).tolist():
                    filtered = axis.shares[joint] * parallel.filtered(joint, columns)[:, rows]
                    at_rows.setdefault(joint, []).append(filtered)
        return {joint: np.concatenate(each) for joint, each in at_rows.items()}

    def _load(self, span: slice) -> Array:
        """Load of each joint at the samples of a span [N·m or N], shape (n, n_joints)."""
        if self.load is None:
            return np.zeros((span.stop - span.start, self.observations.n_joints))
        motion: Motion = self.observations.filter.motion(span)
        joints = self._regressor(motion.q, motion.dq, motion.ddq)
        return np.stack([self.load[which] @ columns for which, columns in joints], axis=1)

    @cached_property
    def _low_pass(self) -> LowPass:
        low_pass = self.observations.filter.low_pass
        own = max(low_pass.cutoff_Hz, min(_MOTION_HZ, _OF_RATE / low_pass.sample_period))
        return LowPass(own, low_pass.sample_period, low_pass.order)

    @cached_property
    def _regressor(self) -> BaseColumns:
        return BaseColumns(self.observations.filter.base)


class MemoryTerms(NamedTuple):
    """Friction with memory as plain tables, for what computes one sample after the other.

    Attributes:
        shares: each axis' position by those of the joints, shape (n_axes, n_joints).
        joints: the joint whose load is the axis', or -1, shape (n_axes,).
        stops: axis and threshold [rad or m] of each stop, shape (n_stops, 2).
        terms: axis; number of the stop, or -1; width of tanh; amplitude, 0: 1, 1: |load|, 2: exp(-(v / s)²); s; weight;
            shape (n_terms, 6).
    """

    shares: Array
    joints: Array
    stops: Array
    terms: Array


def no_memory(n_joints: int) -> MemoryTerms:
    """Tables without entries."""
    return MemoryTerms(np.zeros((0, n_joints)), np.zeros(0), np.zeros((0, 2)), np.zeros((0, 6)))


@dataclass(frozen=True, eq=False)
class ModelMemory:
    """Friction with memory of some axes, in place of their Coulomb friction, fitted to all rows.

    torque = columns @ parameters + Σ shares friction(shares · q, shares · dq, load)

    Attributes:
        base: what the parameters stand for.
        parameters: of links and drives beside it, those of its axes' Coulomb friction zero, shape (rank,). Weights that
            are not negative have no error bars of the usual kind; so the model's own parameters, with theirs, are those
            beside Coulomb and viscous friction.
        axes: with their friction.
        plain: errors that the model has with Coulomb and viscous friction, over the same rows.
        held_out_rms: error over all rows, each fitted without the fifth of the recording that it is in
            [N·m or N], shape (n_joints,), nan of joints without rows.
        plain_held_out_rms: the same with Coulomb and viscous friction.
    """

    base: BaseParameters
    parameters: Array
    axes: tuple[tuple[Axis, FrictionWithMemory], ...]
    plain: TwoErrors
    held_out_rms: Array
    plain_held_out_rms: Array

    @property
    def n_stops(self) -> int:
        """Number of stop operators, which are numbers that friction remembers."""
        return sum(len(friction.carriers.thresholds) for _, friction in self.axes)

    @cached_property
    def load(self) -> Array:
        """Base parameters whose torque is load to friction, shape (rank,)."""
        return loading(self.base, self.parameters)

    @property
    def sentence(self) -> str:
        """Sentence on its errors on rows that it was not fitted to."""
        ours, plain = (np.nansum(rms**2) ** 0.5 for rms in (self.held_out_rms, self.plain_held_out_rms))
        listed = "; ".join(f"{axis.name} {friction.family}" for axis, friction in self.axes)
        return (
            f"friction with memory, fitted to all rows: on held-out rows, those at rest too, the torque error is "
            f"{ours / plain:.0%} of that with Coulomb and viscous friction ({listed})"
        )

    def at(self, q: Array, dq: Array) -> FrictionState:
        """State of a robot that has gone on for long as it goes now: all stops slip, those at rest are in their middle.

        Args:
            q, dq: joint position [rad or m] and velocity [rad/s or m/s], shape (n_joints,).
        """
        slips = [np.full(len(f.carriers.thresholds), np.sign(axis.shares @ dq)) for axis, f in self.axes]
        return FrictionState(np.array(q, dtype=np.float64), np.concatenate(slips) if slips else np.zeros(0))

    def torque(self, q: Array, dq: Array, load: Array, state: FrictionState) -> Prediction:
        """Friction of a motion, sample after sample.

        Args:
            q, dq: joint position [rad or m] and velocity [rad/s or m/s], shape (n, n_joints), n > 0.
            load: torque before friction [N·m or N], of that shape.
            state: before the first sample.

        Raises:
            ShapeError: the state is of another model.
        """
        if state.stops.shape != (self.n_stops,) or state.position.shape != q.shape[1:]:
            raise ShapeError(
                f"the friction state has {state.stops.size} stops and {state.position.size} joints; this model's has "
                f"{self.n_stops} and {q.shape[1]}: give one that this model's own predictions left"
            )
        torque, left = np.zeros_like(q), list[Array]()
        ends = np.cumsum([0, *(len(friction.carriers.thresholds) for _, friction in self.axes)])
        for (axis, friction), (low, high) in zip(self.axes, pairwise(ends.tolist()), strict=True):
            carriers, position = friction.carriers, q @ axis.shares
            stops = carriers.stops(position, state.stops[low:high], float(state.position @ axis.shares))
            own = load[:, axis.joint] if axis.joint is not None else np.zeros(len(q))
            friction_torque = carriers.columns(position, dq @ axis.shares, own, stops) @ friction.weights
            torque += friction_torque[:, None] * axis.shares
            left.append(stops[-1])
        return Prediction(torque, FrictionState(q[-1].copy(), np.concatenate(left) if left else np.zeros(0)))

    def steady(self, name: str, velocity: Array, load: Array) -> Array:
        """Friction of an axis at steady velocity [N·m or N]: the curve to look at, shape (n,).

        Raises:
            KeyError: no axis has this name.
        """
        return dict((axis.name, friction) for axis, friction in self.axes)[name].steady(velocity, load)

    def predicted(self, rows: Rows, observations: Observations) -> MemoryRows:
        """Rows whose one column is the torque of base parameters and friction together; its parameter is 1.

        Args:
            rows: with the regressor of the base parameters.
            observations: that they are of.
        """
        return MemoryRows(rows, observations, self)

    def friction_at_rows(self, observations: Observations) -> Iterator[dict[int, Array]]:
        """Yield block by block the friction at the rows of a recording [N·m or N], by joint, shape (n_rows,)."""
        columns = columns_of(observations, [(axis, friction.carriers) for axis, friction in self.axes], self.load)
        weights = [friction.weights for _, friction in self.axes]
        for block in columns.blocks():
            yield {j: np.concatenate([weights[k] for k in columns.on_joint(j)]) @ own for j, own in block.items()}

    def without_friction(self, rows: Rows, observations: Observations) -> BesideMemoryRows:
        """Rows of what is left beside the friction with memory, its weights being known.

        Args:
            rows: to fit.
            observations: that they are of.
        """
        return BesideMemoryRows(rows, observations, self)

    def with_parameters(self, parameters: Array) -> ModelMemory:
        """Return this friction beside other base parameters, shape (rank,)."""
        names = self.base.leading_names
        own = np.isin(names, [f"{axis.name}.coulomb" for axis, _ in self.axes])
        return replace(self, parameters=np.where(own, 0.0, parameters))

    @cached_property
    def terms(self) -> MemoryTerms:
        """The friction as plain tables."""
        joints = [-1 if axis.joint is None else axis.joint for axis, _ in self.axes]
        stops, terms = list[tuple[float, float]](), list[tuple[float, ...]]()
        for number, (_, friction) in enumerate(self.axes):
            carriers = friction.carriers
            amplitudes = [(0.0, 1.0), *([(1.0, 1.0)] if carriers.load else [])]
            amplitudes += [(2.0, speed) for speed in carriers.stribeck_speeds]
            kinds = [(-1.0, width) for width in carriers.widths]
            kinds += [(float(len(stops) + k), 1.0) for k in range(len(carriers.thresholds))]
            stops += [(number, threshold) for threshold in carriers.thresholds]
            both = [(*kind, *amplitude) for kind in kinds for amplitude in amplitudes]
            weights = friction.weights.tolist()
            terms += [(number, *each, w) for each, w in zip(both, weights, strict=True) if w > 0.0]
        return MemoryTerms(
            np.array([axis.shares for axis, _ in self.axes]).reshape(len(self.axes), -1),
            np.array(joints, dtype=np.float64),
            np.array(stops, dtype=np.float64).reshape(-1, 2),
            np.array(terms, dtype=np.float64).reshape(-1, 6),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` reads; arrays stay arrays."""
        return {
            "parameters": self.parameters,
            "axes": [
                {
                    "name": axis.name,
                    "shares": axis.shares,
                    "widths": friction.carriers.widths,
                    "thresholds": friction.carriers.thresholds,
                    "stribeck_speeds": friction.carriers.stribeck_speeds,
                    "load": friction.carriers.load,
                    "weights": friction.weights,
                    "family": friction.family,
                    "held_out_rms": friction.held_out_rms,
                }
                for axis, friction in self.axes
            ],
            "coulomb_viscous": {"all": self.plain.all.to_dict(), "moving": self.plain.moving.to_dict()},
            "held_out_rms": self.held_out_rms,
            "coulomb_viscous_held_out_rms": self.plain_held_out_rms,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any], base: BaseParameters) -> ModelMemory:
        """Read them, with what the base parameters stand for.

        Raises:
            ValueError: arrays do not go together.
        """
        n = base.robot.n_joints
        memory = ModelMemory(
            base,
            np.array(values["parameters"], dtype=np.float64),
            tuple(_axis(each) for each in values["axes"]),
            TwoErrors.from_dict(values["coulomb_viscous"]),
            np.array(values["held_out_rms"], dtype=np.float64),
            np.array(values["coulomb_viscous_held_out_rms"], dtype=np.float64),
        )
        shapes = [("parameters", memory.parameters, base.rank), ("held_out_rms", memory.held_out_rms, n)]
        shapes.append(("coulomb_viscous_held_out_rms", memory.plain_held_out_rms, n))
        for axis, friction in memory.axes:
            shapes.append((f"shares of {axis.name}", axis.shares, n))
            shapes.append((f"weights of {axis.name}", friction.weights, friction.carriers.n_columns))
        for name, array, size in shapes:
            if array.shape != (size,):
                raise ValueError(f"{name} of friction with memory has shape {array.shape}, and must have ({size},)")
        weights = [memory.parameters, *(friction.weights for _, friction in memory.axes)]
        if not np.isfinite(np.concatenate(weights)).all():
            raise ValueError("a number of friction with memory is none")
        return memory


def _axis(values: Mapping[str, Any]) -> tuple[Axis, FrictionWithMemory]:
    grids = [tuple(float(each) for each in values[name]) for name in ("widths", "thresholds", "stribeck_speeds")]
    carriers = Carriers(*grids, load=bool(values["load"]))
    weights, shares = (np.array(values[name], dtype=np.float64) for name in ("weights", "shares"))
    if not all(0.0 < each < np.inf for grid in grids for each in grid):
        raise ValueError(f"a width, threshold or speed of {values['name']}'s friction is not above zero")
    if not (np.isfinite(shares).all() and np.all(weights >= 0.0)):
        raise ValueError(f"a share of {values['name']} is no number, or a weight of its friction below zero")
    held_out = {str(family): float(rms) for family, rms in values["held_out_rms"].items()}
    return Axis(str(values["name"]), shares), FrictionWithMemory(carriers, weights, str(values["family"]), held_out)


@dataclass(frozen=True, eq=False)
class MemoryRows(PredictedTorqueRows):
    """Rows whose one column is the torque that a model gives whose friction has memory; its parameter is 1.

    Attributes:
        rows: with the regressor of the base parameters.
        observations: that they are of.
        memory: of the model.
    """

    observations: Observations
    memory: ModelMemory

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        friction = self.memory.friction_at_rows(self.observations)
        for block, of_joint in zip(self.rows.blocks(), friction, strict=True):
            torque = block.predict(self.memory.parameters)
            for j, own in of_joint.items():
                torque[:, j] += own
            joints = tuple(JointRows(np.zeros(1, dtype=np.intp), column[None]) for column in torque.T)
            yield replace(block, joints=joints, n_parameters=1)


@dataclass(frozen=True, eq=False)
class BesideMemoryRows(ChangedRows):
    """Rows less the friction with memory, whose axes have no Coulomb friction; all complete ones count at their joints.

    Attributes:
        observations: that the rows are of.
        memory: friction with its weights.
    """

    observations: Observations
    memory: ModelMemory

    def blocks(self) -> Iterator[Block]:
        """The rows, block by block."""
        friction = self.memory.friction_at_rows(self.observations)
        kept = self.memory.with_parameters(np.ones(self.n_parameters)).parameters
        for block, of_joint in zip(self.rows.blocks(), friction, strict=True):
            torque, used = block.torque.copy(), block.used.copy()
            for j, own in of_joint.items():
                torque[:, j] -= own
                used[:, j] |= block.complete & bool(block.used[:, j].any())
            joints = tuple(JointRows(which, columns * kept[which][:, None]) for which, columns in block.joints)
            yield replace(block, joints=joints, torque=torque, used=used)


def columns_of(observations: Observations, axes: Sequence[tuple[Axis, Carriers]], load: Array) -> MemoryColumns:
    """Columns of these grids, with load where one of them asks for it."""
    asked = any(carriers.load for _, carriers in axes)
    return MemoryColumns(observations, axes, load if asked else None)
