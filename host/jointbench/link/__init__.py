"""The boards: one by one (Board), as a bench (Bench), on one clock, with every sample accounted for (Ledger)."""

from jointbench.link.bench import Bench, open_bench
from jointbench.link.board import Board
from jointbench.link.ledger import BoardLedger, Ledger
from jointbench.link.settings import JointSettings
from jointbench.link.subscribers import Progress

__all__ = ["Bench", "Board", "BoardLedger", "JointSettings", "Ledger", "Progress", "open_bench"]
