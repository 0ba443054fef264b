"""Contents of a recorded run as its doctor examines them: frames, injected faults, and what its boards reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.bench import JointSettings, Ledger, Tally, board_ratios, butterworth_registers, motor_settings
from jointbench.files import bytes_of, json_values
from jointbench.model import Drive, Robot
from jointbench.recording.decode import Damage, Record, RecordKind, scan_records
from jointbench.recording.run_directory import EVENTS
from jointbench.recording.timeline import BoardFacts
from jointwire import BY_NAME, FrameError, decode_frame

_SENSORS = (("motor_encoder", "motor_position"), ("link_encoder", "link_position"), ("torque_sensor", "joint_torque"))


@dataclass
class Contents:
    """Contents of a frames.bin, found in one pass.

    Attributes:
        n_bytes: of the file.
        sha256: of the file.
        counts: records by kind.
        damage: each with the times of the records around it.
        undecoded: byte and reason of frames that cannot be decoded.
        times: of the first and the last record [µs].
        ledger: drawn up again.
    """

    n_bytes: int
    sha256: str
    ledger: Ledger
    counts: dict[RecordKind, int] = field(default_factory=lambda: dict.fromkeys(RecordKind, 0))
    damage: list[tuple[Damage, int | None, int | None]] = field(
        default_factory=list[tuple[Damage, "int | None", "int | None"]]
    )
    undecoded: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    times: tuple[int, int] | None = None

    @property
    def torn(self) -> Damage | None:
        """The torn end."""
        return next((damage for damage, _, _ in self.damage if damage.torn), None)

    def at(self, time_us: int | None) -> str:
        """A moment in seconds from the first record."""
        return "an end" if time_us is None or self.times is None else f"{(time_us - self.times[0]) * 1e-6:.3f} s"


def read_contents(data: bytes, schema: int, joints: Mapping[int, str], limit: float) -> Contents:
    """Read all of a frames.bin.

    Args:
        data: its bytes.
        schema: hash of the schema it was recorded with.
        joints: joint of each node, in joint order.
        limit: largest fraction of samples that may be lost in a valid run.
    """
    tally = Tally(joints, limit)
    contents = Contents(len(data), hashlib.sha256(data).hexdigest(), Ledger(()))
    position, last_us = 0, None
    for found in scan_records(data):
        if isinstance(found, Damage):
            contents.damage.append((found, last_us, None))
            position = found.end
            continue
        if contents.damage and contents.damage[-1][2] is None:
            contents.damage[-1] = (*contents.damage[-1][:2], found.time_us)
        contents.counts[found.kind] += 1
        contents.times = (contents.times[0] if contents.times else found.time_us, found.time_us)
        last_us = found.time_us
        _count(found, position, schema, tally, contents)
        position += found.size
    contents.ledger = tally.ledger()
    return contents


def _count(record: Record, position: int, schema: int, tally: Tally, contents: Contents) -> None:
    """Count one record in the ledger as the recorder did."""
    if record.kind is RecordKind.NOISE:
        tally.add_noise(record.node)
    elif record.kind is RecordKind.FRAME:
        try:
            tally.add(decode_frame(record.payload, schema))
        except FrameError as error:
            contents.undecoded.append((position, str(error)))
            tally.add_noise(record.node)


@dataclass(frozen=True)
class InjectedFaults:
    """Faults that one line of a run suffered.

    Attributes:
        joints: whose boards are on it.
        counts: how often each fault struck, by direction and name, such as "rx.drop".
    """

    joints: tuple[str, ...]
    counts: Mapping[str, int]

    @property
    def text(self) -> str:
        """Sentence such as "j3: rx.drop 12 times, tx.lose never"."""
        times = {0: "never", 1: "once"}
        struck = ", ".join(f"{name} {times.get(count, f'{count} times')}" for name, count in self.counts.items())
        return f"{', '.join(self.joints)}: {struck}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"joints": list(self.joints), "counts": dict(self.counts)}


def injected_faults(run: str | Path, joints: Mapping[int, str]) -> tuple[InjectedFaults, ...]:
    """Read the faults of each line that had any; a recorder that was killed has not written them.

    Args:
        run: its directory.
        joints: joint of each node.
    """
    try:
        lines = bytes_of(Path(run) / EVENTS).decode(errors="replace").splitlines()
    except OSError:  # an import has no events; of a recording, doctor says that they are missing
        return ()
    return tuple(faults for line in lines if (faults := _of_event(line, joints)))


def _of_event(line: str, joints: Mapping[int, str]) -> InjectedFaults | None:
    """The faults that an event tells; None where it is another event, or damaged."""
    try:
        event: Any = json_values(line)
        if event["event"] != "faults":
            return None
        nodes: Sequence[int] = event["nodes"]
        counts = {str(name): int(count) for name, count in event["counts"].items()}
        return InjectedFaults(tuple(joints.get(int(node), f"node {node}") for node in nodes), counts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def disagreements(robot: Robot, boards: Sequence[BoardFacts], provenance: Mapping[str, Any]) -> list[str]:
    """Compare the boards' registers with the robot file: ratio, torque constant, currents, encoders and filters.

    The torque constant is in no register; the servo's gain was computed with it, and tells it.

    Args:
        robot: of the run's robot file.
        boards: of the run.
        provenance: what run.toml says.

    Returns:
        A sentence for each that differs, with the joint and both values; none where all agree.

    Raises:
        KeyError: a board's registers lack one.
        SignalError: the settings ask for an impossible filter.
    """
    said = {str(board["joint"]): board for board in provenance.get("board", ())}
    settings = _settings(robot, provenance.get("settings", {}))
    gains = _gains(robot, settings, boards)
    joints = [facts for facts in boards if not facts.on_foot and facts.joint in robot.joint_names]
    return [
        f"{facts.joint}: {text}"
        for facts in joints
        for text in (
            *_sensors(facts, robot.drives[robot.joint_index(facts.joint)], said.get(facts.joint, {})),
            *(_motor(robot, facts, said.get(facts.joint, {}), settings, gains) if facts.has_motor else ()),
        )
    ]


def _settings(robot: Robot, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, JointSettings]:
    """Settings by joint; none where they are of another release."""
    try:
        return {joint: JointSettings(**tables[joint]) for joint in robot.joint_names if joint in tables}
    except TypeError:
        return {}


def _gains(robot: Robot, settings: Mapping[str, JointSettings], boards: Sequence[BoardFacts]) -> dict[str, float]:
    """The servo gain, raw, that the settings ask for with the drives of the robot file, by joint."""
    if any(joint not in settings for joint in robot.joint_names) or robot.drive_train.n_motors != robot.n_joints:
        return {}
    motors = motor_settings([settings[joint] for joint in robot.joint_names], robot.drive_train)
    facts = {each.joint: each for each in boards}
    gains: dict[str, float] = {}
    for joint, motor in zip(robot.joint_names, motors, strict=True):
        if joint in facts and facts[joint].has_motor:
            counts = facts[joint].motor_counts / (2.0 * np.pi)
            gains[joint] = motor.stiffness / counts / BY_NAME["servo.kp"].scale
    return gains


def _motor(
    robot: Robot,
    facts: BoardFacts,
    said: Mapping[str, Any],
    settings: Mapping[str, JointSettings],
    gains: Mapping[str, float],
) -> Iterator[str]:
    index, joint = robot.joint_index(facts.joint), facts.joint
    if robot.drive_train.n_motors == robot.n_joints:
        ratio = float(board_ratios(robot)[index])
        if abs(facts.ratio - ratio) > 0.5 * BY_NAME["drive.ratio"].scale:
            yield f"its board's drive.ratio is {facts.ratio:g}, the robot file makes it {ratio:g}"
            gains = {}  # they follow from the ratio, too, and say nothing more
    yield from _currents(facts, robot.drives[index], said)
    if joint in settings:
        yield from _filter(facts, settings[joint])
    if joint in gains:
        yield from _torque_constant(facts, robot.drives[index], gains[joint])


def _sensors(facts: BoardFacts, drive: Drive, said: Mapping[str, Any]) -> Iterator[str]:
    driven = drive.kind != "none"
    if facts.has_motor != driven:
        reported, told = "drives a motor" if facts.has_motor else "has no motor", "a" if driven else "no"
        yield f"its board {reported}, the robot file has {told} drive for it"
    for name, channel in _SENSORS:
        own = channel == "joint_torque" and facts.has("bridge_torque")
        if getattr(drive, name) and not facts.has(channel) and not own:
            yield f"the robot file has {name} = true, its board measures no {channel} (board.channels)"
    for side in ("motor", "link"):
        counts, register = said.get(f"{side}_counts"), facts.registers.get(f"encoder.{side}_counts")
        if facts.has(f"{side}_position") and counts not in (None, 0, register):
            yield f"its board greeted with {counts} {side} encoder counts, its encoder.{side}_counts is {register}"


def _currents(facts: BoardFacts, drive: Drive, said: Mapping[str, Any]) -> Iterator[str]:
    limit, step = facts.si("limit.current"), BY_NAME["limit.current"].scale
    if limit > drive.current_limit + step:
        yield f"its board was set to limit.current = {limit:g} A, the robot file allows {drive.current_limit:g} A"
    bits = said.get("adc_bits")
    if isinstance(bits, int) and 1 < bits <= 32:
        highest = facts.si("current.scale") * facts.registers["adc.oversamples"] * 2.0 ** (bits - 1)
        if abs(highest) < limit - step:
            yield (
                f"its board measures up to {abs(highest):.3g} A (current.scale = {facts.si('current.scale'):.6g} A), "
                f"and was set to limit.current = {limit:g} A"
            )


def _filter(facts: BoardFacts, own: JointSettings) -> Iterator[str]:
    if facts.registers["adc.cic_order"] != own.cic_order:
        yield f"its board's adc.cic_order is {facts.registers['adc.cic_order']}, the settings say {own.cic_order}"
    wanted = butterworth_registers(own.cutoff_hz, facts.tick_period, own.filter_order)
    different = [(name, value) for name, value in wanted.items() if facts.registers[name] != value]
    if different:
        name, value = different[0]
        yield (
            f"its board's filter is not that of the settings, {own.cutoff_hz:g} Hz of order {own.filter_order}: {name} "
            f"is {facts.registers[name]}, and would be {value}"
        )


def _torque_constant(facts: BoardFacts, drive: Drive, gain: float) -> Iterator[str]:
    raw = facts.registers["servo.kp"]
    if raw > 0 and abs(gain - raw) > 1.0:  # the register holds whole numbers
        told = abs(drive.torque_constant) * gain / raw
        yield (
            f"its board's servo.kp = {raw} was made for a torque constant of {told:.4g} N·m/A, the robot file says "
            f"{abs(drive.torque_constant):.4g}"
        )
