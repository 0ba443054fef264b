"""A bench of boards: all joints of one robot, greeted, checked, configured and moved together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench.bench_checks import check_boards, check_feet, check_joints, check_lines
from jointbench.bench.bench_file import BenchFile, read_bench_file
from jointbench.bench.board import Board
from jointbench.bench.clock import Clock
from jointbench.bench.connections import Connections, check_load
from jointbench.bench.feedforward import Feedforward
from jointbench.bench.gate import THERE, Trajectory, check_repeats, pose_within_reach
from jointbench.bench.identity import Facts, Identity
from jointbench.bench.ledger import Ledger
from jointbench.bench.line import Line
from jointbench.bench.motion_watch import fall_watch
from jointbench.bench.playback import play
from jointbench.bench.settings import JointSettings, default_settings, motor_settings, softened, stream_registers
from jointbench.bench.subscribers import ProgressCallback, Sink, Subscriber
from jointbench.errors import BenchLost, BoardError, BoardSilent, FileError
from jointbench.model import Robot, load_robot
from jointwire import Frame, State, decode_samples, own_schema

if TYPE_CHECKING:
    from jointbench.bench.gate import Gate

# A board that streams sends a block each 64 ms; on a bad or shared line several may be needed for one to come.
_POSITIONS_US = 1_000_000
_OF_SAMPLE_RATE = 0.2  # highest cut-off of boards' filters where samples are sent each few ticks


class Bench:
    """Boards in joint order behind one clock.

    Of joints that share motors, the board of a joint drives the motor of that joint's own drive. A board without a
    motor, such as a passive joint's, measures while the others drive, and so do those at the robot's feet.

    As a context manager it leaves no motor on: leaving it stops every board and closes the ports.

    Attributes:
        file: what the bench file says.
        robot: whose joints the boards drive.
        clock: the target's time.
        lines: what the boards are on; several may share one.
        boards: of the joints, in the robot's joint order.
        foot_boards: of the feet whose sensors are read, in the robot's order of feet.
        identities: of each board, the joints' first, once connected.
        settings: of each joint, once configured.
        subscribers: told of the bench's events, such as its live feed.

    >>> with jb.open_bench("bench.toml") as bench:  # its ports are open, and nothing is sent before connect()
    ...     print(bench.name, bench.robot.name, {board.joint: board.node for board in bench.boards})
    arm cobot6:2 {'j1': 1, 'j2': 2}
    """

    def __init__(
        self,
        file: BenchFile,
        around: Callable[[Clock], Clock] | None = None,
        watching: bool = False,
        on_connect: Callable[[Bench], None] | None = None,
    ) -> None:
        """Open ports and clock; nothing is sent to a board yet.

        Args:
            file: where the boards are.
            around: as in `open_bench`.
            watching: whether the bench is only watched: its ports are given back when another program wants them.
            on_connect: called with the bench once it is connected.
        """
        self.file = file
        self.robot: Robot = load_robot(file.robot)
        check_joints(file, self.robot)
        self._connections = Connections(file, around=around, watching=watching)
        self.clock: Clock = self._connections.clock
        self.lines: tuple[Line, ...] = self._connections.lines
        boards = self._connections.boards
        self.boards: tuple[Board, ...] = tuple(boards[joint] for joint in self.robot.joint_names)
        self.foot_boards: tuple[Board, ...] = tuple(
            boards[foot.name] for foot in self.robot.feet if foot.name in boards
        )
        self.identities: tuple[Identity, ...] = ()
        self.settings: tuple[JointSettings, ...] = ()
        self.subscribers: list[Subscriber] = []
        self._on_connect = on_connect
        self._stood: Array | None = None

    def connect(self) -> None:
        """Greet every board, stop it if it was left driving, and read its registers; the bench then has a live feed.

        Connected before, it takes note of a stop that somebody who looks on asked for while nothing moved.

        Raises:
            BoardSilent, BoardLost: a board does not answer.
            BoardRefused: a board's firmware is another release's; says what differs and how to update it; or a board is
                another joint's, or its facts do not suit robot or bench file.
        """
        self.publish("connecting")
        identities: list[Identity] = []
        for board in self.all_boards:
            identities.append(board.greet())
            if board.is_driving:
                board.line.stop_all()  # of a board's two motors, one that is stopped alone trips the other
                board.stop()
            board.need_our_schema()
        for board in self.all_boards:
            board.read_registers()
        self.identities = tuple(identities)
        check_boards(self.robot, self.boards, self.facts)
        check_feet(self.foot_boards, self.foot_facts, self.facts[0])
        check_lines(self.file, (*self.facts, *self.foot_facts))
        if self._on_connect:
            self._on_connect(self)

    def publish(self, event: str, **fields: Any) -> None:
        """Tell all subscribers of an event; `Subscriber` says which there are."""
        for subscriber in self.subscribers:
            subscriber.on_event(event, **fields)

    def check_stop(self) -> None:
        """Let a stop that a subscriber was asked for take effect.

        Raises:
            StopAsked: it was; says by whom.
        """
        for subscriber in self.subscribers:
            subscriber.check_stop()

    @property
    def name(self) -> str:
        """Name in its file."""
        return self.file.name

    @property
    def all_boards(self) -> tuple[Board, ...]:
        """The joints', then the feet's."""
        return self.boards + self.foot_boards

    @property
    def facts(self) -> tuple[Facts, ...]:
        """Registers of each joint's board as last read or written; none before `connect`."""
        return self._facts_of(self.boards)

    @property
    def foot_facts(self) -> tuple[Facts, ...]:
        """Registers of each foot's board, as `facts`."""
        return self._facts_of(self.foot_boards)

    def configure(
        self, settings: Sequence[JointSettings] | None = None, sample_every: int | None = None, **changes: Any
    ) -> None:
        """Set every board's servo, limits, filter and stream, and read back that they are set.

        Args:
            settings: of each joint, in order; by default the simple rule with the bench file's overrides.
            sample_every: ticks from one sample that boards stream to the next; by default the bench file's.
            changes: fields of JointSettings to replace in all of them, such as `cutoff_hz=50.0`.

        Raises:
            BoardRefused: a value does not fit, or reads back as another; or a board is driving.
            BoardFault: a fault is latched on a board; clear() first.
            FileError: a shared line cannot carry what its boards will stream.
        """
        self._need_connection()
        if settings is None:
            rule = default_settings(self.robot, self.file.servos, self.file.terms.limits)
            soft = softened(rule, self.robot.drive_train, self.facts)
            settings = [
                by_rule if joint.name in self.file.servos else softer
                for joint, by_rule, softer in zip(self.robot.independent_joints, rule, soft, strict=True)
            ]
        interval = self.file.sample_every if sample_every is None else sample_every
        if interval > 1:  # what moves faster than the samples would show as slow
            slow = _OF_SAMPLE_RATE / (interval * self.facts[0].tick_period)
            settings = [
                replace(joint_settings, cutoff_hz=min(joint_settings.cutoff_hz, slow)) for joint_settings in settings
            ]
        self.settings = tuple(replace(joint_settings, **changes) for joint_settings in settings)
        motors = motor_settings(self.settings, self.robot.drive_train)
        for board, motor, fact in zip(self.boards, motors, self.facts, strict=True):
            board.set_registers(motor.registers(board.joint, board.node, fact, interval))
        for board, fact in zip(self.foot_boards, self.foot_facts, strict=True):
            board.set_registers(stream_registers(fact, interval))
        facts = {board.joint: fact for board, fact in zip(self.all_boards, self.facts + self.foot_facts, strict=True)}
        for entries in self.file.lines:
            if len(entries) > 1:
                check_load(entries, [facts[entry.joint] for entry in entries])

    def positions(self) -> Array:
        """Measure the joints' positions [rad], shape (n_joints,), by one sample of each board, motors off or on."""
        self._need_connection()
        newest: dict[int, int] = {}
        for board, fact in zip(self.boards, self.facts, strict=True):
            board.on_data = partial(_note_position, newest, board.node, fact.position_channel)
            if not board.is_driving:
                board.write_register("stream.always", 1)
        deadline = self.clock.now_us() + _POSITIONS_US
        while len(newest) < len(self.boards) and (remaining_us := deadline - self.clock.now_us()) > 0:
            self.clock.wait(remaining_us)
        for board in self.boards:
            board.on_data = None
            if not board.is_driving:
                board.write_register("stream.always", 0)
        for board in self.boards:
            if board.node not in newest:
                raise BoardSilent(board.joint, board.node, "answers, but streams no samples when told to")
        counts = np.array([fact.position_counts for fact in self.facts]) / (2.0 * np.pi)
        motors = np.array([newest[board.node] for board in self.boards]) / counts
        return np.linalg.solve(self.robot.transmission_matrix, motors).astype(np.float64)

    def admit(self, trajectory: Trajectory, repeats: int = 1) -> None:
        """Check that a motion may be played here from where the joints are, with all motors off.

        `play` asks the same of whatever it is given; ask before you move to a motion's start.

        Args:
            trajectory: what is to be played.
            repeats: how often.

        Raises:
            ExcitationError: it is of another robot, or would break a limit of this robot, of the bench file, or of the
                boards; or a joint stands outside its window.
            BoardSilent: a board streams no samples.
        """
        check_repeats(repeats)
        self.gate(self.positions()).check(trajectory)

    def gate(self, stands: Array | None = None) -> Gate:
        """Return the gate: limits that hold now, and the check of a motion against them.

        Args:
            stands: where the joints are [rad], shape (n_joints,); asked of the boards where the bench file says how far
                joints may go from there, and otherwise not known where not given.
        """
        from jointbench.bench.gate import Gate  # brings the proofs of excitations: only to programs that move

        if stands is None and "position_rad" in self.file.terms.limits:
            stands = self.positions()
        if self._stood is None:
            self._stood = stands
        return Gate.of_boards(self.robot, self.boards, self.settings, self.file.terms.limits, stands, self._stood)

    def move_to(
        self,
        pose: Sequence[float] | Array,
        speed: float = 0.5,
        progress: ProgressCallback | None = None,
        *,
        standing: bool = True,
    ) -> None:
        """Move all joints to a pose by a minimum-jerk motion, without recording; motors are off afterwards.

        It goes slower than `speed` where the torque or current that it takes would be too much.

        Args:
            pose: [rad], shape (n_joints,). A joint without a motor stays where it is; its place here is its home.
            speed: fraction of the robot's velocity and acceleration limits.
            progress: called some times a second.
            standing: as in `play`.

        Raises:
            ExcitationError: a joint without a motor is asked elsewhere, one stands outside its window or is asked out
                of it, or the way takes more torque or current than is allowed at any speed.
            BoardFault, BoardLost, BoardSilent, FootOffGround, StuckFootSensor, RobotFell: as in `play`.
        """
        start = self.positions()
        goal = pose_within_reach(self.robot, self.facts, start, np.asarray(pose, dtype=float))
        if np.all(np.abs(goal - start) < THERE):
            return
        step = self.facts[0].tick_period * self.facts[0].knot_ticks
        self.play(self.gate(start).fastest_move(start, goal, step, speed), progress=progress, standing=standing)

    def play(
        self,
        trajectory: Trajectory,
        repeats: int = 1,
        recorder: Sink | None = None,
        progress: ProgressCallback | None = None,
        *,
        standing: bool = True,
        feedforward: Feedforward | None = None,
    ) -> Ledger | None:
        """Play a trajectory on all boards at once; the joints must be at its start.

        A robot whose base is a foot with a board is watched by that foot's forces: it must stand before it moves, and
        is stopped when it falls, some 0.3 s after its foot began to tip.

        Whatever goes wrong, an error or Ctrl-C: every board is told to stop first, the recording is closed and stays
        readable, and only then the error goes on.

        Args:
            trajectory: what to play.
            repeats: how often.
            recorder: records everything received; it is closed afterwards.
            progress: called some times a second with how it goes.
            standing: whether a robot whose base is a foot stands on it; False for one that hangs, which is not watched.
            feedforward: currents that the boards add to their servos' commands; None: they add none.

        Returns:
            The recording's ledger, or None without a recorder.

        Raises:
            ExcitationError: it is of another robot, would break a limit of this robot, of the bench file or of the
                boards, cannot be made into knots, or moves a joint that nothing drives.
            BoardFault: a board tripped.
            BoardLost, BoardSilent: a board is gone, or says nothing any more.
            BoardRefused: a board refused to load, arm or start.
            FootOffGround, StuckFootSensor: it does not stand, or nobody can tell.
            RobotFell: it fell.
        """
        self._need_connection()
        watched = standing and self.foot_boards
        falls = fall_watch(self.robot, self.foot_boards, self.foot_facts) if watched else None
        return play(self, trajectory, repeats, recorder, progress, falls, feedforward)

    def stop(self) -> list[str]:
        """Switch all motors off: first every board is told, then each one's word is awaited.

        Returns:
            Joints and feet whose boards did not confirm; their own link time-out stops them.
        """
        for line in self.lines:
            line.stop_all()
        unconfirmed: list[str] = []
        for board in self.all_boards:
            try:
                if not board.why_lost:
                    board.stop()
                    continue
            except (BoardError, BenchLost):  # a virtual bench that has ended has taken its boards with it
                pass
            unconfirmed.append(board.joint)
        self.publish("stopped", unconfirmed=unconfirmed)
        return unconfirmed

    def clear(self) -> None:
        """Acknowledge latched faults; look at their reason first."""
        for board in self.all_boards:
            board.hello()
            if board.state is State.FAULT:
                board.clear()

    def save(self) -> None:
        """Have every board keep its calibration (the "persist" registers) over a reset.

        Raises:
            BoardRefused: a board is not at rest, or cannot write its flash.
        """
        self._need_connection()
        for board in self.all_boards:
            board.save()

    def provenance(self, **more: Any) -> dict[str, Any]:
        """Return this bench's part of a run.toml; `more` is added to it."""
        self._need_connection()
        boards = [
            {
                "node": board.node,
                "joint": board.joint,
                "url": board.port.url,
                **asdict(identity),
                "schema_hash": f"{identity.schema_hash:08x}",
                "registers": facts.registers,
                **({"on_foot": True} if board in self.foot_boards else {}),
            }
            for board, identity, facts in zip(
                self.all_boards, self.identities, self.facts + self.foot_facts, strict=True
            )
        ]
        return {
            "robot": self.file.robot,
            "clock": self.clock.name,
            "common_ticks": self.clock.common_ticks,
            "schema_hash": f"{own_schema().hash:08x}",
            **more,
            "bench": {"name": self.file.name, **self.file.information},
            "settings": {
                board.joint: asdict(settings)
                for board, settings in zip(self.boards, self.settings, strict=False)
                if board.has_motor
            },
            "board": boards,
        }

    def close(self) -> None:
        """Stop what may drive, then close ports and clock; closing twice is harmless."""
        try:
            if any(board.is_driving and not board.why_lost for board in self.all_boards) and self.identities:
                self.stop()
        finally:
            self._connections.close()
            self.publish("closed")

    def __enter__(self) -> Bench:
        """Return the bench."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave no motor on."""
        self.close()

    def _facts_of(self, boards: Sequence[Board]) -> tuple[Facts, ...]:
        return tuple(board.facts for board in boards if board.facts) if self.identities else ()

    def _need_connection(self) -> None:
        if not self.facts:
            raise FileError(f"bench {self.file.name!r} is open but not connected; call connect() first")


