"""What real boards do alike (drivers/joint.py) under the firmware: the pins a motor would see, tick by tick."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firmware.boards.tests.interpreter import BOARDS
from firmware.tests.driver import BoardProcess, flash
from firmware.tests.driver import SERVO, play, prepare, swing
from jointwire import MessageType, Refusal, State, Trip, decode_samples


def start(folder: Path, **more: Any) -> BoardProcess:
    """The firmware on a Joint whose hardware are the pipes; `more` goes to its config.json."""
    flash(folder, program=(BOARDS / "tests" / "joint_on_pipes.py").read_text(encoding="utf-8"))
    shutil.copytree(BOARDS / "drivers", folder / "drivers", ignore=shutil.ignore_patterns("__pycache__"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | {"pins": {"enable": 4}} | more
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    board = BoardProcess(folder)
    board.run(1)
    return board


@pytest.fixture
def board(tmp_path: Path) -> Iterator[BoardProcess]:
    """A board with its hardware."""
    board = start(tmp_path)
    yield board
    board.close()


def test_the_firmware_runs_on_it(board: BoardProcess) -> None:
    hello = board.hello()
    assert hello.body.state == State.DISARMED
    board.motor_count = 65000
    board.current = 1234
    assert board.write("stream.always", 1) is Refusal.OK
    board.run(130)
    assert board.of(MessageType.DATA)
    assert board.last.enable == 0


def test_enable_follows_the_state_and_the_watchdog_begins_at_arm(board: BoardProcess) -> None:
    prepare(board, swing(), repeats=1)
    assert board.last.enable == 0
    assert "watchdog" not in board.errors
    play(board)
    board.run(20)
    assert board.last.enable == 1
    board.request(MessageType.STOP)
    board.run(1)
    assert (board.last.enable, board.last.command_mA) == (0, 0)
    board.run(250)
    assert board.errors.count("watchdog") == 1
    assert "fed 200" in board.errors


def test_a_watchdog_that_runs_waits_for_an_erasure_until_the_next_arm(board: BoardProcess) -> None:
    """A sector of an STM32F405 takes up to 4 s, an RP2's some times 0.4 s: more than the watchdog of a motion."""
    board.request(MessageType.SAVE)
    assert "watchdog" not in board.errors  # none runs yet, and none is started
    prepare(board, swing(), repeats=1)
    for _ in range(2):
        play(board)
        board.run(5)
        board.request(MessageType.STOP)
        board.request(MessageType.SAVE)
        board.run(2)
    board.run(250)
    assert [line for line in board.errors.splitlines() if line.startswith("watchdog")] == [
        "watchdog 1000", "watchdog 30000", "watchdog 1000", "watchdog 30000",
    ]  # fmt: skip


@pytest.mark.parametrize("trouble", [30000, 30001])
def test_a_sensor_or_drive_that_fails_takes_the_power_at_once(board: BoardProcess, trouble: int) -> None:
    """30000: the encoder gives up in the middle of a tick. 30001: and so does the bus to the drive."""
    prepare(board, swing(), repeats=1)
    play(board)
    board.run(10)
    assert board.last.enable == 1
    board.supply = trouble
    if trouble == 30001:
        board.send(MessageType.STOP)
    board.run(2)
    assert board.last.enable == 0
    board.supply = 24_000
    board.run(3)
    assert board.last.enable == 0
    assert board.state == State.FAULT
    assert [frame.body.trip for frame in board.of(MessageType.FAULT)] == [Trip.HARDWARE]


def test_missed_ticks_are_told(board: BoardProcess) -> None:
    board.run(10)
    board.tick += 7
    board.run(1)
    assert board.state == State.DISARMED
    board.run(1100)
    assert board.of(MessageType.STATUS)[-1].body.ticks_missed == 7


def test_a_bare_board_simulates_its_joint_and_touches_no_pin(tmp_path: Path) -> None:
    """No sensor is read, so none can fail; the joint plays its motion, and ENABLE stays low."""
    board = start(tmp_path, sim_joint={"coulomb": 0.0})
    try:
        board.supply = 30_000  # the encoder would fail
        for name, value in SERVO.items():
            assert board.write(name, value) is Refusal.OK
        board.upload(swing(9, amplitude=300), 1)
        play(board)
        for _ in range(300):
            assert board.run(1).enable == 0
        assert board.state == State.DONE
        blocks = [decode_samples(frame).columns["motor_position"] for frame in board.of(MessageType.DATA)]
        assert max(int(block.max()) for block in blocks) > 200
    finally:
        board.close()
