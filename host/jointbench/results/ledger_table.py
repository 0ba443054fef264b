"""The loss ledger as a table: every sample that a board took, and where it went."""

from jointbench.link.ledger import BoardLedger, Ledger
from jointbench.results.content import RunTable
from jointbench.results.digits import count, typeset

HEADS = (
    "board", "frames sent", "received", "damaged", "vanished", "samples taken", "received", "in damaged frames",
    "in vanished frames", "dropped on board", "ticks missed", "closes",
)  # fmt: skip


def ledger_table(title: str, ledger: Ledger | None) -> RunTable:
    """Return the ledger of a run, or the reason why it has none."""
    if ledger is None:
        return RunTable(title, "No ledger: an imported recording says nothing of what was lost before it.")
    rows = tuple(
        (board.joint, *map(_count, _numbers(board)), "yes" if board.closes else "no") for board in ledger.boards
    )
    verdict = typeset(ledger.verdict)
    return RunTable(title, f"{verdict[0].upper()}{verdict[1:]}.", HEADS, rows)


def _numbers(board: BoardLedger) -> tuple[int | None, ...]:
    return (
        board.frames_sent, board.frames_received, board.frames_damaged, board.frames_vanished, board.samples_taken,
        board.samples_received, board.crc_lost, board.link_lost, board.board_dropped, board.ticks_missed,
    )  # fmt: skip


def _count(number: int | None) -> str:
    return "unknown" if number is None else count(number)
