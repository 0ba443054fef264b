"""What a board says to whoever greets it: of this protocol or another, with its schema, an echo, and its way out."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from firmware.tests.conftest import StartBoard
from firmware.tests.driver import NODE, UID, BoardProcess, flash, play, prepare, raw_frame
from firmware.tests.test_link import SLOW_LINE
from jointwire import (
    MAX_BODY,
    PROTOCOL_MAJOR,
    PROTOCOL_MINOR,
    EncoderSource,
    Feature,
    MessageType,
    Refusal,
    ResetCause,
    State,
    config_crc,
    encode_frame,
    schema_hash,
    schema_text,
)

M, R, S = MessageType, Refusal, State


def test_hello_says_who_the_board_is(board: BoardProcess) -> None:
    answer = board.hello()
    files = sorted(f.name for f in (board.folder / "jointboard").iterdir() if f.suffix in (".py", ".bin"))
    image = hashlib.sha256()
    for name in (f"jointboard/{name}" for name in files):
        image.update(name.encode() + b"\0" + hashlib.sha256((board.folder / name).read_bytes()).digest())
    assert "schema.bin" in files
    body = answer.body
    assert (answer.node, body.schema_hash, body.uid) == (NODE, schema_hash(), UID + bytes(4))
    assert (body.major, body.minor) == (PROTOCOL_MAJOR, PROTOCOL_MINOR)
    assert body.image_sha256 == image.digest()
    assert (body.state, body.reset_cause) == (S.DISARMED, ResetCause.POWER_ON)
    assert body.board == b"unix".ljust(16, b"\0")
    assert (body.clock_Hz, body.adc_rate_Hz, body.adc_bits, body.adc_reference_mV) == (0, 16_000, 12, 3300)
    assert body.encoder_source == EncoderSource.EMULATED
    assert (body.motor_counts, body.link_counts) == (4096, 524_288)
    assert (body.receive_buffer, body.transmit_buffer, body.max_block) == (512, 8192, 64)
    assert body.max_knots >= 1500
    every = Feature.PLAYBACK | Feature.CURRENT_FILTER | Feature.SYNC_INPUT | Feature.SAVE | Feature.REPL
    assert Feature(body.features) == every
    assert (body.module_type, body.module_serial) == (bytes(16), bytes(16))  # its config.json names none


def test_hello_says_which_module_the_board_is_built_into(tmp_path: Path) -> None:
    board = configured(tmp_path, module={"type": "type2.fork", "serial": "M2-0017-abcdefgh"})
    board.run(1)
    body = board.hello().body
    assert (body.module_type, body.module_serial) == (b"type2.fork" + bytes(6), b"M2-0017-abcdefgh")
    assert board.close() == 0


@pytest.mark.parametrize(
    "module",
    ["type2", 5, [], {"type": "type2"}, {"type": "type2", "serial": 5}, {"type": "", "serial": "5"},
     {"type": "type 2", "serial": "5"}, {"type": "type2", "serial": "longer than 16 characters"},
     {"type": "type2", "serial": "é"}, {"type": "type2", "serial": "5", "size": 2}],
)  # fmt: skip
def test_a_module_that_cannot_be_told_keeps_the_board_from_starting(tmp_path: Path, module: Any) -> None:
    board = configured(tmp_path, module=module)
    assert board.close() == 1
    said = (tmp_path / "stderr.log").read_text(encoding="utf-8")
    assert 'must be {"type": ..., "serial": ...}, each of 1 to 16 ASCII characters without spaces' in said


def configured(folder: Path, **entries: Any) -> BoardProcess:
    """A board with more in its config.json."""
    flash(folder)
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")) | entries), encoding="utf-8")
    return BoardProcess(folder)


def test_a_host_of_another_major_may_ask_and_stop_but_not_arm(board: BoardProcess) -> None:
    prepare(board)
    crc = config_crc(board.registers(), board.trajectory)
    token = board.hello().body.token
    stranger = board.hello(major=PROTOCOL_MAJOR + 1).body
    assert (stranger.token, stranger.major) == (0, PROTOCOL_MAJOR)
    for tried in (token, 0):  # the token given before is void too
        assert board.refusal(M.ARM, token=tried, config_crc=crc) is R.BAD_TOKEN
    for kind, payload, answer in (
        (M.DICT, b"\0\0", M.DICT_PART),
        (M.HELLO, b"\2\0appended by a later version", M.HELLO_ACK),
        (M.STOP, b"appended", M.ACK),
    ):
        seen = len(board.frames)
        board.send_bytes(raw_frame(kind, payload, protocol=PROTOCOL_MAJOR + 1))
        board.run(4)
        assert [frame.type for frame in board.frames[seen:]] == [answer]
    token = board.hello().body.token
    assert board.refusal(M.ARM, token=token, config_crc=crc) is R.OK


def test_a_stranger_stops_a_running_motor(board: BoardProcess) -> None:
    prepare(board)
    play(board)
    assert board.run(10).enable == 1
    board.send_bytes(raw_frame(M.STOP, protocol=9))
    assert board.run(1).enable == 0
    assert board.state is S.LOADED


def test_a_frozen_body_may_be_longer_and_not_shorter(board: BoardProcess) -> None:
    board.send_bytes(raw_frame(M.HELLO, b"\1"))
    board.run(3)
    assert R(board.of(M.ACK)[-1].body.refusal) is R.BAD_LENGTH
    board.send_bytes(raw_frame(M.PING, bytes(5), seq=2))
    board.run(3)
    assert R(board.of(M.ACK)[-1].body.refusal) is R.BAD_LENGTH  # PING is not frozen


def test_the_schema_is_read_from_the_board_part_by_part(board: BoardProcess) -> None:
    packed, total = b"", 1
    while len(packed) < total:
        part = board.request(M.DICT, offset=len(packed)).body
        assert (part.offset, part.count) == (len(packed), len(part.data))
        assert 0 < part.count <= 512
        packed, total = packed + part.data, part.total
    assert zlib.decompress(packed).decode() == schema_text()
    assert zlib.crc32(zlib.decompress(packed)) == board.hello().body.schema_hash
    for offset in (total, 65535):
        answer = board.request(M.DICT, offset=offset).body
        assert (R(answer.refusal), answer.value) == (R.OUT_OF_RANGE, total - 1)


def test_a_board_without_its_schema_says_so_and_stays_itself(board: BoardProcess) -> None:
    (board.folder / "jointboard" / "schema.bin").unlink()
    answer = board.request(M.DICT, offset=0).body
    assert (R(answer.refusal), answer.value) == (R.INCOMPLETE, 2)  # ENOENT
    assert board.state is S.DISARMED


def test_echo_of_every_length(board: BoardProcess) -> None:
    for count in range(MAX_BODY - 1):
        data = bytes((7 * count + 3 * k) % 256 for k in range(count))
        answer = board.request(M.ECHO, count=count, data=data)
        assert (answer.type, answer.body.count, answer.body.data) == (M.ECHO_REPLY, count, data)
    assert board.noise == []


def test_echo_of_every_byte_value(board: BoardProcess) -> None:
    """A storm of each byte, Ctrl-C (3), Ctrl-D (4) and the delimiter among them."""
    for value in range(256):
        for count in (1, 254, MAX_BODY - 2):
            data = bytes([value]) * count
            assert board.request(M.ECHO, count=count, data=data).body.data == data
    assert board.noise == []


def test_interrupt_bytes_between_frames_do_nothing_but_count(board: BoardProcess) -> None:
    prepare(board)
    play(board)
    board.send_bytes(b"\3" * 1000 + b"\0")
    assert board.run(20).enable == 1
    board.send(M.PING, nonce=5)
    board.run(3)
    assert board.of(M.PONG)[-1].body.nonce == 5
    assert board.errors == ""


# A board whose interpreter tells which byte interrupts it.
CONSOLE = """
import micropython, sys
log = open("kbd.log", "w")
class Watched:
    def __getattr__(self, name):
        return getattr(real, name)
    def kbd_intr(self, byte):
        log.write("%d\\n" % byte)
        log.flush()
        real.kbd_intr(byte)
