"""A bench of boards: all joints of one robot, greeted, checked, configured and moved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from jointbench.errors import BenchFileError, BenchLost, BoardError, BoardSilent, ConfigurationDiffers
from jointbench.link.bench_file import BenchFile, read_bench_file
from jointbench.link.board import Board
from jointbench.link.clock import Clock
from jointbench.link.connections import Connections
from jointbench.link.identity import Facts, Identity
from jointbench.link.knots import Trajectory
from jointbench.link.ledger import Ledger
from jointbench.link.line import Line
from jointbench.link.line_load import check_load
from jointbench.link.motion import plan_move
from jointbench.link.playback import ProgressCallback, play
from jointbench.link.servo import default_settings
from jointbench.link.settings import JointSettings
from jointbench.link.sink import Sink
from jointbench.robot import Array, Robot, load_robot
from jointwire import Frame, State, decode_samples, own_schema

# A joint this near to a pose is there: ten times nearer than the boards ask of a start.
_THERE = 0.005  # [rad]
# A board that streams sends a block each 64 ms; on a bad or shared line several may be needed for one to come.
_POSITIONS_US = 1_000_000


class Bench:
    """Boards in joint order behind one clock.

    As a context manager it leaves no motor on: leaving it stops every board and closes the ports.

    Attributes:
        file: what the bench file says.
        robot: whose joints the boards drive.
        clock: the target's time.
        lines: what the boards are on; several may share one.
        boards: in the robot's joint order.
        identities: of each board, once connected.
        settings: of each joint, once configured.
    """

    def __init__(self, file: BenchFile) -> None:
        """Open ports and clock; nothing is sent to a board yet."""
        self.file = file
        self.robot: Robot = load_robot(file.robot)
        _check_joints(file, self.robot)
        self._connections = Connections(file)
        self.clock: Clock = self._connections.clock
        self.lines: tuple[Line, ...] = self._connections.lines
        self.boards = tuple(self._connections.boards[joint] for joint in self.robot.joint_names)
        self.identities: tuple[Identity, ...] = ()
        self.settings: tuple[JointSettings, ...] = ()

    def connect(self) -> None:
        """Greet every board, stop it if it was left driving, and read its registers.

        Raises:
            BoardSilent, BoardLost: a board does not answer.
            SchemaMismatch: a board's firmware is another release's; says what differs and how to update it.
            ConfigurationDiffers: a board is another joint's, or its facts do not suit robot or bench file.
        """
        identities: list[Identity] = []
        for board in self.boards:
            identities.append(board.greet())
            if board.is_driving:
                board.stop()
            board.need_our_schema()
        for board in self.boards:
            board.read_registers()
        self.identities = tuple(identities)
        for board, facts, drive in zip(self.boards, self.facts, self.robot.drives, strict=True):
            _check_facts(board, facts, self.facts[0], drive.ratio)
        _check_lines(self.file, self.facts)

    @property
    def facts(self) -> tuple[Facts, ...]:
        """Each board's registers as last read or written; none before `connect`."""
        return tuple(board.facts for board in self.boards if board.facts) if self.identities else ()

    def configure(self, settings: Sequence[JointSettings] | None = None, **changes: Any) -> None:
        """Set every board's servo, limits and filter, and read back that they are set.

        Args:
            settings: of each joint, in order; by default the simple rule with the bench file's overrides.
            changes: fields of JointSettings to replace in all of them, such as `cutoff_hz=50.0`.

        Raises:
            ConfigurationDiffers: a value does not fit, or reads back as another.
            BoardFault: a fault is latched on a board; clear() first.
            BoardRefused: a board is driving.
            BenchFileError: a shared line cannot carry what its boards will stream.
        """
        self._need_connection()
        settings = settings or default_settings(self.robot, self.file.servos)
        self.settings = tuple(replace(each, **changes) for each in settings)
        for board, each, drive, fact in zip(self.boards, self.settings, self.robot.drives, self.facts, strict=True):
            if board.state is State.FAULT:
                raise board.fault_error()
            wanted = each.registers(board.joint, board.node, drive, fact)
            for name, raw in wanted.items():
                board.write_register(name, raw)
            found = board.read_registers().registers
            for name, raw in wanted.items():
                if found[name] != raw:
                    raise ConfigurationDiffers(
                        board.joint, board.node, f"{name} was set to {raw} and reads back {found[name]}"
                    )
        facts = dict(zip(self.robot.joint_names, self.facts, strict=True))
        for entries in self.file.lines:
            if len(entries) > 1:
                check_load(entries, [facts[entry.joint] for entry in entries])

    def positions(self) -> Array:
        """Where the joints are [rad], shape (n_joints,): one sample of each board, with its motor off or on."""
        self._need_connection()
        newest: dict[int, int] = {}
        for board in self.boards:
            board.on_data = lambda frame, node=board.node: _note_position(newest, node, frame)
            if not board.is_driving:
                board.write_register("stream.always", 1)
        deadline = self.clock.now_us() + _POSITIONS_US
        while len(newest) < len(self.boards) and (left := deadline - self.clock.now_us()) > 0:
            self.clock.wait(left)
        for board in self.boards:
            board.on_data = None
            if not board.is_driving:
                board.write_register("stream.always", 0)
        for board in self.boards:
            if board.node not in newest:
                raise BoardSilent(board.joint, board.node, "answers, but streams no samples when told to")
        counts = np.array([fact.motor_counts for fact in self.facts]) / (2.0 * np.pi)
        motors = np.array([newest[board.node] for board in self.boards]) / counts
        return np.linalg.solve(self.robot.transmission_matrix, motors).astype(np.float64)

    def move_to(
        self, pose: Sequence[float] | Array, speed: float = 0.5, progress: ProgressCallback | None = None
    ) -> None:
        """Move all joints to a pose by a minimum-jerk motion, without recording; motors are off afterwards.

        Args:
            pose: [rad], shape (n_joints,).
            speed: fraction of the robot's velocity and acceleration limits.
            progress: called some times a second.

        Raises:
            BoardFault, BoardLost, BoardSilent: as in `play`.
        """
        start, goal = self.positions(), np.asarray(pose, dtype=float)
        if np.all(np.abs(goal - start) < _THERE):
            return
        step = self.facts[0].tick_period * self.facts[0].knot_ticks
        self.play(plan_move(self.robot, start, goal, step, speed), progress=progress)

    def play(
        self,
        trajectory: Trajectory,
        repeats: int = 1,
        recorder: Sink | None = None,
        progress: ProgressCallback | None = None,
    ) -> Ledger | None:
        """Play a trajectory on all boards at once; the joints must be at its start.

        Whatever goes wrong, an error or Ctrl-C: every board is told to stop first, the recording is closed and stays
        readable, and only then the error goes on.

        Args:
            trajectory: what to play.
            repeats: how often.
            recorder: records everything received; it is closed afterwards.
            progress: called some times a second with how it goes.

        Returns:
            The recording's ledger, or None without a recorder.

        Raises:
            TrajectoryError: it cannot be made into knots.
            BoardFault: a board tripped.
            BoardLost, BoardSilent: a board is gone, or says nothing any more.
            BoardRefused: a board refused to load, arm or start.
        """
        self._need_connection()
        return play(self, trajectory, repeats, recorder, progress)

    def stop(self) -> list[str]:
        """Switch all motors off: first every board is told, then each one's word is awaited.

        Returns:
            Joints whose boards did not confirm; their own link time-out stops them.
        """
        for line in self.lines:
            line.stop_all()
        unconfirmed: list[str] = []
        for board in self.boards:
            try:
                if not board.why_lost:
                    board.stop()
                    continue
            except (BoardError, BenchLost):  # a virtual bench that has ended has taken its boards with it
                pass
            unconfirmed.append(board.joint)
        return unconfirmed

    def clear(self) -> None:
        """Acknowledge latched faults; look at their reason first."""
        for board in self.boards:
            board.hello()
            if board.state is State.FAULT:
                board.clear()

    def save(self) -> None:
        """Have every board keep its calibration (the "persist" registers) over a reset.

        Raises:
            BoardRefused: a board is not at rest, or cannot write its flash.
        """
        self._need_connection()
        for board in self.boards:
            board.save()

    def provenance(self, **more: Any) -> dict[str, Any]:
        """What a run's run.toml shall say of this bench; `more` is added to it."""
        self._need_connection()
        boards = [
            {
                "node": board.node,
                "joint": board.joint,
                "url": board.port.url,
                **asdict(identity),
                "schema_hash": f"{identity.schema_hash:08x}",
                "registers": facts.registers,
            }
            for board, identity, facts in zip(self.boards, self.identities, self.facts, strict=True)
        ]
        return {
            "robot": self.file.robot,
            "clock": self.clock.name,
            "common_ticks": self.clock.common_ticks,
            "schema_hash": f"{own_schema().hash:08x}",
            **more,
            "bench": {"name": self.file.name, **self.file.information},
            "settings": {board.joint: asdict(each) for board, each in zip(self.boards, self.settings, strict=False)},
            "board": boards,
        }

    def close(self) -> None:
        """Stop what may drive, then close ports and clock; closing twice is harmless."""
        try:
            if any(board.is_driving and not board.why_lost for board in self.boards) and self.identities:
                self.stop()
        finally:
            self._connections.close()

    def __enter__(self) -> Bench:
        """Return the bench."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave no motor on."""
        self.close()

    def _need_connection(self) -> None:
        if not self.facts:
            raise BenchFileError(f"bench {self.file.name!r} is open but not connected; call connect() first")


