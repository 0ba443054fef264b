"""After a fault: another host finds the board as it was left, and CLEAR, a new load and ARM make it play again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jointbench.errors import JointbenchError
from jointbench.link import Bench, open_bench
from jointbench.link.clock import LockstepClock
from jointwire import State
from tools.faults.subject import LEAST_DRIVEN, motion, set_up

TOLD_US = 1_200_000  # a board in FAULT tells it each second
REST_US = 50_000


@dataclass(frozen=True)
class Recovery:
    """How a board was found, and whether it plays again.

    Attributes:
        since_us: the bench's time when the second host came; motors that were on are off by then.
        latched: number of the trip that it had, 0 without one.
        problem: why it does not play again; empty where it does.
        image: SHA-256 of the firmware that the board says it runs; empty where it does not answer.
    """

    since_us: int
    latched: int
    problem: str
    image: str = ""


def recover(live: Path, power: bool) -> Recovery:
    """Be the second host, on a good line, with everything healed.

    Args:
        live: the bench.
        power: whether the board's power has to be taken first; that of one that is gone is taken anyhow.
    """
    with open_bench(live) as bench:
        clock, (board,) = bench.clock, bench.boards
        assert isinstance(clock, LockstepClock)
        since_us, latched, image = clock.now_us(), 0, ""
        try:
            _pass(clock, REST_US)  # a board that is gone says so
            if power or board.why_lost:
                clock.restart(board.node)
            bench.connect()
            image = bench.identities[0].image_sha256
            if board.state is State.FAULT:
                _pass(clock, TOLD_US)
                latched = board.fault.trip if board.fault else -1
            _play_again(bench, clock)
        except JointbenchError as error:
            return Recovery(since_us, latched, f"does not play again: {error}", image)
        return Recovery(since_us, latched, _judge_outputs(clock, board.node), image)


def _play_again(bench: Bench, clock: LockstepClock) -> None:
    """What anybody does after a fault, from where the joint was left."""
    if bench.boards[0].state is State.FAULT:
        bench.clear()
    set_up(bench)
    start = float(bench.positions()[0])
    clock.ask({"outputs": bench.boards[0].node})
    bench.play(motion(bench, start))


def _judge_outputs(clock: LockstepClock, node: int) -> str:
    outputs = clock.ask({"outputs": node})["outputs"]
    driven = [command for _, enable, command in outputs if enable]
    if len(driven) < LEAST_DRIVEN or not any(driven):
        return f"says that it played, but its motor was on for {len(driven)} ticks of {LEAST_DRIVEN}"
    return "" if outputs[-1][1:] == [0, 0] else "played again, and its motor is on yet"


def _pass(clock: LockstepClock, for_us: int) -> None:
    end_us = clock.now_us() + for_us
    while (left_us := end_us - clock.now_us()) > 0:
        clock.wait(left_us)
