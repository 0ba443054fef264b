"""An RS-485 line's driver on the emulated RP2040: on before the first bit, off soon after the last, at its pins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil_tests.test_rp2040_board import FACTS, MIDDLE, POWER, Chip, StartChip, need_rp2040
from hil_tests.test_rp2040_board import start_chip as start_chip  # a fixture
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.wiring import board_config, read_wiring
from jointbench.bench.flash import build_image, factory_files
from jointwire import BY_NAME, MessageType, encode_frame

BAUD = 921600
LINE = {"kind": "uart", "uart": 0, "tx": 0, "rx": 1, "de": 2}
HELD_NS = 10_000  # a byte takes 10.9 us: another node's first one is not cut
LEAD_NS = 1_000  # transceivers take up to this to turn on
STARTS_IN = 8000  # ticks


@pytest.fixture
def chip(tmp_path: Path) -> Iterator[Chip]:
    """The firmware on a chip that streams by its kernels."""
    need_rp2040()
    wiring = tmp_path / "wiring.json"
    wiring.write_text(json.dumps({"line": LINE, "link_encoder": None}))
    config = board_config({"node": 1, "uid": "0123456789abcdef", "facts": FACTS}, read_wiring(wiring), POWER, BAUD)
    files = factory_files(build_image("rp2", architecture="armv6m"), config)
    board = Rp2040Board(find_rp2040(), tmp_path / "board", files, config)
    chip = Chip(board)
    chip.inputs = {**Chip.inputs, "analog": {"current": [MIDDLE] * 16}}
    yield chip
    board.close()


@pytest.mark.slow
def test_every_bit_is_driven_and_the_line_is_free_soon_after_the_last(chip: Chip) -> None:
    for nonce in range(STARTS_IN // 100):
        chip.run(100, line=[[chip.time_ns, encode_frame(MessageType.PING, 1, nonce, nonce=nonce).hex()]])
        if chip.said:
            break
    assert chip.said
    board = chip.board
    assert not board.violations
    said = len(chip.said)
    stream = encode_frame(MessageType.WRITE, 1, 500, register=BY_NAME["stream.always"].id, value=1)
    chip.run(400, line=[[chip.time_ns, stream.hex()]])
    assert len(chip.said) > said + 4000  # bytes of DATA
    assert board.violations == []
    assert len(board.driver_held) > 10
    assert max(board.driver_held) < HELD_NS
    assert min(board.driver_leads) > LEAD_NS


@pytest.mark.slow
def test_drivers_in_python_drive_every_bit_too(start_chip: StartChip) -> None:
    chip = start_chip(
        """
from drivers.rp2_driver_enable import DriverEnable
from drivers.uart_line import UartLine
out = UartLine(line, 921600, 1000, driver=DriverEnable(2, 1, 0, 0, 921600))
time.sleep_ms(20)
for _ in range(3):
    for count in (1, 60, 200):
        out.send(bytes(count), count)
    time.sleep_ms(10)
out.send(b"end\\n", 4)
time.sleep_ms(100)
""",
        {"line": LINE},
        drivers=("rp2_heartbeat", "rp2_chip", "errors", "rp2_driver_enable", "uart_line"),
    )
    chip.until("end")
    chip.run(20)
    board = chip.board
    assert board.violations == []
    assert len(board.driver_held) >= 4
    assert max(board.driver_held) < 200_000  # 0.1 ms as measured: the interpreter