def open_bench(path: str | Path) -> Bench:
    """Open the bench of a live bench file; `connect` and `configure` it before moving anything.

    Raises:
        BenchFileError: the file is wrong, or its boards are not those of the robot.
        UnknownRobot, RobotFileError: the robot cannot be loaded.
        BoardLost: a port cannot be opened.
        BenchLost: the virtual bench does not answer.
    """
    return Bench(read_bench_file(path))


def _note_position(newest: dict[int, int], node: int, frame: Frame) -> None:
    positions = decode_samples(frame).columns.get("motor_position")
    if positions is not None and len(positions):
        newest[node] = int(positions[-1])


def _check_joints(file: BenchFile, robot: Robot) -> None:
    joints = [entry.joint for entry in file.boards]
    missing = [joint for joint in robot.joint_names if joint not in joints]
    unknown = [joint for joint in joints if joint not in robot.joint_names]
    if missing or unknown:
        raise BenchFileError(
            f"bench {file.name!r} has boards for {', '.join(joints)}; robot {robot.name!r} needs one each for "
            f"{', '.join(robot.joint_names)}"
        )
    if robot.couplings:
        raise BenchFileError(
            f"robot {robot.name!r} has coupled joints ({', '.join(robot.couplings[0].joints)}), which boards cannot "
            "servo yet; import recordings of it instead"
        )


