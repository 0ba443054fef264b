"""The register table of a board: what it holds, what it takes, what it refuses."""

from typing import cast

import pytest

from hil_tests.suite.driven_joint import DrivenJoint
from jointbench.bench import Bench, Board, RegisterName
from jointbench.errors import BoardRefused
from jointbench.testing import functional, needs
from jointwire import BY_NAME, REGISTERS, MessageType, Refusal
from jointwire.registers import INT32_MAX, INT32_MIN, Register

UNKNOWN = max(register.id for register in REGISTERS) + 1
WRITABLE = [register for register in REGISTERS if register.access in ("rw", "rw-disarmed")]


def write(board: Board, register: Register, value: int) -> None:
    """Write a register as every client does."""
    board.write_register(cast(RegisterName, register.name), value)


@functional
def test_every_register_of_every_board_is_within_its_range(connected: Bench) -> None:
    for board in connected.all_boards:
        registers = board.read_registers().registers
        assert registers.keys() == BY_NAME.keys()
        outside = [name for name, raw in registers.items() if not BY_NAME[name].minimum <= raw <= BY_NAME[name].maximum]
        assert outside == [], board.joint


@functional
@needs("motor")
def test_what_is_written_reads_back(joint: DrivenJoint) -> None:
    before = joint.board.read_registers().registers
    for register in WRITABLE:
        raw = before[register.name]
        # Downwards, for a board bounds some of them from above more tightly than their table does.
        other = raw - 1 if raw > register.minimum else raw + 1
        if register.type != "mask" and register.name != "velocity.source":
            write(joint.board, register, other)
            assert joint.board.client.read(register.id, 1).body.values[0] == other, register.name
            write(joint.board, register, raw)
    assert joint.board.read_registers().registers == before


@functional
def test_facts_cannot_be_written(connected: Bench) -> None:
    board = connected.all_boards[0]
    before = board.read_registers().registers
    facts = [register for register in REGISTERS if register.access == "ro"]
    for register in facts:
        with pytest.raises(BoardRefused, match="a fact of the board and cannot be written"):
            write(board, register, before[register.name])
    assert len(facts) > 10
    assert board.read_registers().registers == before


@functional
@needs("motor")
def test_values_out_of_range_are_refused(joint: DrivenJoint) -> None:
    before = joint.board.read_registers().registers
    for register in WRITABLE:
        for value in (register.minimum - 1, register.maximum + 1, INT32_MIN, INT32_MAX):
            if INT32_MIN <= value <= INT32_MAX and not register.minimum <= value <= register.maximum:
                refusal = joint.refusal(MessageType.WRITE, register=register.id, value=value)
                assert refusal is Refusal.OUT_OF_RANGE, (register.name, value)
    assert joint.board.read_registers().registers == before


@functional
@needs("motor")
def test_a_register_that_is_not_there_is_refused(joint: DrivenJoint) -> None:
    assert joint.refusal(MessageType.WRITE, register=UNKNOWN, value=0) is not Refusal.OK


@functional
@needs("motor")
def test_limits_stay_as_they_are_while_the_motor_can_move(joint: DrivenJoint) -> None:
    before = joint.board.read_registers().registers
    joint.arm()
    for register in WRITABLE:
        if register.access == "rw-disarmed":
            refusal = joint.refusal(MessageType.WRITE, register=register.id, value=before[register.name])
            assert refusal is Refusal.WRONG_STATE, register.name
    joint.board.stop()
    assert joint.board.read_registers().registers == before
