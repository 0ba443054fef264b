"""The loss ledger as a table: every sample that a board took, and where it went."""

from jointbench.recording import Run
from jointbench.report.content import LedgerTable
from jointbench.report.digits import count, typeset

HEADS = (
    "board", "frames", "samples taken", "received", "lost on link", "dropped on board", "ticks missed",
    "bad frames", "closes",
)  # fmt: skip


def ledger_table(title: str, run: Run) -> LedgerTable:
    """Return the ledger of a run, or the reason why it has none."""
    if run.ledger is None:
        return LedgerTable(title, "No ledger: an imported recording says nothing of what was lost before it.")
    rows = tuple(
        (
            board.joint,
            count(board.frames),
            "unknown" if board.samples_taken is None else count(board.samples_taken),
            *map(
                count,
                (board.samples_received, board.link_lost, board.board_dropped, board.ticks_missed, board.bad_frames),
            ),
            "yes" if board.closes else "no",
        )
        for board in run.ledger.boards
    )
    verdict = typeset(run.ledger.verdict)
    return LedgerTable(title, f"{verdict[0].upper()}{verdict[1:]}.", HEADS, rows)
