"""What boards show while their motors are off: each thing that is not as it should be is found, and nothing else."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from jointbench.bench.fitness import BoardFinding, Observation, board_findings, position_findings
from jointbench.bench.identity import Facts, Identity
from jointbench.bench.ledger import BoardLedger
from jointbench.bench.sync import Exchange
from jointbench.model import load_robot
from jointbench.tests.bench.wire import DEFAULTS, HELLO_ACK
from jointwire import Frame, FrameReader, MessageType, State, encode_frame

ROBOT = load_robot("cobot6:1")
RATIO = ROBOT.drives[0].ratio
FACTS = Facts({**DEFAULTS, "drive.ratio": round(1000 * RATIO), "stream.channels": 0x7F})
SOUND = {
    "motor_current": 3, "motor_position": 0, "link_position": 0, "bus_voltage": 24_000, "temperature": 2500,
}  # fmt: skip
LEDGER = BoardLedger(1, "j1", 100, 100, 0, 0, 1000, 1000, 0, 0, 0, 0)
PINGS = tuple(Exchange(at, at + 1200, at // 1000, at + 600) for at in range(0, 1_000_000, 40_000))


@dataclass
class Board:
    """What a look asks of a board."""

    facts: Facts
    identity: Identity
    state: State = State.DISARMED
    joint: str = "j1"
    node: int = 1

    @property
    def is_driving(self) -> bool:
        return self.state in (State.ARMED, State.RUNNING)

    def need_our_schema(self) -> None:
        pass


def identity(cause: str = "POWER_ON") -> Identity:
    (chunk,) = FrameReader().feed(encode_frame(MessageType.HELLO_ACK, 1, 1, 0, **HELLO_ACK))
    return replace(Identity.from_hello(cast(Frame, chunk.content).body), reset_cause=cause)


def heard(ledger: BoardLedger = LEDGER, pings: tuple[Exchange, ...] = PINGS, **samples: object) -> Observation:
    columns = {
        name: np.broadcast_to(np.asarray(value, dtype=np.int32), 1000) for name, value in (SOUND | samples).items()
    }
    return Observation(ledger, pings, (), columns, None)


def found(said: Observation, board: Board | None = None) -> dict[str, BoardFinding]:
    own = cast(Any, board or Board(FACTS, identity()))
    each = board_findings(own, said, ROBOT, 0, FACTS) + position_findings([own], [said], ROBOT)
    return {finding.name: finding for finding in each}


def wrong(said: Observation, board: Board | None = None) -> dict[str, str]:
    return {name: finding.text for name, finding in found(said, board).items() if not finding.ok}


def test_a_sound_board_is_fit() -> None:
    assert wrong(heard()) == {}
    assert found(heard())["supply"].figure == "24.0 V"
    assert found(heard())["temperature"].figure == "25 °C"


SLOW = tuple(replace(each, received_us=each.sent_us + 150_000) for each in PINGS)
OFF_ZERO = round(0.1 * ROBOT.drives[0].current_limit / FACTS.si("current.scale"))
HALF_A_TURN = FACTS.registers["encoder.link_counts"] // 2
TURNED_A_LITTLE = np.linspace(0, HALF_A_TURN // 25, 1000)


@pytest.mark.parametrize(
    ("said", "name", "words"),
    [
        (heard(replace(LEDGER, link_lost=5)), "link", "check cable, shield, baud rate"),
        (heard(replace(LEDGER, samples_received=0)), "link", "it streams no samples"),
        (heard(replace(LEDGER, fault="the board started again")), "link", "the board started again"),
        (heard(pings=SLOW), "link", "the slowest answer took 150 ms"),
        (heard(replace(LEDGER, ticks_missed=1)), "clock", "it missed 1 of its ticks"),
        (heard(motor_current=OFF_ZERO), "current", "start the board anew with the motor at rest"),
        (heard(bus_voltage=0), "supply", "0.0 V: the motor's supply is off"),
        (heard(temperature=20_000), "temperature", "over its limit of 100 °C"),
        (heard(temperature=-27_000), "temperature", "colder than any motor is"),
        (heard(link_position=HALF_A_TURN), "position", "motor and link encoder are 180.0° apart"),
        (
            heard(motor_position=round(RATIO * 4096 * 0.75), link_position=HALF_A_TURN * 3 // 2),
            "position", "outside its window",
        ),
        (
            heard(motor_position=np.linspace(0, 40_000, 1000), link_position=np.linspace(0, -60_000, 1000)),
            "position", "count in opposite directions",
        ),
        (
            heard(motor_position=np.arange(1000) % 2, link_position=TURNED_A_LITTLE),
            "position", "the motor encoder does not count",
        ),
        (heard(link_position=TURNED_A_LITTLE), "position", "the motor encoder does not count"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_should_be_is_the_only_thing_found(said: Observation, name: str, words: str) -> None:
    troubles = wrong(said)
    assert list(troubles) == [name]
    assert words in troubles[name]


def test_a_board_that_answers_no_ping() -> None:
    assert list(wrong(heard(pings=()))) == ["link", "clock"]


@pytest.mark.parametrize(
    ("board", "words"),
    [
        (Board(FACTS, identity(), State.ARMED), "its motor may be driven"),
        (Board(FACTS, identity("WATCHDOG")), "its watchdog reset it"),
    ],
)
def test_a_board_in_another_state(board: Board, words: str) -> None:
    troubles = wrong(heard(), board)
    assert list(troubles) == ["state"]
    assert words in troubles["state"]


def test_a_board_whose_loader_has_refused_an_image() -> None:
    refused = replace(identity(), features=("SIGNED_ONLY", "IMAGE_REFUSED"))
    troubles = wrong(heard(), Board(FACTS, refused))
    assert list(troubles) == ["firmware"]
    assert "its loader refused an image for its signature" in troubles["firmware"]


def test_the_board_of_another_joint() -> None:
    other = Board(Facts({**FACTS.registers, "drive.ratio": 50_000}), identity())
    assert "is this the board of another joint?" in wrong(heard(), other)["identity"]


@pytest.mark.parametrize(
    ("robot", "unknown"), [("cobot6", {"j2"}), ("nursing_arm", {"j1", "j2"})]
)  # the arm's joints 1 and 2 are moved by the same two motors
def test_a_board_that_sends_no_position_is_the_one_named(robot: str, unknown: set[str]) -> None:
    arm = load_robot(robot)
    boards = [cast(Any, Board(FACTS, identity(), joint=joint)) for joint in arm.joint_names]
    said = [heard() for _ in boards]
    del said[1].columns["motor_position"]

    troubles = {each.joint: each.text for each in position_findings(boards, said, arm) if not each.ok}

    assert set(troubles) == unknown
    assert troubles["j2"].startswith("it has motor position")
    assert troubles.get("j1", "not known: j2 (node 1): it has").startswith("not known: j2 (node 1): it has")


def test_a_channel_that_it_has_and_does_not_send() -> None:
    said = heard()
    del said.columns["bus_voltage"]
    assert "is it in stream.channels?" in wrong(said)["supply"]
