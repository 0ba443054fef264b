"""Faults of the hardware that the bench can make: each does what docs/faults.md says, to one board, until healed."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil_tests.pendulum import ARM_INERTIA, ROTOR_INERTIA, pendulum_robot, pendulum_truth
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.board import TICK_IN
from hil_tests.virtual_bench.errors import ControlError
from hil_tests.virtual_bench.hardware_faults import FAULTS, HardwareFaults, Injection, parse_injection
from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import Plant
from jointwire import MessageType, encode_frame

FACTS = {"voltage.scale": 2000, "temperature.scale": 10000, "temperature.zero": -27315}
TICK_WORD, MOTOR_COUNT, SUPPLY, TEMPERATURE, RECEIVED = 0, 4, 6, 7, 8  # of what report.py sends


@pytest.fixture
def faults() -> HardwareFaults:
    return HardwareFaults({1: FACTS, 2: FACTS}, {1: 0, 2: 3}, 6)


def show(faults: HardwareFaults, counts: list[int], before: int) -> list[int]:
    """What board 1's motor encoder shows as its true count runs."""
    inputs = np.zeros(1, TICK_IN)
    inputs["motor_count"] = before
    shown = []
    for edge, count in enumerate(counts):
        earlier = inputs.copy()[0]
        inputs["motor_count"], inputs["motor_edge"] = count % 2**16, edge
        faults.alter(1, inputs[0], earlier)
        shown.append(int(inputs["motor_count"][0]))
    return shown


moves = st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=20)


@given(moves, moves, st.integers(0, 2**16 - 1), st.sampled_from([("encoder_stuck", 0), ("encoder_reversed", -1)]))
def test_an_encoder_that_was_wrong_counts_on_from_where_it_is(
    during: list[int], after: list[int], start: int, fault: tuple[str, int]
) -> None:
    faults = HardwareFaults({1: FACTS}, {1: 0}, 1)
    name, way = fault
    true = [start]
    for move in during + after:
        true.append(true[-1] + move)
    faults.inject(Injection(1, name, 0))
    first = show(faults, true[1 : len(during) + 1], start)
    faults.heal(1)
    second = show(faults, true[len(during) + 1 :], first[-1])
    expected = start
    for shown, move, sign in zip(first + second, during + after, [way] * len(during) + [1] * len(after), strict=True):
        expected = (expected + sign * move) % 2**16
        assert shown == expected


@pytest.fixture
def pair() -> HardwareFaults:
    """Faults of a board with the nodes 1 and 2, and of another with node 3."""
    return HardwareFaults(dict.fromkeys((1, 2, 3), FACTS), {1: 0, 2: 1, 3: 2}, 3, [(1, 2)])


@pytest.mark.parametrize("node", [1, 2])
def test_what_is_the_boards_strikes_both_its_motors(pair: HardwareFaults, node: int) -> None:
    pair.inject(Injection(node, "supply", 12_000))
    pair.inject(Injection(node, "line_silent", 0))
    pair.inject(Injection(node, "ticks_missed", 1))
    assert pair.passes(1, b"abc") == b""
    assert pair.passes(3, b"abc") == b"abc"
    assert pair.missing([1, 3]) == {1}
    assert pair.missing([1, 3]) == set()
    inputs = np.zeros(2, TICK_IN)
    for place in (0, 1):
        pair.alter(1 + place, inputs[place], inputs[place].copy())
    assert inputs["bus_voltage"].tolist() == [6000, 6000]
    pair.heal(3 - node)
    assert pair.passes(1, b"abc") == b"abc"


def test_what_is_a_motors_strikes_it_alone(pair: HardwareFaults) -> None:
    pair.inject(Injection(2, "current_stuck", 4095))
    pair.inject(Injection(2, "push", 5))
    inputs = np.zeros(2, TICK_IN)
    for place in (0, 1):
        pair.alter(1 + place, inputs[place], inputs[place].copy())
    assert inputs["adc"][:, 0].max(axis=1).tolist() == [0, 4095]
    assert pair.torque.tolist() == [0, 5, 0]


def test_a_silent_motor_loses_its_own_frames_and_no_others(pair: HardwareFaults) -> None:
    own, other, every = (encode_frame(MessageType.PING, node, 7, nonce=node) for node in (2, 1, 255))
    pair.inject(Injection(2, "motor_silent", 0))
    for way in (pair.passes, pair.says):
        assert way(1, own + other + own + every) == other + every
        assert way(1, own[:5]) == b""
        assert way(1, own[5:] + other[:3]) == b""  # the rest of a frame decides
        assert way(1, other[3:]) == other
        assert way(3, own) == own  # another line
    assert pair.passes(1, b"\0noise\0") == b"\0noise\0"
    pair.heal(1)
    assert pair.says(1, own) == own


