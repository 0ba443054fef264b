"""The line on a USB port of its own: MicroPython's TinyUSB on the chip's controller, and a host that may not read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.driver import BoardProcess, Outputs
from hil_tests.test_rp2040_board import FACTS, MIDDLE, POWER, Chip, need_rp2040
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.wiring import board_config, read_wiring
from jointbench.bench.conversation import LINE_NAME
from jointbench.bench.flash import build_image, factory_files
from jointwire import FrameReader, MessageType, Refusal, State, Trip

STARTS_MS = 4000
COOL = 300  # counts of the temperature: 24 degC
TIMEOUT = 200  # ticks of silence until the power is taken
SILENT_MS = 800  # in which the host does not read: 16 kB of samples, of which the board's rings hold 10
PING_EVERY = 50  # ticks


class UsbBoard(BoardProcess):
    """A chip at its USB port, asked as the boards on pipes are; its joint stands still."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.node, self.tick, self.trajectory = 1, 0, 0
        self.plant = None
        self.frames, self.noise = [], []
        self._reader, self._queue, self._sequence = FrameReader(), b"", 0

    @property
    def errors(self) -> str:
        """What its console said: it has no reader."""
        return ""

    def step(self, received: bytes = b"", **orders: Any) -> Outputs:
        before = len(self.chip.said)
        if received:
            orders["line"] = [[self.chip.time_ns, received.hex()]]
        answer = self.chip.run(1, **orders)
        self.last = Outputs(self.tick, answer.enable[0], answer.command[0], self.chip.said[before:])
        self._take(self.last.sent)
        self.tick += 1
        return self.last

    def host(self, order: str) -> None:
        """Let a millisecond pass, with an order to the host."""
        self.step(usb=order)

    def greet(self) -> State:
        """Say HELLO until the port is open and the board answers: its state."""
        known = len(self.of(MessageType.HELLO_ACK))
        for _ in range(STARTS_MS // 100):
            self.send(MessageType.HELLO, major=1, minor=1)
            self.run(100)
            if len(self.of(MessageType.HELLO_ACK)) > known:
                self.run(200)  # the answers to those that the port kept until it was open
                return State(self.of(MessageType.HELLO_ACK)[-1].body.state)
        raise AssertionError("no answer to HELLO")

    def is_enabled_all(self, ticks: int) -> bool:
        """Ask it for a while; whether ENABLE was high all the time."""
        high = True
        for k in range(ticks):
            if k % PING_EVERY == 0:
                self.send(MessageType.PING, nonce=k)
            high = bool(self.run(1).enable) and high
        return high

    def next_status(self) -> Any:
        """Ask it until its next STATUS, its motor under power all the time."""
        known = len(self.of(MessageType.STATUS))
        for _ in range(1200 // PING_EVERY):
            assert self.is_enabled_all(PING_EVERY)
            if len(self.of(MessageType.STATUS)) > known:
                break
        return self.of(MessageType.STATUS)[-1].body


@pytest.fixture
def usb_board(tmp_path: Path) -> Iterator[UsbBoard]:
    need_rp2040()
    wiring = tmp_path / "wiring.json"
    wiring.write_text(json.dumps({"line": {"kind": "usb"}, "link_encoder": None}))
    facts = {"node": 1, "uid": "0123456789abcdef", "facts": FACTS}
    config = board_config(facts, read_wiring(wiring), POWER, 921600)
    files = factory_files(build_image("rp2", architecture="armv6m"), config)
    board = Rp2040Board(find_rp2040(), tmp_path / "board", files, config)
    chip = Chip(board)
    chip.inputs = {**Chip.inputs, "analog": {"current": [MIDDLE] * 16, "temperature": [COOL] * 16}}
    yield UsbBoard(chip)
    board.close()


@pytest.mark.slow
def test_a_motor_runs_over_usb_whether_or_not_the_host_reads_and_stops_when_unplugged(usb_board: UsbBoard) -> None:
    board = usb_board
    board.greet()
    assert board.chip.board.ports == ["Board CDC", LINE_NAME]
    assert board.write("limit.link_timeout", TIMEOUT) is Refusal.OK
    board.upload([(0, 0)] * 128)
    board.arm()
    assert board.refusal(MessageType.START, at_tick=0) is Refusal.OK

    board.run(20)
    before = board.next_status()
    assert before.frames_dropped == 0

    # The host's program hangs, but still asks: its port holds what it has not read, and the board goes on.
    board.host("ignore")
    said = len(board.chip.said)
    assert board.is_enabled_all(SILENT_MS)
    assert len(board.chip.said) == said
    board.host("read")
    after = board.next_status()
    assert after.frames_dropped > 0
    assert SILENT_MS / 8 < after.samples_dropped < SILENT_MS / 2
    assert after.ticks_missed == before.ticks_missed
    assert not board.noise  # whole frames, those of before included

    begun = board.tick
    board.host("unplug")
    while board.run(1).enable:
        assert board.tick < begun + TIMEOUT + 5
    assert board.tick - begun > TIMEOUT - 2 * PING_EVERY
    board.host("plug")
    assert board.greet() is State.FAULT
    assert Trip(board.of(MessageType.STATUS)[-1].body.trip) is Trip.LINK_LOSS

    # The line becomes a console as well, so that a board is flashed over it.
    assert board.refusal(MessageType.REPL) is Refusal.OK
    board.run(100)
    board.chip.said = b""
    board.step(b"\x03\x01print(6 * 7)\x04")
    board.run(100)
    assert b"raw REPL; CTRL-B to exit\r\n>OK42\r\n\x04\x04>" in board.chip.said
