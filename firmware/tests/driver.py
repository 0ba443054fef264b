"""Drives one real board program (MicroPython, 32-bit) over its two pipes, tick by tick, for the firmware's tests."""

from __future__ import annotations

import ast
import fcntl
import json
import math
import os
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cobs import cobs

from jointwire import (
    BY_NAME,
    FROZEN,
    PROTOCOL_MAJOR,
    REGISTERS,
    Frame,
    FrameReader,
    MessageType,
    Refusal,
    State,
    config_crc,
    encode_frame,
    schema_hash,
    trajectory_crc,
)

FIRMWARE = Path(__file__).resolve().parents[1]
NODE = 7
UID = bytes.fromhex("0123456789abcdef")
LINE = 512  # bytes a board takes in a tick
TICK_PERIOD_US = 1000
SERVED_US = 137  # after the tick, received bytes are served


def micropython() -> str:
    """Path of the interpreter the boards run on; the test fails, and says what to do, when it is missing."""
    path = Path(os.environ.get("JOINTBENCH_MICROPYTHON") or FIRMWARE.parent / ".cache/micropython/bin/micropython")
    if not path.is_file():
        pytest.fail(f"no MicroPython at {path}: type ./run setup, or name one in JOINTBENCH_MICROPYTHON", pytrace=False)
    return str(path)


