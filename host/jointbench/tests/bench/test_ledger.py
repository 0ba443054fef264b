"""The ledger must close exactly whatever a link does to the bytes, and must not close when counts disagree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointbench.bench.ledger import BoardLedger, Ledger
from jointbench.bench.tally import Tally
from jointbench.tests.bench.wire import Sent, SimulatedBoard, motion
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
    assert ledger.text() == "valid: 0 of 657 samples lost"  # one line where nothing is missing


def test_a_ledger_with_losses_reads_as_two_equations_within_80_columns() -> None:
    (whole,) = tally(each.data for each in motion().sent).ledger().boards
    torn = replace(whole, frames_received=13, frames_vanished=1, samples_received=627, link_lost=30)
    ledger = Ledger((torn, replace(torn, joint="shoulder")), limit=0.0)
    frames, row, _, _, samples, counts, _, verdict = ledger.text().splitlines()
    assert frames.split() == ["joint", "frames", "sent", "=", "received", "+", "damaged", "+", "vanished"]
    assert row.split() == ["j1", "14", "13", "0", "1"]
    assert samples.split()[1:7] == ["samples", "=", "received", "+", "damaged", "+"]
    assert counts.split() == ["j1", "657", "627", "0", "30", "0", "0", "yes"]
    assert verdict.startswith("INVALID") or "60 of 1314" in verdict
    assert max(map(len, ledger.text().splitlines()[:-1])) <= 80


# What may happen on a board, most often that it streams.
ACTIONS = st.one_of(
    st.tuples(st.just("block"), st.integers(1, 64)),
    st.tuples(st.just("block"), st.just(64)),
    st.tuples(st.sampled_from(["status", "pong"]), st.none()),
    st.tuples(st.just("drop"), st.integers(1, 64)),
    st.tuples(st.just("miss"), st.integers(1, 20)),
)
COUNTERS = st.fixed_dictionaries(
    {"sequence": st.sampled_from([0, 65500, 65535]), "tick": st.sampled_from([0, 2**31 - 200, 2**32 - 300]),
     "taken": st.sampled_from([0, 2**32 - 300]), "frames_sent": st.sampled_from([0, 2**32 - 9])}
)  # fmt: skip


@st.composite
def streams(draw: st.DrawFn) -> SimulatedBoard:
    """A board that opens, does what is drawn, and closes."""
    counters: dict[str, Any] = draw(COUNTERS)
    board = SimulatedBoard(**counters)
    board.status(State.LOADED)
    board.state = State.RUNNING
    for action, argument in draw(st.lists(ACTIONS, max_size=40)):
        act = getattr(board, action)
        act() if argument is None else act(argument)
    board.status(State.DONE)
    return board


def damaged(sent: Sent, place: int, bits: int) -> bytes:
    """One byte altered, without losing or making a delimiter."""
    data = bytearray(sent.data)
    place %= len(data) - 1
    data[place] ^= bits if data[place] != bits else bits ^ 0xFF or 1
    return bytes(data) if data[place] else bytes([*data[:place], 1, *data[place + 1 :]])


def received(pieces: list[bytes]) -> tuple[BoardLedger, set[int], int]:
    """The ledger, the sequence numbers that came through, and how often something came that was no frame."""
    counts, reader, sequences, noise = Tally({1: "j1"}), FrameReader(), set[int](), 0
    for chunk in reader.feed(b"".join(pieces)):
        if isinstance(chunk.content, Frame):
            counts.add(chunk.content)
            sequences.add(chunk.content.seq)
        else:
            counts.add_noise(1)
            noise += 1
    return counts.ledger().boards[0], sequences, noise


def check_sums(board: SimulatedBoard, ledger: BoardLedger, sequences: set[int]) -> None:
    """The equations, and each of their terms that is knowable, against what was done to the board's stream."""
    start = board.sent[0]
    frames = {(board.sequence - len(board.sent) + index) & 0xFFFF: each for index, each in enumerate(board.sent)}
    lost = [each for sequence, each in frames.items() if sequence not in sequences]
    assert ledger.closes, ledger.fault
    assert start.samples == 0
    assert ledger.frames_sent == len(board.sent) - 1
    assert ledger.frames_sent == ledger.frames_received + ledger.frames_damaged + ledger.frames_vanished
    assert ledger.frames_lost == len(lost)
    assert ledger.crc_lost + ledger.link_lost == sum(each.samples for each in lost)
    assert ledger.board_dropped == board.dropped - SimulatedBoard.dropped
    assert ledger.ticks_missed == board.missed - SimulatedBoard.missed
    assert ledger.samples_taken == (ledger.samples_received + ledger.crc_lost + ledger.link_lost + ledger.board_dropped)


