"""The ledger must close exactly whatever a link does to the bytes, and must not close when counts disagree."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from jointbench.link.ledger import BoardLedger, Ledger
from jointbench.link.tally import Tally
from jointbench.tests.recording.board_stream import BLOCK, Sent, data, motion, status
from jointwire import Frame, FrameReader, State


def tally(stream: list[Sent], damage: Callable[[int, bytes], bytes] = lambda index, data: data) -> Tally:
    """Feed a stream through a link that may damage it."""
    reader, counts = FrameReader(), Tally({1: "j1"})
    for index, sent in enumerate(stream):
        for chunk in reader.feed(damage(index, sent.data)):
            if isinstance(chunk.content, Frame):
                counts.add(chunk.content)
            else:
                counts.add_noise(1)
    return counts


def board(stream: list[Sent], **damage: Callable[[int, bytes], bytes]) -> BoardLedger:
    return tally(stream, **damage).ledger().boards[0]


def test_a_clean_motion_closes_without_loss() -> None:
    ledger = board(motion(1))
    assert ledger.closes
    assert ledger.samples_taken == ledger.samples_received == 10 * BLOCK + 17
    assert ledger.samples_lost == ledger.frames_lost == ledger.bad_frames == 0


@pytest.mark.parametrize("lost", range(1, 13))
def test_any_one_frame_lost_is_accounted_exactly(lost: int) -> None:
    stream = motion(1)
    ledger = board([sent for index, sent in enumerate(stream) if index != lost])
    assert ledger.closes, ledger.fault
    assert ledger.link_lost == ledger.samples_lost == stream[lost].samples
    assert ledger.frames_lost == 1


@pytest.mark.parametrize("damaged", range(1, 13))
def test_a_damaged_frame_is_a_bad_frame_and_its_samples_lost(damaged: int) -> None:
    def flip(index: int, data: bytes) -> bytes:
        return bytes([*data[:20], data[20] ^ 0x55 or 1, *data[21:]]) if index == damaged else data

    stream = motion(1)
    ledger = board(stream, damage=flip)
    assert ledger.closes, ledger.fault
    assert ledger.link_lost == stream[damaged].samples
    assert ledger.bad_frames == 1


def test_a_lost_delimiter_loses_both_its_neighbours() -> None:
    stream = motion(1)
    ledger = board(stream, damage=lambda index, data: data[:-1] if index == 3 else data)
    assert ledger.closes, ledger.fault
    assert ledger.link_lost == 2 * BLOCK
    assert ledger.bad_frames == 1


def test_a_run_of_lost_bytes_closes() -> None:
    stream = motion(1)
    ledger = board(stream, damage=lambda index, data: b"" if 2 < index < 6 else data[7:] if index == 6 else data)
    assert ledger.closes, ledger.fault
    assert ledger.link_lost == sum(sent.samples for sent in stream[3:7])


def test_duplicates_are_counted_once() -> None:
    stream = motion(1)
    ledger = board([*stream[:5], *stream[2:5], *stream[5:], stream[7]])
    assert ledger.closes, ledger.fault
    assert ledger.duplicates == 4
    assert ledger.samples_received == ledger.samples_taken
    assert ledger.samples_lost == 0


def test_a_late_frame_is_not_lost() -> None:
    stream = motion(1)
    ledger = board([*stream[:4], *stream[5:9], stream[4], *stream[9:]])
    assert ledger.closes, ledger.fault
    assert ledger.samples_lost == ledger.frames_lost == ledger.duplicates == 0


def test_what_the_board_dropped_is_not_blamed_on_the_link() -> None:
    stream = motion(1, blocks=4)
    dropped = [*stream[:3], *(replace(sent, data=_shift(sent, 128)) for sent in stream[3:])]
    taken = 777 + 4 * BLOCK + 17 + 128
    tick = 5000 + 4 * BLOCK + 17 + 128
    dropped[-1] = status(1, 65530 + len(stream) - 1, tick, State.DONE, taken, dropped=128)
    ledger = board(dropped)
    assert ledger.closes, ledger.fault
    assert (ledger.board_dropped, ledger.link_lost, ledger.frames_lost) == (128, 0, 0)
    assert ledger.samples_lost == 128


def test_drops_and_link_losses_together_close() -> None:
    stream = motion(1, blocks=4)
    shifted = [*stream[:3], *(replace(sent, data=_shift(sent, 64)) for sent in stream[3:])]
    shifted[-1] = status(
        1, 65530 + len(stream) - 1, 6000, State.DONE, 777 + 5 * BLOCK + 17, dropped=64
    )
    del shifted[2]
    ledger = board(shifted)
    assert ledger.closes, ledger.fault
    assert (ledger.board_dropped, ledger.link_lost) == (64, 64)


def test_missed_ticks_are_no_samples_taken_but_lost() -> None:
    opening = status(1, 0, 90, State.LOADED, 0)
    first, second = data(1, 1, 100, 64), data(1, 2, 169, 64, missed=5)
    ledger = board([opening, first, second, status(1, 3, 233, State.DONE, 128, missed=5)])
    assert ledger.closes, ledger.fault
    assert (ledger.ticks_missed, ledger.samples_lost, ledger.link_lost) == (5, 5, 0)


def test_pauses_between_motions_are_no_loss() -> None:
    once = [status(1, 0, 90, State.LOADED, 0), data(1, 1, 100, 64), status(1, 2, 164, State.DONE, 64)]
    again = [data(1, 3, 5000, 64), status(1, 4, 5064, State.DONE, 128)]
    ledger = board([*once, *again])
    assert ledger.closes, ledger.fault
    assert ledger.samples_lost == 0


@pytest.mark.parametrize("error", [-64, -1, 1, 64])
def test_counts_that_disagree_do_not_close(error: int) -> None:
    stream = motion(1)
    stream[-1] = status(1, 65530 + len(stream) - 1, 6000, State.DONE, 777 + 10 * BLOCK + 17 + error)
    ledger = tally(stream).ledger()
    assert not ledger.closes
    assert ledger.boards[0].unexplained == error
    assert ledger.verdict.startswith("invalid: j1: ")


@pytest.mark.parametrize(("left_out", "fault"), [(0, "before the first sample"), (-1, "after the last sample")])
def test_without_a_status_at_both_ends_nothing_closes(left_out: int, fault: str) -> None:
    stream = motion(1)
    del stream[left_out]
    ledger = board(stream)
    assert not ledger.closes
    assert fault in ledger.fault
    assert ledger.samples_taken is None


def test_a_silent_board_makes_the_run_invalid() -> None:
    counts = Tally({1: "j1", 2: "j2"})
    reader = FrameReader()
    for sent in motion(1):
        for chunk in reader.feed(sent.data):
            assert isinstance(chunk.content, Frame)
            counts.add(chunk.content)
    ledger = counts.ledger()
    assert not ledger.is_valid
    assert "j2: nothing was received" in ledger.verdict


def test_the_limit_decides() -> None:
    whole = BoardLedger(1, "j1", 1, 1, 0, 0, 10000, 9990, 10, 0, 0, 0)
    assert Ledger((whole,), limit=0.001).is_valid
    assert not Ledger((whole,), limit=0.0009).is_valid
    assert "is more than the limit of 0.090%" in Ledger((whole,), limit=0.0009).verdict
    assert not Ledger(()).is_valid


def test_the_ledger_survives_its_plain_form_and_prints_every_board() -> None:
    ledger = tally(motion(1)).ledger()
    assert Ledger.from_dict(ledger.to_dict()) == ledger
    assert "j1" in ledger.text()
    assert ledger.text().endswith("valid: 0 of 657 samples lost")


def _shift(sent: Sent, ticks: int) -> bytes:
    """The same frame with its ticks moved, as after a pause that the sequence number does not show."""
    (chunk,) = FrameReader().feed(sent.data)
    frame = chunk.content
    assert isinstance(frame, Frame)
    body = frame.body
    if sent.samples:
        return data(1, frame.seq, body.first_tick + ticks, body.count).data
    return status(1, frame.seq, body.tick + ticks, State(body.state), body.samples_taken + ticks).data
