"""Who the boards say they are, and whom they let arm them."""

import zlib

import pytest

from hil_tests.suite.driven_joint import DrivenJoint
from jointbench.bench import Bench
from jointbench.errors import BoardRefused
from jointbench.testing import functional, needs
from jointwire import PROTOCOL_MAJOR, PROTOCOL_MINOR, Schema, State, config_crc, own_schema


@functional
def test_every_board_says_who_it_is(connected: Bench) -> None:
    for board, identity in zip(connected.all_boards, connected.identities, strict=True):
        assert board.facts
        assert board.facts.registers["board.node"] == board.node
        assert identity.wire == f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"
        assert int(identity.uid, 16) != 0
        assert identity.max_knots >= 2
        assert 1 <= identity.max_block <= 64
    known = zip(connected.all_boards, connected.identities, strict=True)
    chips = {(identity.uid, board.port.url) for board, identity in known}
    assert len({uid for uid, _ in chips}) == len(chips)  # two nodes of one board have one line, too


@functional
def test_all_boards_run_the_same_firmware(connected: Bench) -> None:
    images = {(identity.firmware_version, identity.image_sha256) for identity in connected.identities}
    assert len(images) == 1
    ((_, image),) = images
    assert len(image) == 64


@functional
def test_every_board_was_built_from_our_schema(connected: Bench) -> None:
    """Told whole by the board itself, not only by its hash."""
    for board in connected.all_boards:
        data, total = b"", 1
        while len(data) < total:
            part = board.client.dict(len(data)).body
            assert part.data
            data, total = data + part.data, part.total
        assert Schema.from_text(zlib.decompress(data).decode()) == own_schema()


@functional
@needs("motor")
def test_a_stale_token_does_not_arm(joint: DrivenJoint) -> None:
    board = joint.board
    board.upload(joint.swing(), 1)
    board.hello()
    stale = board._token
    board.hello()
    with pytest.raises(BoardRefused, match="refused ARM: the arming token is not that of its last HELLO_ACK"):
        board.client.arm(stale, config_crc(joint.facts.registers, board.trajectory))
    board.hello()
    assert board.state is State.LOADED


@functional
@needs("motor")
def test_registers_that_another_program_changed_keep_the_motor_off(joint: DrivenJoint) -> None:
    board = joint.board
    board.upload(joint.swing(), 1)
    known = board.facts
    joint.write(limit__current=joint.facts.registers["limit.current"] // 2)
    board.facts = known  # as if not this host had written it
    with pytest.raises(BoardRefused, match=r"refused ARM: .*another program changed .*configure"):
        board.arm()
    board.hello()
    assert board.state is State.LOADED