real = micropython
sys.modules["micropython"] = Watched()
from unix import Board
from jointboard import app
app.run(Board())
print("back in the interpreter", file=sys.stderr)
"""


def test_repl_gives_the_board_back_with_its_motor_off(start_board: StartBoard) -> None:
    board = start_board(program=CONSOLE)
    assert board.write("stream.always", 1) is R.OK
    board.run(200)
    assert (board.folder / "kbd.log").read_text() == "-1\n"  # 3 is a byte like any other
    sequence = board.send(M.REPL)
    while board.process.poll() is None and board.tick < 1000:
        try:
            board.run(1)
        except (AssertionError, BrokenPipeError):
            break
        assert board.last.enable == 0
    answer = board.of(M.ACK)[-1].body
    assert (answer.request, answer.refusal, answer.request_seq) == (M.REPL, R.OK, sequence)
    assert board.process.wait(10) == 0
    assert "back in the interpreter" in board.errors
    assert (board.folder / "kbd.log").read_text() == "-1\n3\n"


def test_nothing_that_came_with_a_repl_is_carried_out_after_it(start_board: StartBoard) -> None:
    """The slow line keeps the program for some ticks; in none of them may the motor be driven."""
    board = start_board(program=SLOW_LINE)
    prepare(board)
    arm = encode_frame(M.ARM, NODE, 901, **board.arming())
    board.send_bytes(encode_frame(M.REPL, NODE, 900) + arm + encode_frame(M.START, NODE, 902, at_tick=0))
    seen, enabled = len(board.frames), []
    while board.process.poll() is None and board.tick < 2000:
        try:
            enabled.append(board.run(1).enable)
        except (AssertionError, BrokenPipeError):
            break
    assert len(enabled) > 2
    assert not any(enabled)
    assert [frame.body.request for frame in board.frames[seen:]] == [M.REPL]


@pytest.mark.parametrize("running", [False, True])
def test_repl_is_refused_while_the_motor_can_move(board: BoardProcess, running: bool) -> None:
    prepare(board)
    play(board) if running else board.arm()
    answer = board.request(M.REPL).body
    assert (R(answer.refusal), answer.value) == (R.WRONG_STATE, S.RUNNING if running else S.ARMED)
    assert board.run(5).enable == 1


def test_a_board_in_fault_can_be_given_new_firmware(board: BoardProcess) -> None:
    prepare(board)
    board.arm()
    board.current = 32752
    board.run(3)
    assert board.state is S.FAULT
    assert board.refusal(M.REPL) is R.OK
    assert board.process.wait(10) == 0
