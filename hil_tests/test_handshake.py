"""Who may talk to a board, and who may arm it: its own release, knowing its registers, by a fresh greeting."""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hil_tests.link_helpers import COBOT, bench_with_program, ripple, variation, wave
from hil_tests.small_bench import board_file
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, Board, open_bench
from jointbench.cli.main import main
from jointbench.errors import BoardRefused, SchemaMismatch
from jointwire import BY_NAME, MessageType, Schema, State, config_crc, encode_frame, own_schema, schema_hash

SECOND_PROGRAM = 0xBEEF  # where its sequence numbers stand


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    simulated = virtual_bench(COBOT, plant="ideal", seed=3, modules=3, out=tmp_path / "sim")
    with simulated as live, open_bench(live) as bench:
        bench.connect()
        bench.configure()
        bench.move_to(bench.robot.home)
        yield bench


def other_schema() -> Schema:
    """This one but for one field: limit.current goes to 30 A."""
    values = json.loads(own_schema().text)
    (limit,) = (register for register in values["registers"] if register["name"] == "limit.current")
    limit["maximum"] = 30000
    return Schema.from_text(json.dumps(values, separators=(",", ":"), sort_keys=True, ensure_ascii=False))


def firmware_of(schema: Schema, major: int = 1) -> str:
    """The firmware, but built with another schema."""
    packed = zlib.compress(schema.text.encode(), 9)
    return variation(
        f"wire.SCHEMA_HASH = {schema.hash}\nwire.PROTOCOL_MAJOR = {major}\n"
        f"open('jointboard/schema.bin', 'wb').write({packed!r})"
    )


def from_second_program(board: Board, kind: MessageType, **fields) -> None:
    """A frame that this host knows nothing of, and time to carry it out."""
    board.port.write(encode_frame(kind, board.node, SECOND_PROGRAM, **fields))
    for _ in range(5):
        board._clock.wait(2000)


def test_a_schema_of_one_field_more_is_refused_with_what_differs_and_what_to_do(tmp_path: Path) -> None:
    other = other_schema()
    bench_file = bench_with_program(tmp_path, "j2", firmware_of(other))
    with virtual_bench(bench_file, out=tmp_path / "sim") as live, open_bench(live) as bench:
        with pytest.raises(SchemaMismatch) as caught:
            bench.connect()
        text = str(caught.value)
        assert (caught.value.joint, caught.value.node) == ("j2", 2)
        assert f"{other.hash:08x}" in text
        assert f"{schema_hash():08x}" in text
        assert "limit.current" in text
        assert "30000" in text
        assert f"`./run sim {bench_file}`" in text
        # It can still be told to stop, and asked about itself.
        bench.boards[1].stop()
        assert bench.boards[1].schema() == other
        with pytest.raises(SchemaMismatch):
            bench.boards[1].arm()


def test_the_dict_is_asked_for_once(tmp_path: Path, cache: Path) -> None:
    other = other_schema()
    bench_file = bench_with_program(tmp_path, "j2", firmware_of(other))
    kept = cache / "jointbench" / "schemas" / f"{other.hash:08x}.json"
    received = []
    with virtual_bench(bench_file, out=tmp_path / "sim") as live, open_bench(live) as bench:
        board = bench.boards[1]
        for _ in range(2):
            before = board.port.received
            assert board.schema() == other
            received.append(board.port.received - before)
        assert kept.read_text() == other.text
        kept.write_text(other.text[:-1] + "!")
        before = board.port.received
        assert board.schema() == other
        assert board.port.received - before > 1000
    assert received[0] > 1000
    assert received[1] == 0
    assert kept.read_text() == other.text


def test_another_major_version_is_refused_and_can_be_diagnosed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench_file = bench_with_program(tmp_path, "j1", firmware_of(other_schema(), major=2))
    with virtual_bench(bench_file, out=tmp_path / "sim") as live:
        with open_bench(live) as bench, pytest.raises(SchemaMismatch, match=r"^j1 \(node 1\): speaks wire 2\.\d "):
            bench.connect()
        assert main(["list", str(live), "--json", "-"]) == 1
        boards = json.loads(capsys.readouterr().out)["boards"]
        assert boards[0]["wire"].startswith("2.")
        assert "limit.current" in boards[0]["trouble"]
        assert [board["trouble"] for board in boards[1:]] == [""] * 5
        assert main(["repl", str(live), "j1"]) == 0
        assert "is the interpreter's now" in capsys.readouterr().out


def test_a_stale_token_does_not_arm(bench: Bench) -> None:
    board = bench.boards[0]
    board.upload(_knots_at_rest(bench), 1)
    board.hello()
    stale = board._token
    board.hello()
    assert board._token != stale
    with pytest.raises(BoardRefused, match="refused ARM: the arming token is not that of its last HELLO_ACK"):
        board.client.arm(stale, config_crc(bench.facts[0].registers, board.trajectory))
    assert board.state is not State.ARMED


def test_a_second_program_takes_the_token_away(bench: Bench) -> None:
    board = bench.boards[0]
    board.upload(_knots_at_rest(bench), 1)
    board.hello()
    from_second_program(board, MessageType.HELLO, major=1, minor=1)
    with pytest.raises(BoardRefused, match="does another program use this board"):
        board.client.arm(board._token, config_crc(bench.facts[0].registers, board.trajectory))
    board.arm()  # a fresh greeting, and the board is this one's again
    assert board.state is State.ARMED
    bench.stop()


def test_registers_that_another_program_changed_keep_the_motor_off(bench: Bench) -> None:
    limit = BY_NAME["limit.current"]
    from_second_program(bench.boards[2], MessageType.WRITE, register=limit.id, value=limit.maximum)
    with pytest.raises(BoardRefused, match=r"^j3 \(node 3\): refused ARM: .*another program changed .*configure\(\)"):
        bench.play(wave(bench))
    for board in bench.boards:
        board.hello()
        assert board.state is State.LOADED
    bench.connect()
    bench.configure()
    bench.play(ripple(bench))
    assert {board.state for board in bench.boards} == {State.DONE}


def test_what_this_host_writes_it_knows(bench: Bench) -> None:
    bench.boards[2].write_register("limit.following", 3000)
    assert bench.facts[2].registers["limit.following"] == 3000
    bench.play(ripple(bench))
    assert bench.provenance()["board"][2]["registers"]["limit.following"] == 3000


def test_calibration_is_saved_at_rest(bench: Bench, tmp_path: Path) -> None:
    bench.boards[1].write_register("torque.zero", 12)
    bench.save()
    assert b"torque.zero" in board_file(tmp_path / "sim", "j2", "settings.json")


def _knots_at_rest(bench: Bench) -> NDArray[np.int32]:
    """Where joint 1 is, for three knots."""
    position = round(bench.positions()[0] * bench.facts[0].ratio * bench.facts[0].motor_counts / (2.0 * np.pi))
    return np.array([[position, 0]] * 3, dtype=np.int32)
