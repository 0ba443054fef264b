"""The boards: one by one (Board), as a bench (Bench), on one clock, with every sample accounted for (Ledger)."""

from jointbench.bench.bench import Bench, open_bench
from jointbench.bench.bench_checks import board_ratios
from jointbench.bench.bench_file import BenchFile, BenchTerms, BoardEntry, read_bench_file
from jointbench.bench.board import Board
from jointbench.bench.client import RegisterName
from jointbench.bench.clock import Clock, LockstepClock, WallClock
from jointbench.bench.connections import Connections
from jointbench.bench.feed import FeedClient, open_feed
from jointbench.bench.feedforward import Feedforward
from jointbench.bench.gate import PointToPoint, Trajectory, trajectory_knots
from jointbench.bench.identity import FOOT_CHANNELS, Facts, Identity
from jointbench.bench.inspection import BoardFinding, check_up
from jointbench.bench.ledger import DEFAULT_LOSS_LIMIT, BoardLedger, Ledger
from jointbench.bench.line import Port
from jointbench.bench.motion_watch import LEAST_FOOT_FORCE, SOLE_EDGE, TIPPING_TIME
from jointbench.bench.settings import JointSettings, butterworth_registers, default_settings, motor_settings
from jointbench.bench.subscribers import Progress, ProgressCallback, Sink, Subscriber
from jointbench.bench.sync import BoardClock, Exchange, Pulse, board_clock, tie_by_pulses
from jointbench.bench.tally import Tally

__all__ = [
    "DEFAULT_LOSS_LIMIT",
    "FOOT_CHANNELS",
    "LEAST_FOOT_FORCE",
    "SOLE_EDGE",
    "TIPPING_TIME",
    "Bench",
    "BenchFile",
    "BenchTerms",
    "Board",
    "BoardClock",
    "BoardEntry",
    "BoardFinding",
    "BoardLedger",
    "Clock",
    "Connections",
    "Exchange",
    "Facts",
    "FeedClient",
    "Feedforward",
    "Identity",
    "JointSettings",
    "Ledger",
    "LockstepClock",
    "PointToPoint",
    "Port",
    "Progress",
    "ProgressCallback",
    "Pulse",
    "RegisterName",
    "Sink",
    "Subscriber",
    "Tally",
    "Trajectory",
    "WallClock",
    "board_clock",
    "board_ratios",
    "butterworth_registers",
    "check_up",
    "default_settings",
    "motor_settings",
    "open_bench",
    "open_feed",
    "read_bench_file",
    "tie_by_pulses",
    "trajectory_knots",
]
