"""The generated codec on the interpreter it is for, against the golden vectors and the register table."""

import subprocess
from pathlib import Path
from typing import Any

from firmware.tests.driver import flash, micropython
from jointwire import ALL_CHANNELS, CHANNELS, REGISTERS, MessageType, sample_dtype
from jointwire.tests.vectors import BODY_VECTORS

# For each line "type hex" of vectors.txt: the unpacked fields, the body packed again from them, and whether a body one
# byte longer or shorter is refused. Then the register table.
PROGRAM = """
from jointboard import wire
for line in open("vectors.txt"):
    kind, _, digits = line.strip().partition(" ")
    kind, body = int(kind), bytes.fromhex(digits)
    buffer = bytearray(5) + body + bytearray(4)
    fields = wire.unpack(kind, buffer, 5, len(body))
    size = wire.BODIES[kind][1]
    again = bytearray(3 + size)
    wire.pack(kind, again, 3, *fields)
    refused = wire.unpack(kind, buffer, 5, len(body) + 1) is None
    refused = refused and (not body or wire.unpack(kind, buffer, 5, len(body) - 1) is None)
    print(repr((fields, bytes(again[3:]) == body[:size], refused)))
print(list(zip(wire.ACCESS, wire.MINIMUM, wire.MAXIMUM, wire.DEFAULT)))
print(list(wire.CHANNEL_SIZES))
"""


def _head(kind: MessageType, fields: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in fields.items() if name not in ("knots", "values"))


def test_golden_vectors_and_registers(tmp_path: Path) -> None:
    flash(tmp_path, program=PROGRAM)
    lines = [f"{kind.value} {hexadecimal}\n" for kind, _, hexadecimal in BODY_VECTORS]
    (tmp_path / "vectors.txt").write_text("".join(lines), encoding="ascii")
    run = subprocess.run(
        [micropython(), "main.py"], cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True
    )
    *found, registers, sizes = run.stdout.splitlines()
    expected = [repr((_head(kind, fields), True, True)) for kind, fields, _ in BODY_VECTORS]
    assert [_tidy(line) for line in found] == [_tidy(line) for line in expected]
    table = eval(registers)  # a list of tuples of integers, printed by the program above
    codes = {"ro": 1, "rw": 2, "rw-disarmed": 3}
    by_id = {register.id: register for register in REGISTERS}
    assert len(table) == max(by_id) + 1
    for id, (access, minimum, maximum, default) in enumerate(table):
        register = by_id.get(id)
        assert access == (codes[register.access] if register else 0)
        assert default == (register.default if register else 0)
        if register and register.access != "ro":
            assert (minimum, maximum) == (register.minimum, register.maximum)
    assert eval(sizes) == [sample_dtype(1 << channel.bit).itemsize for channel in CHANNELS]
    assert sum(eval(sizes)) == sample_dtype(ALL_CHANNELS).itemsize


def _tidy(line: str) -> str:
    return line.replace(" ", "")
