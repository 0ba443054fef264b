"""The generated codec on the interpreter it is for, against the golden vectors and the register table."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.driver import FIRMWARE, constants, flash, micropython
from hil_tests.need_qemu import need_qemu, need_riscv
from hil_tests.virtual_bench.qemu import STDOUT, on_a_cortex, on_a_riscv, run_program
from jointwire import BODIES, CHANNELS, FROZEN, REGISTERS, ChannelKind, MessageType

VECTORS = FIRMWARE.parent / "protocol" / "jointwire" / "tests" / "vectors.json"

# For each vector: the unpacked head, whether it packs to the same bytes, whether a body one byte longer or shorter is
# refused, whether the board's link takes the frame for valid, and the frame built again. Then the register table.
PROGRAM = """
import json, struct
from jointboard import framing, wire
from jointboard.link import Link, address
from jointboard.registers import new_cells
cells = new_cells()
link = Link(cells)
ring = bytearray(framing.SPILL)
line = link.line
line[framing.TARGET], line[framing.TARGET_SIZE] = address(ring), len(ring)
line[framing.RECEIVED_MASK] = -1
inputs = bytearray(128)
cells[framing.INPUTS] = address(inputs)
for vector in json.load(open("vectors.json")):
    kind, body, frame = vector["type"], bytes.fromhex(vector["body"]), bytes.fromhex(vector["frame"])
    buffer = bytearray(5) + body + bytearray(4)
    size = wire.BODIES[kind][1]
    fields = wire.unpack(kind, buffer, 5, size if kind == wire.MESSAGE_DATA else len(body))  # of DATA its head alone
    again = bytearray(3 + size)
    wire.pack(kind, again, 3, *fields)
    exact = wire.unpack(kind, buffer, 5, len(body) + 1) is None
    exact = exact and (not body or wire.unpack(kind, buffer, 5, len(body) - 1) is None)
    link.share(kind < framing.FIRST_FROM_BOARD)  # what boards say is looked at on a line of one's own alone
    cells[wire.REGISTER_BOARD_NODE] = vector["node"]
    line[framing.RECEIVED_AT] = address(frame)
    link.arrived(len(frame))
    bad, good = line[framing.BAD], line[framing.GOOD]
    length = link.receive()
    if kind in (wire.MESSAGE_PING, wire.MESSAGE_COMPENSATE):  # answered already
        valid = length == -1 and line[framing.GOOD] == good + 1
    elif kind < framing.FIRST_FROM_BOARD:
        valid = length == len(body)
    else:
        valid = length == -1 and line[framing.BAD] == bad
    valid = valid and bytes(link.received[12 : 12 + len(body)]) == body
    raw = bytearray(12) + body + bytearray(4)
    line[framing.HEAD] = line[framing.TAIL] = line[framing.GIVEN] = 0
    line[framing.SEQUENCE] = vector["seq"]
    clock = struct.pack("<I", vector["time_us"])  # a PONG's
    line[framing.CLOCK_AT] = address(clock)
    link.share(False)
    link._answering = True
    inputs[4:8] = clock
    sent = link.send(kind, raw, len(body))
    framing.encode(link.line_at, 2 * framing.LARGEST)
    sent = sent and link.transmit(len(ring))
    fields = [field.hex() if isinstance(field, bytes) else field for field in fields]
    print(json.dumps([fields, bytes(again[3:]) == body[:size], exact, valid, ring[:sent].hex()]))
print(json.dumps([list(row) for row in zip(wire.ACCESS, wire.MINIMUM, wire.MAXIMUM, wire.DEFAULT)]))
print(json.dumps([list(wire.CHANNEL_SIZES), list(wire.CHANNEL_KINDS), sorted(wire.FROZEN)]))
"""


@pytest.fixture(scope="module", params=["unix", "cortex", pytest.param("riscv", marks=pytest.mark.slow)])
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the program said, line by line, on each kind of emulated board."""
    said = _on_unix(tmp_path_factory.mktemp("board")) if request.param == "unix" else _in_qemu(request.param)
    return [json.loads(line) for line in said.splitlines()]


def _on_unix(folder: Path) -> str:
    flash(folder, program=PROGRAM)
    shutil.copyfile(VECTORS, folder / "vectors.json")
    run = subprocess.run([micropython(), "main.py"], cwd=folder, check=True, timeout=60, capture_output=True, text=True)
    return run.stdout


def _in_qemu(name: str) -> str:
    need_riscv() if name == "riscv" else need_qemu()
    package = (FIRMWARE / "jointboard").iterdir()
    files = {f"jointboard/{path.name}": path.read_bytes() for path in package if path.is_file()}
    board = on_a_riscv if name == "riscv" else on_a_cortex
    return run_program(PROGRAM, {**files, "vectors.json": VECTORS.read_bytes()}, board=board)[STDOUT].decode()


def _head(kind: MessageType, fields: dict[str, Any]) -> list[Any]:
    """Fields in the order of the wire, without repeated items: those stay in the buffer."""
    fixed = [sub.name for sub in BODIES[kind].subcons if sub.name not in ("knots", "currents", "values", "data")]
    return [fields[name] for name in fixed]


def test_golden_vectors(answers: list[Any]) -> None:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert {vector["type"] for vector in vectors} == set(MessageType)
    for vector, (head, packed, exact, valid, frame) in zip(vectors, answers[:-2], strict=True):
        kind = MessageType(vector["type"])
        assert head == _head(kind, vector["fields"]), vector["message"]
        assert packed, vector["message"]
        assert exact or kind is MessageType.DATA, vector["message"]
        assert valid, vector["message"]
        assert frame == vector["frame"], vector["message"]


def test_registers_channels_and_frozen_types(answers: list[Any]) -> None:
    table, (sizes, kinds, frozen) = answers[-2:]
    codes = {"ro": 1, "rw": 2, "rw-disarmed": 3, "persist": 4}
    by_id = {register.id: register for register in REGISTERS}
    assert len(table) == max(by_id) + 1
    for id, (access, minimum, maximum, default) in enumerate(table):
        register = by_id.get(id)
        assert access == (codes[register.access] if register else 0)
        assert default == (register.default if register else 0)
        if register and register.access != "ro":
            assert (minimum, maximum) == (register.minimum, register.maximum)
    assert sizes == [{"h": 2, "i": 4}[channel.format] for channel in CHANNELS]
    assert kinds == [channel.kind for channel in CHANNELS]
    assert frozen == sorted(FROZEN)


def test_constants_that_the_board_has_a_second_time() -> None:
    """viper and const() want them in the file that uses them."""
    assert constants("jointboard/registers")["PERSIST"] == 4
    assert constants("jointboard/sampling")["ROOM"] == 1104 - BODIES[MessageType.DATA].sizeof()
    assert max(ChannelKind) == ChannelKind.FOOT_FORCE  # where sampling.plan() ends
