from __future__ import annotations

import pytest

from jointwire.channels import (
    ALL_CHANNELS,
    BRIDGE_CHANNELS,
    CHANNELS,
    HIGHEST_DIVIDER,
    JOINT_BOARD_CHANNELS,
    JOINT_CHANNELS,
    ChannelKind,
    divider,
)
from jointwire.docs import DOCS, MEMBERS
from jointwire.messages import ANSWERS, BODIES, BROADCAST_NODE, FIRST_FROM_BOARD, FROZEN, HEADER, KNOT, MessageType
from jointwire.registers import BY_NAME, REGISTER_COUNT, REGISTERS
from jointwire.schema import ENUMERATIONS, struct_fields


def test_sizes_that_the_firmware_relies_on() -> None:
    assert HEADER.sizeof() == 12
    assert KNOT.sizeof() == 8
    assert BROADCAST_NODE not in range(1, 255)


def test_every_message_is_described() -> None:
    assert set(BODIES) == set(DOCS) == set(MessageType)
    for kind in MessageType:
        assert all(sub.docs for sub in BODIES[kind].subcons), kind.name
    assert all(sub.docs for sub in HEADER.subcons)
    assert set(MEMBERS) == set(ENUMERATIONS) - {ChannelKind}
    for members, meanings in MEMBERS.items():
        assert list(meanings) == [member.name for member in members]


def test_every_request_has_an_answer_and_nothing_else_has() -> None:
    assert set(ANSWERS) == {kind for kind in MessageType if kind < FIRST_FROM_BOARD}
    for kind, answer in ANSWERS.items():
        assert answer.type >= 0x40
        for name in answer.echoed:
            assert dict(struct_fields(BODIES[kind]))[name] == dict(struct_fields(BODIES[answer.type]))[name]
    assert all(ANSWERS[kind].type in FROZEN for kind in FROZEN if kind in ANSWERS)  # strangers must be able to answer


def test_registers_are_a_table_without_contradictions() -> None:
    ids = [register.id for register in REGISTERS]
    assert len(ids) == len(set(ids)) == len(BY_NAME) == len(REGISTERS)
    assert max(ids) == REGISTER_COUNT - 1
    for register in REGISTERS:
        assert -(2**31) <= register.minimum <= register.default <= register.maximum < 2**31, register.name
        assert register.scale > 0, register.name
        assert register.doc, register.name
    assert BY_NAME["stream.channels"].maximum == ALL_CHANNELS == 2 ** len(CHANNELS) - 1


def test_channels_name_registers_that_exist_and_kinds_have_a_divider_each() -> None:
    assert [channel.bit for channel in CHANNELS] == list(range(len(CHANNELS)))
    for channel in CHANNELS:
        for name in (channel.scale, channel.zero):
            assert not name or name in BY_NAME, channel.name
    for kind in ChannelKind:
        register = BY_NAME[f"stream.every_{kind.name.lower()}"]
        assert (register.minimum, register.maximum) == (0, HIGHEST_DIVIDER)
        assert 4 * kind + 4 <= 32  # bits of `dividers`
    other = BRIDGE_CHANNELS | sum(1 << c.bit for c in CHANNELS if c.kind is ChannelKind.FOOT_FORCE)
    assert ALL_CHANNELS & ~other == JOINT_BOARD_CHANNELS
    assert JOINT_CHANNELS & JOINT_BOARD_CHANNELS == JOINT_CHANNELS


@pytest.mark.parametrize(("dividers", "kind", "every"), [(0, 0, 1), (0x60, 1, 64), (0x60, 0, 1), (0x12345678, 7, 2)])
def test_dividers(dividers: int, kind: int, every: int) -> None:
    assert divider(dividers, ChannelKind(kind)) == every
