"""What is refused before anything moves: motions that must not be played, and hosts that may not arm."""

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hil_tests.link_helpers import COBOT, bench_with_program, ready_bench, ripple, variation, wave
from hil_tests.small_bench import board_file
from hil_tests.suite.driven_joint import DrivenJoint
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, Board, open_bench
from jointbench.cli.main import main
from jointbench.errors import BoardRefused, ExcitationError
from jointbench.excitation import Excitation, random_excitation
from jointbench.model import Robot, load_robot
from jointbench.recording import open_run, record
from jointwire import BY_NAME, MessageType, Schema, State, config_crc, encode_frame, own_schema, schema_hash

ROBOT = load_robot("cobot6:2")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, plant="ideal", seed=5, modules=2, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture(scope="module")
def plan() -> Excitation:
    return random_excitation(ROBOT, period=1.6, seed=0)


@pytest.fixture
def files(live: Path, plan: Excitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What makes the arguments of `run` of changed bench files and plans."""
    monkeypatch.chdir(tmp_path)

    def make(bench: str = "", motion: Excitation = plan) -> list[str]:
        own = live.with_name("own.toml")
        own.write_text(f"{live.read_text()}\n{bench}", encoding="utf-8")
        Path("plan.json").write_text(json.dumps(motion.to_dict()), encoding="utf-8")
        return ["run", str(own), "--plan", "plan.json", "--repeats", "1", "--out", "run"]

    return make


@pytest.fixture(scope="module")
def stands(live: Path) -> np.ndarray:
    """Where the joints are before anything is asked for."""
    return where(live)


def where(live: Path) -> np.ndarray:
    with open_bench(live) as bench:
        bench.connect()
        assert {board.state for board in bench.boards} == {State.DISARMED}
        return bench.positions()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"motion": random_excitation(replace(ROBOT, name="arm3"), period=1.6)},
            "it is a plan for robot 'arm3', the bench's is 'cobot6:2'; plan for that one",
        ),
        (
            {"motion": replace(random_excitation(load_robot("cobot6:3"), period=1.6), robot_name="cobot6:2")},
            "robot 'cobot6:2' is not what it was when this was planned: its joints sit elsewhere",
        ),
        (
            {
                "motion": replace(
                    random_excitation(load_robot("cobot6:3"), period=1.6), robot_name=ROBOT.name, digests={}
                )
            },
            "it moves 3 joints, robot 'cobot6:2' has 2",
        ),
        ({"bench": "[limits]\nvelocity_rad_s = 0.1\n"}, "velocity reaches"),
        ({"bench": "[limits]\ncurrent_A = 0.01\n"}, "current reaches"),
        ({"bench": "[limits]\nposition_rad = 0.01\n"}, "position reaches"),
    ],
)
def test_run_refuses_what_check_refuses(
    live: Path,
    stands: np.ndarray,
    files: Callable[..., list[str]],
    changes: dict[str, Any],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = files(**changes)
    assert main(run) == 2
    refused = capsys.readouterr().err
    assert said in refused
    assert "plan.json is not played on " in refused
    np.testing.assert_allclose(where(live), stands, atol=1e-3)  # it has not gone home, where runs begin
    assert not Path("run").exists()
    assert main(["check", run[1], "--plan", "plan.json"]) == 1
    assert said in capsys.readouterr().out


@pytest.fixture
def bench(live: Path) -> Iterator[Bench]:
    with open_bench(live) as bench:
        bench.connect()
        bench.configure()
        yield bench


def slower(robot: Robot, velocity: float) -> Robot:
    """The robot with its file's velocity limits lowered [rad/s]."""
    return replace(robot, joints=tuple(replace(joint, velocity_limit=velocity) for joint in robot.joints))


def test_limits_lowered_after_planning_hold_in_a_script(bench: Bench, plan: Excitation, tmp_path: Path) -> None:
    bench.robot = slower(bench.robot, np.radians(10.0))
    for play in (lambda: record(bench, plan, tmp_path / "run"), lambda: bench.play(plan), lambda: bench.admit(plan)):
        with pytest.raises(ExcitationError, match=r"velocity reaches .*0\.174533 rad/s is allowed; the robot's limits"):
            play()
    assert not (tmp_path / "run").exists()
    for board in bench.boards:
        board.hello()
        assert not board.is_driving


def test_homing_keeps_the_bench_files_limits(bench: Bench) -> None:
    bench.file = replace(bench.file, terms=replace(bench.file.terms, limits={"position_rad": 0.05}))
    start = bench.positions()
    bench.move_to(start + 0.04)
    with pytest.raises(ExcitationError, match=r"joint 'j1' position reaches"):
        bench.move_to(start + 0.08)  # 0.04 from here, 0.08 from where it stood
    bench.move_to(start)


def test_the_bench_tests_swings_keep_the_bench_files_limits(bench: Bench) -> None:
    joint = DrivenJoint(bench, bench.boards[0])
    counts = joint.facts.motor_counts * abs(joint.facts.ratio) / (2.0 * np.pi)
    free = np.ptp(joint.swing()[:, 0]) / counts
    assert 0.02 < free <= 0.05  # what was asked for, or what the joint's acceleration allows
    bench.file = replace(bench.file, terms=replace(bench.file.terms, limits={"position_rad": 0.02}))
    assert np.ptp(joint.swing()[:, 0]) / counts < 0.02
    bench.robot = slower(bench.robot, 1e-6)
    with pytest.raises(ExcitationError, match="velocity reaches"):
        joint.swing()


def test_what_was_not_watched_is_said_before_anything_moves(
    files: Callable[..., list[str]], plan: Excitation, capsys: pytest.CaptureFixture[str]
) -> None:
    unwatched = "no capsules: self-collision and table NOT checked"
    run = files("[limits]\nvelocity_rad_s = 0.1\n", replace(plan, not_checked=unwatched))
    assert main(["check", run[1], "--plan", "plan.json"]) == 1
    assert f"plan.json: {unwatched}" in capsys.readouterr().out
    assert main(run) == 2
    assert f"plan.json: {unwatched}" in capsys.readouterr().out


def test_a_gentle_run_goes_a_share_of_the_way(
    live: Path, plan: Excitation, files: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    run = files()
    assert main([*run, "--gentle", "--json", "result.json"]) == 0
    assert ", 20% of its way and speed" in capsys.readouterr().out
    recorded = open_run("run")
    whole = plan.evaluate(np.linspace(0.0, plan.period, 200))[0] - plan.home
    gone = recorded.samples.motor_position[recorded.samples.play_tick >= 0] - plan.home
    np.testing.assert_allclose(np.ptp(gone, axis=0), 0.2 * np.ptp(whole, axis=0), atol=0.01)  # the servo's error
    assert recorded.provenance["gentle"] == 0.2
    assert recorded.provenance["settings"]["j1"]["velocity_limit"] == pytest.approx(
        0.2 * 1.3 * ROBOT.velocity_limits[0]
    )


SECOND_PROGRAM = 0xBEEF  # where its sequence numbers stand


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def handshake_bench(tmp_path: Path) -> Iterator[Bench]:
    simulated = virtual_bench(COBOT, plant="ideal", seed=3, modules=3, out=tmp_path / "sim")
    with simulated as live, ready_bench(live) as handshake_bench:
        yield handshake_bench


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


@pytest.mark.usefixtures("cache")
def test_a_schema_of_one_field_more_is_refused_with_what_differs_and_what_to_do(tmp_path: Path) -> None:
    other = other_schema()
    bench_file = bench_with_program(tmp_path, "j2", firmware_of(other))
    with virtual_bench(bench_file, out=tmp_path / "sim") as live, open_bench(live) as handshake_bench:
        with pytest.raises(BoardRefused) as caught:
            handshake_bench.connect()
        text = str(caught.value)
        assert (caught.value.joint, caught.value.node) == ("j2", 2)
        assert f"{other.hash:08x}" in text
        assert f"{schema_hash():08x}" in text
        assert "limit.current" in text
        assert "30000" in text
        assert f"`./run sim {bench_file}`" in text
        # It can still be told to stop, and asked about itself.
        handshake_bench.boards[1].stop()
        assert handshake_bench.boards[1].schema() == other
        with pytest.raises(BoardRefused):
            handshake_bench.boards[1].arm()


@pytest.mark.usefixtures("cache")
def test_the_dict_is_asked_for_once(tmp_path: Path, cache: Path) -> None:
    other = other_schema()
    bench_file = bench_with_program(tmp_path, "j2", firmware_of(other))
    kept = cache / "jointbench" / "schemas" / f"{other.hash:08x}.json"
    received = []
    with virtual_bench(bench_file, out=tmp_path / "sim") as live, open_bench(live) as handshake_bench:
        board = handshake_bench.boards[1]
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


@pytest.mark.usefixtures("cache")
def test_another_major_version_is_refused_and_can_be_diagnosed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench_file = bench_with_program(tmp_path, "j1", firmware_of(other_schema(), major=2))
    with virtual_bench(bench_file, out=tmp_path / "sim") as live:
        with (
            open_bench(live) as handshake_bench,
            pytest.raises(BoardRefused, match=r"^j1 \(node 1\): speaks wire 2\.\d "),
        ):
            handshake_bench.connect()
        assert main(["list", str(live), "--json", "-"]) == 1
        boards = json.loads(capsys.readouterr().out)["boards"]
        assert boards[0]["wire"].startswith("2.")
        assert "limit.current" in boards[0]["trouble"]
        assert [board["trouble"] for board in boards[1:]] == [""] * 5
        assert main(["repl", str(live), "j1"]) == 0
        assert "is the interpreter's now" in capsys.readouterr().out


@pytest.mark.usefixtures("cache")
def test_a_stale_token_does_not_arm(handshake_bench: Bench) -> None:
    board = handshake_bench.boards[0]
    board.upload(_knots_at_rest(handshake_bench), 1)
    board.hello()
    stale = board._token
    board.hello()
    assert board._token != stale
    with pytest.raises(BoardRefused, match="refused ARM: the arming token is not that of its last HELLO_ACK"):
        board.client.arm(stale, config_crc(handshake_bench.facts[0].registers, board.trajectory))
    assert board.state is not State.ARMED


@pytest.mark.usefixtures("cache")
def test_a_second_program_takes_the_token_away(handshake_bench: Bench) -> None:
    board = handshake_bench.boards[0]
    board.upload(_knots_at_rest(handshake_bench), 1)
    board.hello()
    from_second_program(board, MessageType.HELLO, major=1, minor=1)
    with pytest.raises(BoardRefused, match="does another program use this board"):
        board.client.arm(board._token, config_crc(handshake_bench.facts[0].registers, board.trajectory))
    board.arm()  # a fresh greeting, and the board is this one's again
    assert board.state is State.ARMED
    handshake_bench.stop()


@pytest.mark.usefixtures("cache")
def test_registers_that_another_program_changed_keep_the_motor_off(handshake_bench: Bench) -> None:
    limit = BY_NAME["limit.current"]
    from_second_program(handshake_bench.boards[2], MessageType.WRITE, register=limit.id, value=limit.maximum)
    with pytest.raises(BoardRefused, match=r"^j3 \(node 3\): refused ARM: .*another program changed .*configure\(\)"):
        handshake_bench.play(wave(handshake_bench))
    for board in handshake_bench.boards:
        board.hello()
        assert board.state is State.LOADED
    handshake_bench.connect()
    handshake_bench.configure()
    handshake_bench.play(ripple(handshake_bench))
    assert {board.state for board in handshake_bench.boards} == {State.DONE}


@pytest.mark.usefixtures("cache")
def test_what_this_host_writes_it_knows(handshake_bench: Bench) -> None:
    handshake_bench.boards[2].write_register("limit.following", 3000)
    assert handshake_bench.facts[2].registers["limit.following"] == 3000
    handshake_bench.play(ripple(handshake_bench))
    assert handshake_bench.provenance()["board"][2]["registers"]["limit.following"] == 3000


@pytest.mark.usefixtures("cache")
def test_calibration_is_saved_at_rest(handshake_bench: Bench, tmp_path: Path) -> None:
    handshake_bench.boards[1].write_register("torque.zero", 12)
    handshake_bench.save()
    assert b"torque.zero" in board_file(tmp_path / "sim", "j2", "settings.json")


def _knots_at_rest(handshake_bench: Bench) -> NDArray[np.int32]:
    """Where joint 1 is, for three knots."""
    position = round(
        handshake_bench.positions()[0]
        * handshake_bench.facts[0].ratio
        * handshake_bench.facts[0].motor_counts
        / (2.0 * np.pi)
    )
    return np.array([[position, 0]] * 3, dtype=np.int32)
