"""SAVE: calibration over a reset, whatever happened to its file."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import BoardProcess, flash, play, prepare
from jointwire import BY_NAME, REGISTERS, MessageType, Refusal, State, decode_samples

M, R = MessageType, Refusal
PERSIST = [register.name for register in REGISTERS if register.access == "persist"]
SEED = 5
FACTS = {"torque.zero": -9}


# A flash that keeps something else than what was written: JSON, but no settings.
FORGETFUL = """
import json
from unix import Board
from jointboard import app, settings
class Forgetful:
    load = json.load
    def dump(self, values, file):
        file.write(TEXT)
settings.json = Forgetful()
app.run(Board())
"""


class Board:
    """One board that is switched on and off; its folder is its flash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        flash(folder, FACTS)
        self.process = self._start()

    def _start(self) -> BoardProcess:
        process = BoardProcess(self.folder)
        process.run(1)
        return process

    def restart(self) -> BoardProcess:
        """Off and on again."""
        assert self.process.close() == 0
        self.process = self._start()
        return self.process

    def calibrate(self, value: int) -> None:
        """Save a board whose calibration is `value` throughout."""
        for name in PERSIST:
            assert self.process.write(name, value) is R.OK
        assert self.process.refusal(M.SAVE) is R.OK

    def calibration(self) -> set[int]:
        """Values of its calibration registers."""
        return {self.process.read(name) for name in PERSIST}


@pytest.fixture
def flashed(tmp_path: Path) -> Iterator[Board]:
    """A board that ends with its test."""
    board = Board(tmp_path)
    yield board
    if board.process.process.poll() is None:
        board.process.close()


def test_calibration_stays_over_a_reset_and_nothing_else(flashed: Board) -> None:
    flashed.calibrate(-345)
    assert flashed.process.write("servo.kp", 77) is R.OK
    assert flashed.process.write("current.zero", 12) is R.OK  # after SAVE
    board = flashed.restart()
    assert flashed.calibration() == {-345}
    assert board.read("servo.kp") == BY_NAME["servo.kp"].default
    assert board.errors == ""


def test_without_save_the_configuration_holds(flashed: Board) -> None:
    assert flashed.process.write("torque.zero", 5) is R.OK
    board = flashed.restart()
    assert board.read("torque.zero") == FACTS["torque.zero"]
    assert board.read("temperature.zero") == BY_NAME["temperature.zero"].default


def test_the_newest_whole_file_counts(flashed: Board) -> None:
    """Torn anywhere, zeros as flash may leave them, not ours, or gone: the one before it, or the defaults."""
    rng = random.Random(SEED)
    flashed.calibrate(111)
    flashed.calibrate(222)
    whole = (flashed.folder / "settings.json").read_bytes()
    damaged = [whole[: rng.randrange(len(whole))] for _ in range(4)]
    damaged += [bytes(len(whole)), b"[1, 2]", b"null", b"{}", whole.replace(b"222", b"223", 1)]
    for data in damaged:
        (flashed.folder / "settings.json").write_bytes(data)
        board = flashed.restart()
        assert flashed.calibration() == {111}, data
        assert "settings.json is left aside" in board.errors
    (flashed.folder / "settings.json").unlink()
    flashed.restart()
    assert flashed.calibration() == {111}
    (flashed.folder / "settings.old").write_bytes(b"{")
    board = flashed.restart()
    assert board.read("torque.zero") == FACTS["torque.zero"]


def test_any_flipped_bit_is_noticed(flashed: Board) -> None:
    flashed.calibrate(111)
    flashed.calibrate(222)
    whole = (flashed.folder / "settings.json").read_bytes()
    rng = random.Random(SEED)
    for _ in range(25):
        bit = rng.randrange(8 * len(whole))
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        (flashed.folder / "settings.json").write_bytes(bytes(data))
        flashed.restart()
        assert flashed.calibration() in ({111}, {222}), f"bit {bit}"  # 222: the bit changed no meaning


def test_saving_over_a_broken_file_keeps_the_whole_one_before_it(flashed: Board) -> None:
    flashed.calibrate(111)
    flashed.calibrate(222)
    (flashed.folder / "settings.json").write_bytes(b"torn")
    flashed.calibrate(333)
    assert json.loads((flashed.folder / "settings.json").read_text())["values"]["torque.zero"] == 333
    assert json.loads((flashed.folder / "settings.old").read_text())["values"]["torque.zero"] == 111


def test_another_boards_calibration_is_left_aside(flashed: Board, tmp_path: Path) -> None:
    flashed.calibrate(111)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"uid": "ffffffffffffffff"}))
    board = flashed.restart()
    assert board.read("torque.zero") == FACTS["torque.zero"]
    assert "it is of board 0123456789abcdef" in board.errors


def test_a_file_that_cannot_be_written_is_refused_with_its_errno(flashed: Board) -> None:
    flashed.calibrate(111)
    (flashed.folder / "settings.new").mkdir()  # a directory stands in the way: EISDIR
    answer = flashed.process.request(M.SAVE).body
    assert (R(answer.refusal), answer.value) == (R.NOT_SAVED, 21)
    flashed.restart()
    assert flashed.calibration() == {111}


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '{"uid": "0123456789abcdef", "crc32": 1, "values": {}}'])
def test_what_does_not_read_back_is_refused_and_the_board_stays_itself(start_board: StartBoard, text: str) -> None:
    board = start_board(program=FORGETFUL.replace("TEXT", repr(text)))
    answer = board.request(M.SAVE).body
    assert (R(answer.refusal), answer.value) == (R.NOT_SAVED, 5)  # EIO
    assert not (board.folder / "settings.json").exists()
    assert board.state is State.DISARMED
    assert board.errors == ""


def test_calibration_is_not_touched_while_the_motor_can_move(flashed: Board) -> None:
    prepare(flashed.process)
    play(flashed.process)
    assert flashed.process.write("current.zero", 1) is R.WRONG_STATE
    assert flashed.process.refusal(M.SAVE) is R.WRONG_STATE
    assert not (flashed.folder / "settings.json").exists()


def test_a_new_zero_of_the_joint_moves_the_motors_position_too(flashed: Board) -> None:
    board = flashed.process
    board.link_count = 524_288 // 4
    board.run(70)
    assert board.write("encoder.link_zero", 524_288 // 4 - 1000) is R.OK
    assert board.write("stream.always", 1) is R.OK
    board.run(70)
    block = decode_samples(board.of(M.DATA)[-1])
    assert block.columns["link_position"][-1] == 1000
    assert block.columns["motor_position"][-1] == round(1000 * 101 * 4096 / 524_288)
