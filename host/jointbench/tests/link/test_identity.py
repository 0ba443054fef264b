"""A HELLO_ACK as its reader meets it."""

from jointbench.link.identity import Identity
from jointbench.tests.link.wire import HELLO_ACK
from jointwire import Frame, MessageType, decode_frame, encode_frame, schema_hash


def identity(**changes) -> Identity:
    frame: Frame = decode_frame(encode_frame(MessageType.HELLO_ACK, 1, 0, **{**HELLO_ACK, **changes})[:-1])
    return Identity.from_hello(frame.body)


def test_in_words() -> None:
    found = identity()
    assert (found.board, found.wire, found.firmware_version) == ("pico2", "1.2", "1.2.3")
    assert found.uid == "000102030405060700000000"
    assert found.features == ("PLAYBACK", "SHARED_LINE")
    assert (found.reset_cause, found.encoder_source) == ("WATCHDOG", "PIO")
    assert (found.clock_Hz, found.transmit_buffer) == (150_000_000, 4096)
    assert found.has_our_schema
    assert not identity(schema_hash=schema_hash() ^ 1).has_our_schema


def test_what_a_later_version_says_is_kept_as_its_number() -> None:
    found = identity(reset_cause=77, encoder_source=99, features=1 << 31, board=b"\xff" * 16)
    assert (found.reset_cause, found.encoder_source, found.features) == ("77", "99", ())
    assert found.board == "\ufffd" * 16