FATES = st.sampled_from(["keep", "keep", "keep", "vanish", "damage", "again"])


@settings(max_examples=300)
@given(streams(), st.data())
def test_frames_in_order_are_told_apart_exactly(board: SimulatedBoard, data: st.DataObject) -> None:
    pieces, fates = [board.sent[0].data], ["keep"]
    for sent in board.sent[1:-1]:
        fates.append(data.draw(FATES))
        match fates[-1]:
            case "damage":
                pieces.append(damaged(sent, data.draw(st.integers(0, 2000)), data.draw(st.integers(1, 255))))
            case "again":
                pieces += [sent.data, sent.data]
            case "keep":
                pieces.append(sent.data)
            case _:
                pass
    ledger, sequences, _ = received([*pieces, board.sent[-1].data])
    check_sums(board, ledger, sequences)
    assert (ledger.frames_damaged, ledger.frames_vanished) == (fates.count("damage"), fates.count("vanish"))
    assert (ledger.duplicates, ledger.stray) == (fates.count("again"), 0)
    if "vanish" not in fates or "damage" not in fates:
        truth = {fate: sum(s.samples for s, f in zip(board.sent, fates, strict=False) if f == fate) for fate in fates}
        assert (ledger.crc_lost, ledger.link_lost) == (truth.get("damage", 0), truth.get("vanish", 0))


ROUGH = st.sampled_from(["keep", "keep", "keep", "vanish", "damage", "again", "late", "merge", "cut", "stray"])


@settings(max_examples=300)
@given(streams(), st.data())
def test_the_ledger_closes_whatever_the_line_does(board: SimulatedBoard, data: st.DataObject) -> None:
    line: list[tuple[float, bytes]] = []
    for place, sent in enumerate(board.sent[1:-1]):
        match data.draw(ROUGH):
            case "damage":
                line.append((place, damaged(sent, data.draw(st.integers(0, 2000)), data.draw(st.integers(1, 255)))))
            case "again":
                line += [(place, sent.data), (place + data.draw(st.integers(0, 30)) + 0.5, sent.data)]
            case "late":
                line.append((place + data.draw(st.integers(1, 40)) + 0.5, sent.data))
            case "merge":
                line.append((place, sent.data[:-1]))
            case "cut":
                middle = data.draw(st.integers(1, len(sent.data) - 1))
                line.append((place, sent.data[:middle] + b"\x00" + sent.data[middle:]))
            case "stray":
                line.append((place, b"boot: 3.1\r\n\x00" + sent.data))
            case "keep":
                line.append((place, sent.data))
            case _:
                pass
    pieces = [board.sent[0].data, *(piece for _, piece in sorted(line, key=lambda each: each[0])), b"\x00"]
    ledger, sequences, noise = received([*pieces, board.sent[-1].data])
    check_sums(board, ledger, sequences)
    assert ledger.bad_frames == noise


@settings(max_examples=100)
@given(streams(), st.sampled_from(["taken", "frames_sent"]), st.integers(-40, 40).filter(bool))
def test_a_board_that_counts_otherwise_never_closes(board: SimulatedBoard, counter: str, error: int) -> None:
    """The check can fail: one counter that is off, without any loss on the line, is always noticed."""
    setattr(board, counter, getattr(board, counter) + error)
    board.status(State.DONE)
    ledger, _, _ = received([sent.data for sent in board.sent])
    assert not ledger.closes
    assert error in (ledger.unexplained, ledger.unexplained_frames) or "started again" in ledger.fault