def _check_facts(board: Board, facts: Facts, first: Facts, ratio: float) -> None:
    if facts.registers["board.node"] != board.node:
        raise ConfigurationDiffers(
            board.joint,
            board.node,
            f"is node {facts.registers['board.node']} by its own register; correct the bench file",
        )
    if abs(facts.ratio - ratio) > 0.5e-3:  # half of the register's step
        raise ConfigurationDiffers(
            board.joint,
            board.node,
            f"says drive.ratio = {facts.ratio:g}, the robot file {ratio:g}; is this the board of another joint?",
        )
    for name in ("board.tick_period", "knots.ticks"):
        if facts.registers[name] != first.registers[name]:
            raise ConfigurationDiffers(
                board.joint,
                board.node,
                f"{name} = {facts.registers[name]}, the first board has {first.registers[name]}; they must be equal",
            )


def _check_lines(file: BenchFile, facts: Sequence[Facts]) -> None:
    by_node = {each.registers["board.node"]: each for each in facts}
    for entries in file.lines:
        for entry in entries:
            shares = bool(by_node[entry.node].registers["board.shared_line"])
            if shares == (len(entries) > 1):
                continue
            text = (
                f"is set up for a shared line (board.shared_line = 1), but is alone at {entry.url!r}; give the others "
                "of its line the same url, or set its fact board.shared_line = 0"
                if shares
                else f"is not set up for a shared line, but the bench file gives {entry.url!r} to {len(entries)} "
                "boards; set its fact board.shared_line = 1, or give each board a url of its own"
            )
            raise ConfigurationDiffers(entry.joint, entry.node, text)
