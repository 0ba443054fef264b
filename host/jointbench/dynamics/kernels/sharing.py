"""Pieces of one batch, taken by whichever thread is free: counters that threads may change at once.

No thread is waited for before it has taken a piece, so that one which wakes up late costs nothing.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import types
from numpy.typing import NDArray

from jointbench.dynamics.kernels.compiled import instruction, kernel

Counters: TypeAlias = NDArray[np.int64]
"""How many pieces were taken (more than there are, in the end), how many are done, of which job, how many listen
for the next one, and how many threads are not yet back from this one."""

_TAKEN, _DONE, _JOB, _LISTENING, _AWAY = range(5)

# How often a thread looks for the next job: about 0.1 ms, if no other process wants the core.
_LOOKS = 400

# How often one looks whether the others are back: about 0.02 ms. Then they hear of the next job at once.
_GLANCES = 80

# More pieces than any batch has.
_ALL = 2**40

_let_others_run: Any = types.ExternalFunction("sched_yield", types.int32())

_ONE = ir.Constant(ir.IntType(64), 1)


@instruction
def take(typingctx: Any, counters: Any) -> Any:
    """The next piece, which is nobody else's."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _counter(context, builder, sig, args, _TAKEN), _ONE, "acq_rel")

    return types.int64(counters), codegen


@instruction
def finish(typingctx: Any, counters: Any) -> Any:
    """Tell that a piece is done."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _counter(context, builder, sig, args, _DONE), _ONE, "acq_rel")

    return types.int64(counters), codegen


@instruction
def _seen(typingctx: Any, counters: Any, which: Any) -> Any:
    """What a counter says now, whoever set it."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", 8)

    return types.int64(counters, types.int64), codegen


@instruction
def _change(typingctx: Any, counters: Any, which: Any, by: Any) -> Any:
    """Change a counter."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), args[2], "acq_rel")

    return types.int64(counters, types.int64, types.int64), codegen


@kernel
def wait(counters: Counters, pieces: int) -> None:
    """Return when all pieces are done: at once, or when another thread has finished its last one."""
    # Not asleep: a piece takes some microseconds, and to be woken takes longer. But where the processor has more to do
    # than it has cores, the other thread may be one of those that wait for this one's.
    while _seen(counters, _DONE) < pieces:
        _let_others_run()
    for _ in range(_GLANCES):
        if _seen(counters, _AWAY) == 0:
            break
        _let_others_run()


@kernel
def hear_of_next(counters: Counters, last: int, helped: int) -> bool:
    """Whether, within a moment, a thread has begun with another job than the last one: it then waits for no lock.

    Args:
        counters: of the jobs.
        last: number of the last job.
        helped: 1 where this thread comes back from it, else 0.
    """
    _change(counters, _LISTENING, 1)
    _change(counters, _AWAY, -helped)
    heard = False
    for _ in range(_LOOKS):
        heard = _seen(counters, _JOB) != last and _seen(counters, _TAKEN) > 0
        if heard:
            break
        _let_others_run()
    _change(counters, _LISTENING, -1)
    return heard


def new_counters() -> Counters:
    """Counters of no job."""
    return np.zeros(5, dtype=np.int64)


def announce(counters: Counters) -> int:
    """Reset them for the next job; returns how many threads are listening."""
    counters[:_JOB] = 0
    counters[_JOB] += 1
    return int(counters[_LISTENING])


@kernel
def close(counters: Counters) -> None:
    """Leave no piece to be taken, as its caller is gone: what one has begun with it ends, some microseconds later."""
    _change(counters, _TAKEN, _ALL)


@kernel
def join(counters: Counters) -> None:
    """Be one of those who are away with the job."""
    _change(counters, _AWAY, 1)


def are_back(counters: Counters) -> bool:
    """Whether nobody is away with a job any more."""
    return int(counters[_AWAY]) == 0


def number_of(counters: Counters) -> int:
    """Which job they are of."""
    return int(counters[_JOB])


def _counter(context: Any, builder: Any, sig: Any, args: Any, which: int) -> Any:
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    return builder.gep(data, [ir.Constant(ir.IntType(64), which)])
