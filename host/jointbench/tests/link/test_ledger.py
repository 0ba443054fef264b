"""The ledger must close exactly whatever a link does to the bytes, and must not close when counts disagree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from jointbench.link.ledger import BoardLedger, Ledger
from jointbench.link.tally import Tally
from jointbench.tests.link.simulated_board import Sent, SimulatedBoard, motion
from jointwire import Frame, FrameReader, MessageType, State

WHOLE = 10 * 64 + 17


def tally(pieces: Iterable[bytes]) -> Tally:
    """Count what comes out of a line as these bytes."""
    reader, counts = FrameReader(), Tally({1: "j1"})
    for piece in pieces:
        for chunk in reader.feed(piece):
            if isinstance(chunk.content, Frame):
                counts.add(chunk.content)
            else:
                counts.add_noise(1)
    return counts


def account(sent: Iterable[Sent | bytes]) -> BoardLedger:
    return tally(each if isinstance(each, bytes) else each.data for each in sent).ledger().boards[0]


def flipped(sent: Sent, byte: int = 20) -> bytes:
    """The frame with one byte altered, but for its delimiter and without making a new one."""
    altered = bytearray(sent.data)
    altered[byte] ^= 0x55 if altered[byte] != 0x55 else 0x33
    return bytes(altered)


def test_a_clean_motion_closes_without_loss() -> None:
    board = motion()
    ledger = account(board.sent)
    assert ledger.closes, ledger.fault
    assert ledger.frames_sent == ledger.frames_received == len(board.sent) - 1  # up to, and without, the last STATUS
    assert ledger.samples_taken == ledger.samples_received == WHOLE
    assert ledger.samples_lost == ledger.frames_lost == ledger.bad_frames == ledger.requests_damaged == 0


@pytest.mark.parametrize("lost", range(1, 14))
def test_any_one_frame_that_vanishes_is_accounted_exactly(lost: int) -> None:
    sent = motion().sent
    ledger = account([*sent[:lost], *sent[lost + 1 :]])
    assert ledger.closes, ledger.fault
    assert (ledger.frames_vanished, ledger.frames_damaged, ledger.bad_frames) == (1, 0, 0)
    assert (ledger.link_lost, ledger.crc_lost) == (sent[lost].samples, 0)
    assert ledger.samples_taken == ledger.samples_received + ledger.link_lost


@pytest.mark.parametrize("damaged", range(1, 14))
def test_any_one_frame_that_is_damaged_is_accounted_exactly(damaged: int) -> None:
    sent: list[Sent | bytes] = [*motion().sent]
    lost = sent[damaged]
    assert isinstance(lost, Sent)
    sent[damaged] = flipped(lost)
    ledger = account(sent)
    assert ledger.closes, ledger.fault
    assert (ledger.frames_vanished, ledger.frames_damaged, ledger.stray) == (0, 1, 0)
    assert (ledger.link_lost, ledger.crc_lost) == (0, lost.samples)


def test_a_lost_delimiter_costs_both_its_neighbours() -> None:
    """Whose the rest is cannot be known, nor, when it is too long for one frame, where it was cut: sums are exact."""
    sent: list[Sent | bytes] = [*motion().sent]
    sent[4] = motion().sent[4].data[:-1]
    ledger = account(sent)
    assert ledger.closes, ledger.fault
    assert ledger.frames_lost == 2
    assert ledger.frames_damaged >= 1
    assert ledger.crc_lost + ledger.link_lost == 128


def test_a_delimiter_too_many_makes_two_rests_of_one_frame() -> None:
    sent: list[Sent | bytes] = [*motion().sent]
    data = motion().sent[4].data
    sent[4] = data[:100] + b"\x00" + data[101:]
    ledger = account(sent)
    assert ledger.closes, ledger.fault
    assert (ledger.frames_damaged, ledger.frames_vanished, ledger.stray) == (1, 0, 1)
    assert (ledger.crc_lost, ledger.link_lost) == (64, 0)


def test_damaged_and_vanished_in_one_gap_share_its_samples() -> None:
    sent = motion().sent
    ledger = account([*sent[:4], flipped(sent[4]), *sent[7:]])
    assert ledger.closes, ledger.fault
    assert (ledger.frames_damaged, ledger.frames_vanished) == (1, 2)
    assert (ledger.crc_lost, ledger.link_lost) == (64, 128)


def test_what_stands_in_no_frames_place_is_stray_and_no_loss() -> None:
    sent = motion().sent
    ledger = account([b"MPY: soft reboot\r\n\x00", *sent[:4], b"Traceback\x00", *sent[4:], b"ets Jul 29\x00"])
    assert ledger.closes, ledger.fault
    assert (ledger.stray, ledger.frames_lost, ledger.samples_lost) == (3, 0, 0)
    assert "j1: 3 byte strings that were in no frame's place" in Ledger((ledger,)).text()


def test_duplicates_are_counted_once() -> None:
    sent = motion().sent
    ledger = account([*sent[:5], *sent[2:5], *sent[5:], sent[7]])
    assert ledger.closes, ledger.fault
    assert ledger.duplicates == 4
    assert ledger.samples_received == ledger.samples_taken
    assert ledger.samples_lost == 0


@pytest.mark.parametrize("by", [1, 5, 100])
def test_a_late_frame_is_not_lost(by: int) -> None:
    sent = motion(blocks=150).sent
    ledger = account([*sent[:4], *sent[5 : 5 + by], sent[4], *sent[5 + by :]])
    assert ledger.closes, ledger.fault
    assert ledger.samples_lost == ledger.frames_lost == ledger.duplicates == 0


def test_a_status_may_come_late_too() -> None:
    sent = motion().sent
    middle = next(index for index, each in enumerate(sent) if each.kind is MessageType.STATUS and index)
    ledger = account([*sent[:middle], *sent[middle + 1 : middle + 3], sent[middle], *sent[middle + 3 :]])
    assert ledger.closes, ledger.fault
    assert ledger.samples_lost == 0


def test_what_the_board_dropped_is_not_blamed_on_the_link() -> None:
    board = SimulatedBoard()
    board.status(State.LOADED)
    board.state = State.RUNNING
    for step in (board.block, board.drop, board.block, board.status, board.drop, board.block, board.drop, board.status):
        step()
    board.status(State.DONE)
    ledger = account(board.sent)
    assert ledger.closes, ledger.fault
    assert (ledger.board_dropped, ledger.link_lost, ledger.frames_lost, ledger.samples_lost) == (192, 0, 0, 192)
    lossy = account([board.sent[0], *board.sent[2:]])
    assert lossy.closes, lossy.fault
    assert (lossy.board_dropped, lossy.link_lost) == (192, 64)


def test_missed_ticks_are_no_samples_taken_but_lost() -> None:
    board = SimulatedBoard()
    board.status(State.LOADED)
    board.block()
    board.miss(5)
    board.block()
    board.status(State.DONE)
    ledger = account(board.sent)
    assert ledger.closes, ledger.fault
    assert (ledger.ticks_missed, ledger.samples_lost, ledger.link_lost, ledger.samples_taken) == (5, 5, 0, 128)


def test_ticks_missed_while_nothing_streams_do_not_keep_the_ledger_open() -> None:
    board = SimulatedBoard()
    board.status(State.LOADED)
    board.miss(3)
    board.block()
    board.status(State.DONE)
    assert account(board.sent).closes


def test_pauses_between_motions_are_no_loss() -> None:
    board = SimulatedBoard()
    board.status(State.LOADED)
    for _ in range(3):
        board.block()
        board.status(State.DONE)
        board.pause(5000)
    ledger = account(board.sent)
    assert ledger.closes, ledger.fault
    assert ledger.samples_lost == 0
    without = account([*board.sent[:2], *board.sent[3:]])  # the STATUS that says so may itself be lost
    assert without.closes, without.fault
    assert (without.frames_vanished, without.samples_lost) == (1, 0)


def test_a_gap_longer_than_sequence_numbers_can_tell() -> None:
    board = motion()
    middle = len(board.sent) - 1
    for _ in range(70_000):
        board.frames_sent, board.sequence = board.frames_sent + 1, board.sequence + 1 & 0xFFFF
    board.block()
    board.status(State.DONE)
    ledger = account([*board.sent[:middle], *board.sent[middle + 1 :]])
    assert ledger.closes, ledger.fault
    assert ledger.frames_vanished == 70_001
    assert ledger.samples_lost == 0


@pytest.mark.parametrize("error", [-64, -1, 1, 64])
@pytest.mark.parametrize("lost", [(), (5,)])
def test_sample_counts_that_disagree_do_not_close(error: int, lost: tuple[int, ...]) -> None:
    board = motion()
    board.sent.pop()
    board.frames_sent, board.sequence = board.frames_sent - 1, board.sequence - 1
    board.taken += error
    board.status(State.DONE)
    ledger = tally(each.data for index, each in enumerate(board.sent) if index not in lost).ledger()
    assert not ledger.closes
    assert ledger.boards[0].unexplained == error
    assert ledger.verdict.startswith("invalid: j1: ")


@pytest.mark.parametrize("error", [-1, 1, 40])
def test_frame_counts_that_disagree_do_not_close(error: int) -> None:
    board = motion()
    board.frames_sent += error
    board.status(State.DONE)
    ledger = account(board.sent)
    assert not ledger.closes
    assert ledger.unexplained_frames == error
    assert "frames sent, but received and missing make" in ledger.fault


def test_ticks_that_vanish_without_a_missing_frame_do_not_close() -> None:
    board = SimulatedBoard()
    board.status(State.LOADED)
    board.state = State.RUNNING
    board.block()
    board.pause(30)
    board.block()
    board.status(State.DONE)
    ledger = account(board.sent)
    assert not ledger.closes
    assert ledger.unexplained == -30


@pytest.mark.parametrize(("left_out", "fault"), [(0, "before the first sample"), (-1, "after the last sample")])
def test_without_a_status_at_both_ends_nothing_closes(left_out: int, fault: str) -> None:
    sent = motion().sent
    del sent[left_out]
    ledger = account(sent)
    assert not ledger.closes
    assert fault in ledger.fault
    assert (ledger.samples_taken, ledger.frames_sent) == (None, None)


@pytest.mark.parametrize("blocks", [2, 300])
def test_a_board_that_starts_again_is_found_out(blocks: int) -> None:
    """After few frames and after many: its counters start again, whatever its sequence numbers look like."""
    before = motion(blocks=blocks, sequence=0, frames_sent=0, tick=5000)
    after = SimulatedBoard(sequence=0, frames_sent=0, tick=100, taken=0)
    after.status(State.DISARMED)
    after.block()
    after.status(State.DONE)
    ledger = account([*before.sent, *after.sent])
    assert not ledger.closes
    assert ledger.fault == "the board started again during the run"


def test_a_silent_board_makes_the_run_invalid() -> None:
    counts = Tally({1: "j1", 2: "j2"})
    for sent in motion().sent:
        for chunk in FrameReader().feed(sent.data):
            assert isinstance(chunk.content, Frame)
            counts.add(chunk.content)
    ledger = counts.ledger()
    assert not ledger.is_valid
    assert "j2: nothing was received" in ledger.verdict


def test_boards_on_one_line_are_told_apart_and_noise_is_of_the_one_whose_turn_it_was() -> None:
    first, second = motion(node=1), motion(node=2, sequence=100)
    counts, reader = Tally({1: "j1", 2: "j2"}), FrameReader()
    for index, pair in enumerate(zip(first.sent, second.sent, strict=True)):
        for turn, sent in enumerate(pair, start=1):
            for chunk in reader.feed(flipped(sent) if (index, turn) == (4, 2) else sent.data):
                if isinstance(chunk.content, Frame):
                    counts.add(chunk.content)
                else:
                    counts.add_noise(turn)
    ledger = counts.ledger()
    assert ledger.closes, ledger.verdict
    assert [board.crc_lost for board in ledger.boards] == [0, 64]
    assert [board.frames_damaged for board in ledger.boards] == [0, 1]


def test_damaged_requests_are_told_and_no_loss() -> None:
    board = motion()
    board.bad_frames += 2
    board.status(State.DONE)
    ledger = account(board.sent)
    assert ledger.closes
    assert (ledger.requests_damaged, ledger.samples_lost) == (2, 0)
    assert "2 damaged requests, sent again" in Ledger((ledger,)).text()


def test_running_numbers_agree_with_the_ledger_at_every_moment() -> None:
    sent = motion(blocks=30).sent
    arriving = [*sent[:4], *sent[6:9], sent[5], *sent[9:20], *sent[23:]]
    counts, reader, ends = Tally({1: "j1"}), FrameReader(), []
    for each in arriving:
        for chunk in reader.feed(each.data):
            assert isinstance(chunk.content, Frame)
            counts.add(chunk.content)
        board = counts.ledger().boards[0]
        ends.append(counts.frames_lost)
        if board.fault == "no STATUS after the last sample":
            assert counts.frames_lost == board.frames_lost
    assert ends[-1] == 4
    assert counts.waiting(opened=True) == counts.waiting(opened=False) == []


def test_the_limit_decides() -> None:
    whole = BoardLedger(1, "j1", 157, 156, 0, 1, 10000, 9990, 0, 10, 0, 0)
    assert Ledger((whole,), limit=0.001).is_valid
    assert not Ledger((whole,), limit=0.0009).is_valid
    assert "is more than the limit of 0.090%" in Ledger((whole,), limit=0.0009).verdict
    assert not Ledger((replace(whole, fault="x"),), limit=1.0).is_valid
    assert not Ledger(()).is_valid


def test_the_ledger_survives_its_plain_form_and_reads_as_two_equations() -> None:
    ledger = tally(each.data for each in motion().sent).ledger()
    assert Ledger.from_dict(ledger.to_dict()) == ledger
    heads, row, verdict = ledger.text().splitlines()
    assert heads.split()[1:9] == ["frames", "sent", "=", "received", "+", "damaged", "+", "vanished"]
    assert row.split() == ["j1", "14", "14", "0", "0", "657", "657", "0", "0", "0", "0", "yes"]
    assert verdict == "valid: 0 of 657 samples lost"