def open_bench(
    path: str | Path, around: Callable[[Clock], Clock] | None = None, *, robot: str | Path | None = None
) -> Bench:
    """Open the bench of a live bench file; `connect` and `configure` it before moving anything.

    Args:
        path: of the file.
        around: makes the clock that bench and boards wait on from that of the target, as
            `jointbench.testing.roles` does; none is put around it by default.
        robot: name or file that takes the place of the bench file's, such as the one with commissioned values.

    Raises:
        FileError: the file is wrong, or its boards are not those of the robot.
        RobotError, FileError: the robot cannot be loaded.
        BoardLost: a port cannot be opened.
        BenchLost: the virtual bench does not answer.

    >>> jb.open_bench("lost.toml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    jointbench.errors.FileError: there is no bench file lost.toml; it says where each joint's board is, and ...
    """
    file = read_bench_file(path)
    return Bench(file if robot is None else replace(file, robot=str(robot)), around, on_connect=_serve_feed)


def _serve_feed(bench: Bench) -> None:
    from jointbench.bench.feed_server import serve_feed  # brings asyncio: only to programs with a bench

    serve_feed(bench)


def _note_position(newest: dict[int, int], node: int, channel: str, frame: Frame) -> None:
    positions = decode_samples(frame).columns.get(channel)
    if positions is not None and len(positions):
        newest[node] = int(positions[-1])