def flash(
    folder: Path,
    facts: dict[str, int] | None = None,
    program: str | None = None,
    node: int = NODE,
    sim_joint: dict[str, float] | None = None,
    partner: dict[str, Any] | None = None,
) -> None:
    """Write a board's folder: the firmware and its configuration; `program` replaces main.py."""
    shutil.copytree(FIRMWARE / "jointboard", folder / "jointboard", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(FIRMWARE / "boards" / "unix.py", folder / ("main.py" if program is None else "unix.py"))
    if program is not None:
        (folder / "main.py").write_text(program, encoding="utf-8")
    config: dict[str, Any] = {"node": node, "uid": UID.hex(), "facts": facts or {}}
    if sim_joint is not None:
        config["sim_joint"] = sim_joint
    if partner is not None:
        config["partner"] = partner
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def raw_frame(
    kind: int, payload: bytes = b"", node: int = NODE, seq: int = 1, protocol: int = 1, seed: int | None = None
) -> bytes:
    """A frame as strangers might send it: any type, any protocol, any CRC seed (None: what the type asks for)."""
    raw = struct.pack("<BBBBHHI", protocol, kind, node, 0, seq, len(payload), 0) + payload
    if seed is None:
        seed = 0 if kind in FROZEN else schema_hash()
    return cobs.encode(raw + struct.pack("<I", zlib.crc32(raw, seed))) + b"\0"


@dataclass(frozen=True)
class Outputs:
    """What a board answered to one tick."""

    tick: int
    enable: int
    command_mA: int
    sent: bytes


class BoardProcess:
    """A running board. `frames` collects all it has sent, `noise` what was none; sensors keep their last values."""

    GREETING = struct.pack("<4I", 0x4A420004, 128, 0, 0)
    HEAP = "192k"

    def __init__(self, folder: Path, bus: tuple[int, ...] = ()) -> None:
        """Start the program of a folder; `bus` are the ends of pipes that it has as files 5 and 6."""
        self.folder = folder
        self.node: int = json.loads((folder / "config.json").read_text(encoding="utf-8"))["node"]
        self.tick = 0
        self.edges, self.edge_us = 0, 0  # of the SYNC line
        self.motor_count = 0
        self.link_count = 0
        self.current = 0  # centred sum of 16 samples, as the firmware decimates it
        self.torque = 0
        self.supply = 24_000
        self.temperature = 2_500
        self.forces = (0, 0, 0, 0)
        self.motor_edge = 0  # time of the motor encoder's newest edge, counts of the capture clock
        self.pins = 0  # that keep the motor off
        self.frames: list[Frame] = []
        self.trajectory = 0  # of the last upload
        self.noise: list[str] = []
        self.last = Outputs(0, 0, 0, b"")
        self.plant: Callable[[Outputs], int] | None = None  # motor count at the next tick
        self._reader = FrameReader()
        self._queue = b""
        self._sequence = 0
        inputs, self._to_board = _pipe()
        self._from_board, outputs = _pipe()
        command = [micropython(), "-X", f"heapsize={self.HEAP}", "main.py"]
        # A shell gives the pipes their numbers: no code of ours runs between fork and exec.
        ends = " 5</dev/fd/{} 6>/dev/fd/{}".format(*bus) if bus else ""
        shell = ["/bin/sh", "-c", f'exec "$@" 3</dev/fd/{inputs} 4>/dev/fd/{outputs}{ends}', "sh", *command]
        with (folder / "stderr.log").open("wb") as log:
            self.process = subprocess.Popen(shell, cwd=folder, stderr=log, pass_fds=(inputs, outputs, *bus))
        self._ends = [self._to_board, self._from_board]
        os.close(inputs)
        os.close(outputs)
        assert self._read(16) == self.GREETING

    def close(self) -> int:
        """End the pipes; the board's exit status."""
        for end in self._ends:
            os.close(end)
        self._ends = []
        return self.process.wait(10)

    @property
    def errors(self) -> str:
        """What the board wrote to its console."""
        return (self.folder / "stderr.log").read_text(encoding="utf-8")

    def step(self, received: bytes = b"") -> Outputs:
        """One tick."""
        os.write(self._to_board, self._inputs(received))
        tick, enable, command, count = struct.unpack("<4i", self._read(16))
        assert tick == _signed(self.tick)
        self.last = Outputs(tick, enable, command, self._read(count))
        self._take(self.last.sent)
        self.tick += 1
        if self.plant:
            self.motor_count = self.plant(self.last)
        return self.last

    def _take(self, sent: bytes) -> None:
        for chunk in self._reader.feed(sent):
            if isinstance(chunk.content, Frame):
                self.frames.append(chunk.content)
            else:
                self.noise.append(chunk.content.reason)

    def run(self, ticks: int) -> Outputs:
        """Several ticks; bytes queued by `send` go to the board."""
        for _ in range(ticks):
            received, self._queue = self._queue[:LINE], self._queue[LINE:]
            self.step(received)
        return self.last

    def send(self, kind: MessageType, *, node: int | None = None, seq: int | None = None, **fields: Any) -> int:
        """Queue a request, to this board where no node is named; its sequence number."""
        if seq is None:
            self._sequence = seq = (self._sequence + 1) & 0xFFFF
        self._queue += encode_frame(kind, self.node if node is None else node, seq, **fields)
        return seq

    def send_bytes(self, data: bytes) -> None:
        """Queue bytes as they are."""
        self._queue += data

    def request(self, kind: MessageType, *, seq: int | None = None, **fields: Any) -> Frame:
        """Send a request and tick until it is answered."""
        seen = len(self.frames)
        sequence = self.send(kind, seq=seq, **fields)
        for _ in range(600):  # a full transmit ring on the slowest line of these tests
            self.run(1)
            for frame in self.frames[seen:]:
                if frame.type >= MessageType.ACK and (
                    frame.type is not MessageType.ACK or frame.body.request_seq == sequence
                ):
                    return frame
        raise AssertionError(f"{kind.name} was not answered; console: {self.errors}")

    def refusal(self, kind: MessageType, **fields: Any) -> Refusal:
        """Send a request; what its ACK says."""
        return Refusal(self.request(kind, **fields).body.refusal)

    def write(self, name: str, value: int) -> Refusal:
        """Set a register by name."""
        return self.refusal(MessageType.WRITE, register=BY_NAME[name].id, value=value)

    def read(self, name: str) -> int:
        """Value of a register by name."""
        return self.request(MessageType.READ, first=BY_NAME[name].id, count=1).body.values[0]

    def registers(self) -> dict[str, int]:
        """All registers by name."""
        ids = {register.id: register.name for register in REGISTERS}
        found: dict[str, int] = {}
        for first in (id for id in ids if id - 1 not in ids):
            count = next(n for n in range(1, len(ids) + 1) if first + n not in ids)
            values = self.request(MessageType.READ, first=first, count=count).body.values
            found |= {ids[first + k]: value for k, value in enumerate(values)}
        return found

    def of(self, kind: MessageType) -> list[Frame]:
        """All frames of a type so far."""
        return [frame for frame in self.frames if frame.type is kind]

    @property
    def state(self) -> State:
        """The board's state, asked by HELLO: costs the token that an earlier HELLO gave."""
        return State(self.hello().body.state)

    def hello(self, major: int = PROTOCOL_MAJOR) -> Frame:
        """The answer to a HELLO."""
        return self.request(MessageType.HELLO, major=major, minor=0)

    def arming(self) -> dict[str, int]:
        """What ARM has to carry: a fresh token, and the CRC of trajectory and registers as this test knows them."""
        crc = config_crc(self.registers(), self.trajectory)
        return {"token": self.hello().body.token, "config_crc": crc}

    def upload(self, knots: Sequence[tuple[int, int]], repeats: int = 1, feedforward_mA: Sequence[int] = ()) -> None:
        """Send a trajectory, its feed-forward where it has one, and have it loaded."""
        data = b"".join(struct.pack("<ii", *knot) for knot in knots)
        for start in range(0, len(knots), 100):
            part = [{"position": p, "velocity": v} for p, v in knots[start : start + 100]]
            refusal = self.refusal(MessageType.KNOTS, offset=start, count=len(part), knots=part)
            assert refusal is Refusal.OK
        for start in range(0, len(feedforward_mA), 400):
            currents = feedforward_mA[start : start + 400]
            refusal = self.refusal(MessageType.FEEDFORWARD, offset=start, count=len(currents), currents=currents)
            assert refusal is Refusal.OK
        data += struct.pack(f"<{len(feedforward_mA)}h", *feedforward_mA)
        fields = {"count": len(knots), "repeats": repeats, "crc32": zlib.crc32(data)}
        assert self.refusal(MessageType.LOAD, **fields) is Refusal.OK
        self.trajectory = trajectory_crc(**fields)

    def arm(self) -> None:
        """HELLO for a token, READ for the CRC, then ARM."""
        assert self.refusal(MessageType.ARM, **self.arming()) is Refusal.OK

    def _inputs(self, received: bytes) -> bytes:
        now = self.tick * TICK_PERIOD_US
        words = (self.tick, now, self.edges, self.edge_us)
        sensors = (self.motor_count & 0xFFFF, self.link_count, self.supply, self.temperature)
        adc = [*_samples(self.current), *_samples(self.torque)]
        served = (_signed(self.motor_edge), self.pins, len(received), _signed(now + SERVED_US))
        return struct.pack("<8i32H4i4i", *map(_signed, words), *sensors, *adc, *self.forces, *served) + received

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = os.read(self._from_board, count - len(data))
            if not part:
                raise AssertionError(f"the board ended with {self.process.wait(10)}; console: {self.errors}")
            data += part
        return data


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not 3 or 4: those the board's shell gives them."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _samples(centred: int) -> list[int]:
    """16 ADC samples with the sum `centred` + 32768."""
    low, more = divmod(centred + 32768, 16)
    return [low + (k < more) for k in range(16)]


def _signed(word: int) -> int:
    return (word + 2**31) % 2**32 - 2**31


# 10 rad/s closed loop per 100 ticks, well damped, with the joint below.
SERVO = {"servo.kp": 256, "servo.kd": 320, "limit.current": 8000, "limit.following": 500}


class Joint:
    """Inertia and a little friction behind the motor encoder; a brake that holds when the drive is off."""

    def __init__(self, position: float = 0.0) -> None:
        self.position, self.velocity = position, 0.0

    def __call__(self, outputs: Outputs) -> int:
        """Motor count after the tick."""
        self.velocity = (self.velocity + 0.01 * outputs.command_mA) * 0.98 if outputs.enable else 0.0
        self.position += self.velocity
        return round(self.position)


def swing(knots: int = 5, amplitude: int = 2000, start: int = 0) -> list[tuple[int, int]]:
    """Knots of one cosine swing from `start` to `start + amplitude` and back, at rest at both ends."""
    phases = [2 * math.pi * k / (knots - 1) for k in range(knots)]
    rate = 2 * math.pi / (32 * (knots - 1))
    return [
        (start + round(amplitude * (1 - math.cos(p)) / 2), round(256 * amplitude / 2 * rate * math.sin(p)))
        for p in phases
    ]


def prepare(board: BoardProcess, knots: list[tuple[int, int]] | None = None, repeats: int = 1) -> None:
    """Give the board a joint to move, its servo, and a loaded trajectory."""
    board.plant = Joint()
    for name, value in SERVO.items():
        assert board.write(name, value) is Refusal.OK
    board.upload(knots or swing(), repeats)


def play(board: BoardProcess, at_tick: int = 0) -> None:
    """ARM and START a prepared board."""
    board.arm()
    assert board.refusal(MessageType.START, at_tick=at_tick) is Refusal.OK


def constants(module: str) -> dict[str, int]:
    """Every `NAME = const(number)` of a module of the firmware, such as "jointboard/tick"."""
    path = Path(FIRMWARE, f"{module}.py")
    found: dict[str, int] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("const"), [number])):
                found[name] = ast.literal_eval(number)
    return found
