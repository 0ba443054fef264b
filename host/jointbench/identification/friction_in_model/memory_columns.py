"""Columns of friction with memory: computed at every sample in order of time, filtered as the torque was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.dynamics.drive_columns import drive_parameter_names
from jointbench.dynamics.drive_terms import DriveTerms
from jointbench.identification.friction.memory import Carriers
from jointbench.identification.observations import Observations
from jointbench.identification.observations.stretches import Stretch, spread
from jointbench.identification.rows.motion_rows import BaseColumns
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
    """What rubs by itself: a joint, or a motor that several joints turn.

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
    columns, found = terms.column[terms.rubbing], list[Axis]()
    for column, name in enumerate(names):
        if name in alone and np.any(columns == column):
            shares = terms.speeds[:, int(np.flatnonzero(columns == column)[0])]
            found.append(Axis(name.removesuffix(".coulomb"), np.where(base.robot.modelled, shares, 0.0)))
    return tuple(found)


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
        """Which axes push a joint, in the order of their columns."""
        return [number for number, (axis, _) in enumerate(self.axes) if axis.shares[joint] != 0.0]

    @cached_property
    def asked(self) -> frozenset[int]:
        """First row of each stretch whose columns are asked for."""
        own = [stretch for stretch in self.observations.stretches if stretch.n_rows]
        return frozenset(stretch.rows.start for stretch in (own if self.most is None else spread(own, self.most)))

    def blocks(self) -> Iterator[dict[int, Array]]:
        """By joint the columns of its axes one after the other, times its share in them, shape (m, n_rows).

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