def test_an_encoder_jumps_once(faults: HardwareFaults) -> None:
    faults.inject(Injection(1, "encoder_jump", 500))
    assert show(faults, [65_530, 65_540], 65_520) == [(65_530 + 500) % 2**16, (65_540 + 500) % 2**16]


def test_an_encoder_that_stands_tells_no_new_edges(faults: HardwareFaults) -> None:
    inputs = np.zeros(1, TICK_IN)
    inputs["motor_count"], inputs["motor_edge"] = 10, 7
    earlier = inputs.copy()[0]
    faults.inject(Injection(1, "encoder_stuck", 0))
    inputs["motor_count"], inputs["motor_edge"] = 12, 9
    faults.alter(1, inputs[0], earlier)
    assert (inputs["motor_count"][0], inputs["motor_edge"][0]) == (10, 7)


def test_converters_show_what_they_are_told_and_no_others_change(faults: HardwareFaults) -> None:
    inputs = np.zeros(1, TICK_IN)
    inputs["adc"][0, 1] = 77
    for fault, value in {"supply": 24_000, "temperature": 80.5, "current_stuck": 4095}.items():
        faults.inject(Injection(1, fault, value))
    faults.alter(1, inputs[0], inputs.copy()[0])
    assert (inputs["bus_voltage"][0], inputs["temperature"][0]) == (12_000, 8050)
    assert np.all(inputs["adc"][0, 0] == 4095)
    assert np.all(inputs["adc"][0, 1] == 77)
    faults.inject(Injection(1, "supply", 100_000))  # beyond what the converter has
    faults.alter(1, inputs[0], inputs.copy()[0])
    assert inputs["bus_voltage"][0] == 2**15 - 1
    before = inputs.copy()
    faults.heal(1)
    faults.alter(1, inputs[0], inputs.copy()[0])
    assert inputs == before
    assert faults.missing([1, 2]) == set()
    assert faults.passes(2, b"x") == b"x"


def test_samples_are_off_as_they_are_told_and_end_at_the_rails(faults: HardwareFaults) -> None:
    def shown(fault: str, value: float = 0) -> list[list[int]]:
        faults.inject(Injection(1, fault, value))
        ticks = []
        for _ in range(2):
            inputs = np.zeros(1, TICK_IN)
            inputs["adc"][0, 0] = 2148
            faults.alter(1, inputs[0], inputs.copy()[0])
            ticks.append(inputs["adc"][0, 0].tolist())
        faults.heal(1)
        return ticks

    assert shown("current_offset", 500) == [[2648] * 16] * 2
    assert shown("current_offset", 4000) == [[4095] * 16] * 2
    assert shown("current_offset", -4000) == [[0] * 16] * 2
    assert shown("current_jump", 500) == [[2648] * 16, [2148] * 16]
    assert shown("current_reversed") == [[1948] * 16] * 2
    assert shown("torque_stuck", 7) == [[2148] * 16] * 2
    first, second = shown("current_noise", 100)
    assert first != second
    assert all(2048 <= sample <= 2248 for sample in first + second)


def test_a_link_encoder_is_right_again_once_it_is_healed() -> None:
    faults = HardwareFaults({1: FACTS | {"encoder.link_counts": 1000}}, {1: 0}, 1)

    def shown(before: int, count: int) -> int:
        inputs = np.zeros(2, TICK_IN)
        inputs["link_count"] = [before, count]
        faults.alter(1, inputs[1], inputs[0])
        return int(inputs["link_count"][1])

    for fault, value, expected in (
        ("link_stuck", 0, [10, 10]), ("link_reversed", 0, [988, 988]), ("link_offset", 995, [7, 7]),
        ("link_jump", -20, [992, 12]),
    ):  # fmt: skip
        faults.inject(Injection(1, fault, value))
        assert [shown(10, 12) for _ in range(2)] == expected
        faults.heal(1)
        assert shown(10, 12) == 12
    faults.inject(Injection(1, "link_noise", 3))
    assert {shown(10, 12) for _ in range(100)} == set(range(9, 16))


def test_an_encoder_that_was_noisy_is_right_again(faults: HardwareFaults) -> None:
    faults.inject(Injection(1, "encoder_noise", 2))
    noisy = show(faults, [100] * 100, 100)
    assert set(noisy) == {98, 99, 100, 101, 102}
    faults.heal(1)
    assert show(faults, [100], noisy[-1]) == [100]


def test_pauses_come_again_until_they_are_healed(faults: HardwareFaults) -> None:
    faults.inject(Injection(1, "pauses", 10))
    missed = [faults.missing([1, 2]) == {1} for _ in range(128)]
    assert missed == ([True] * 10 + [False] * 54) * 2
    faults.inject(Injection(1, "pauses", 3))
    faults.heal(1)
    assert not any(faults.missing([1, 2]) for _ in range(64))


def test_a_broken_drive_obeys_enable_and_nothing_else(faults: HardwareFaults) -> None:
    def given(*enabled: bool) -> list[float]:
        current = np.ones(6)
        faults.misdrive(np.array([enabled[0], True, True, enabled[1], True, True]), current)
        return current.tolist()

    faults.inject(Injection(1, "drive_dead", 0))
    faults.inject(Injection(2, "drive_runs_away", -2500))
    assert given(True, True) == [0, 1, 1, -2.5, 1, 1]
    assert given(True, False) == [0, 1, 1, 1, 1, 1]
    faults.heal_all()
    assert given(True, True) == [1] * 6


def test_a_push_accelerates_link_and_rotor_as_one() -> None:
    """A rigid joint without friction and gravity: a = torque / (J + rotor); after t it has gone a t² / 2."""
    plant = Plant(pendulum_robot(gravity=False), pendulum_truth(), "ideal")
    on, nothing, torque = np.array([True]), np.zeros(1), np.array([2.0])
    for _ in range(100):
        plant.advance(on, nothing, torque)
    acceleration = 2.0 / (ARM_INERTIA + ROTOR_INERTIA)
    # Runge-Kutta of order 4 is exact where the acceleration is constant; MuJoCo's own floor is near 1e-12.
    assert plant.link_position[0] == pytest.approx(acceleration * (100 * TICK) ** 2 / 2, rel=1e-9)
    speed = plant.link_position[0] + acceleration * 100 * TICK * 100 * TICK
    for _ in range(100):
        plant.advance(on, nothing)  # nobody pushes any more
    assert plant.link_position[0] == pytest.approx(speed, rel=1e-9)


# On a bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("faults")
    with virtual_bench(write_bench_file(folder, "report.py", "echo.py"), plant="ideal", out=folder / "sim") as live:
        yield live


@pytest.fixture
def client(bench: Path) -> Iterator[RawClient]:
    with RawClient(bench) as client:
        yield client


def words(client: RawClient, ticks: int) -> list[tuple[int, ...]]:
    """What board 1 reports of the ticks to come."""
    return list(struct.iter_unpack("<10i", client.pass_time(1000 * ticks)[1]))


def inject(client: RawClient, fault: str, node: int = 1, **value: float) -> int:
    answer = client.ask({"inject": {"node": node, "fault": fault, **value}})
    return answer["tick"]


def test_it_begins_at_the_tick_that_the_answer_names(client: RawClient) -> None:
    tick = inject(client, "temperature", temperature_degC=150)
    inject(client, "supply", voltage_mV=10_000)
    report = words(client, 3)
    assert report[0][TICK_WORD] == tick
    assert {word[TEMPERATURE] for word in report} == {15_000}
    assert len({word[SUPPLY] for word in report}) == 1
    assert client.ask({"heal": 1}) == {"tick": tick + 3, "altered": 3}
    assert client.ask({"heal": 1})["altered"] == 0
    assert all(word[TEMPERATURE] < 5_000 for word in words(client, 3))


def test_missed_ticks_are_not_there_and_bytes_wait(client: RawClient) -> None:
    tick = inject(client, "ticks_missed", ticks=5)
    client.write(1, b"abc")
    report = words(client, 8)
    assert [word[TICK_WORD] for word in report] == [tick + 5, tick + 6, tick + 7]
    assert [word[RECEIVED] for word in report] == [3, 0, 0]
    inject(client, "ticks_missed", node=2, ticks=5)
    assert [word[TICK_WORD] for word in words(client, 5)] == list(
        range(tick + 8, tick + 13)
    )  # the other board's matter


def test_a_silent_line_loses_bytes_on_their_way_to_the_board(client: RawClient) -> None:
    inject(client, "line_silent", node=2)
    client.write(2, b"lost")
    assert client.pass_time(20_000)[2] == b""
    client.ask({"heal": 2})
    client.write(2, b"a word")
    assert client.pass_time(20_000)[2] == b"a word"


def test_faults_end_with_their_client(bench: Path) -> None:
    with RawClient(bench) as client:
        inject(client, "line_silent", node=2)
    with RawClient(bench) as client:
        client.write(2, b"a word")
        assert client.pass_time(20_000)[2] == b"a word"


def test_outputs_are_noted_from_the_first_question_on(client: RawClient) -> None:
    client.pass_time(3_000)
    assert client.ask({"outputs": 2}) == {"outputs": []}
    tick = client.ask({"heal": 2})["tick"]
    client.write(2, b"e")
    client.pass_time(3_000)
    client.write(2, b"d")
    client.pass_time(1_000)
    noted = client.ask({"outputs": 2})["outputs"]
    assert noted == [[tick, 1, 0], [tick + 1, 1, 0], [tick + 2, 1, 0], [tick + 3, 0, 0]]
    assert client.ask({"outputs": 2}) == {"outputs": []}


@pytest.mark.parametrize(
    ("request_", "words_"),
    [
        (5, "inject: node = None is no board; this bench has 1, 2"),
        ({"node": 3, "fault": "push", "torque_Nm": 1}, "node = 3 is no board"),
        ({"node": True, "fault": "push", "torque_Nm": 1}, "node = True is no board"),
        ({"node": [1], "fault": "push", "torque_Nm": 1}, r"node = \[1\] is no board"),
        ({"node": 1, "fault": "fire"}, "fault = 'fire' is none of encoder_stuck, "),
        ({"node": 1, "fault": "push"}, "push takes fault, node, torque_Nm; it was given fault, node"),
        ({"node": 1, "fault": "encoder_stuck", "counts": 1}, "encoder_stuck takes fault, node; it was given"),
        ({"node": 1, "fault": "push", "torque_Nm": 1001}, "torque_Nm = 1001 must be a number from -1000 to 1000"),
        ({"node": 1, "fault": "push", "torque_Nm": float("nan")}, "torque_Nm = nan must be a number"),
        ({"node": 1, "fault": "ticks_missed", "ticks": 1.5}, "ticks = 1.5 must be a whole number from 1 to 10000"),
        (
            {"node": 1, "fault": "current_stuck", "sample": "high"},
            "sample = 'high' must be a whole number from 0 to 40",
        ),
    ],
)
def test_what_cannot_be_done_is_said(request_: Any, words_: str) -> None:
    with pytest.raises(ControlError, match=words_):
        parse_injection(request_, frozenset({1, 2}))


FOOT = {"force.scale": 20_000, "board.channels": 0x780}


@pytest.fixture
def feet() -> HardwareFaults:
    """Faults of boards on a joint, on the foot it moves and on the foot that is the base."""
    return HardwareFaults({1: FACTS, 2: FOOT, 3: FOOT}, {1: 0, 2: 0, 3: -1}, 1)


def test_each_corner_of_a_foot_has_its_faults(feet: HardwareFaults) -> None:
    feet.inject(Injection(2, "foot_force_1_stuck", 0))
    feet.inject(Injection(2, "foot_force_3_dead", 0))
    feet.inject(Injection(2, "foot_force_4_offset", -5.0))
    inputs = np.zeros(2, TICK_IN)
    inputs["foot_force"] = [(100, 200, 300, 400), (110, 210, 310, 410)]
    feet.alter(2, inputs[1], inputs[0])
    assert inputs["foot_force"][1].tolist() == [100, 210, 0, 160]  # 5 N are 250 counts of 20 mN
    feet.heal(2)
    inputs["foot_force"][1] = 1
    feet.alter(2, inputs[1], inputs[0])
    assert inputs["foot_force"][1].tolist() == [1, 1, 1, 1]


def test_a_foot_can_be_shoved_wherever_it_is(feet: HardwareFaults) -> None:
    assert feet.force is None
    feet.inject(Injection(3, "shove", 70.0))
    feet.inject(Injection(1, "shove", -3.0))
    feet.inject(Injection(2, "push", 4.0))
    assert feet.force is not None
    assert feet.force.tolist() == [[0.0, 70.0, 0.0], [0.0, -3.0, 0.0]]
    assert feet.torque.tolist() == [4.0]
    feet.heal_all()
    assert not feet.force.any()
    assert not feet.torque.any()


@pytest.mark.parametrize(
    ("node", "fault", "words"),
    [
        (1, "foot_force_2_stuck", "node 1 is no foot"),
        (2, "encoder_stuck", "node 2 is a foot; it cannot have encoder_stuck"),
        (3, "push", "node 3 is at the base, which no joint moves"),
        (1, "encoder_wire_cut", "node 1 is told counts, and has no wires"),
    ],
)
def test_a_board_has_no_faults_of_what_it_lacks(feet: HardwareFaults, node: int, fault: str, words: str) -> None:
    with pytest.raises(ControlError, match=words):
        feet.inject(Injection(node, fault, 0))


def test_the_bench_says_it_too(client: RawClient) -> None:
    assert "none of encoder_stuck" in client.ask({"inject": {"node": 1, "fault": "fire"}})["error"]
    for request in ("heal", "outputs"):
        assert f"{request} = 7 is no board; this bench has 1, 2" in client.ask({request: 7})["error"]


def test_every_fault_is_described() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / "faults.md").read_text(encoding="utf-8")
    for name, value in FAULTS.items():
        row = next(line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1])
        assert value is None or f"`{value.name}`, {value.lowest:g} … {value.highest:g}" in row
