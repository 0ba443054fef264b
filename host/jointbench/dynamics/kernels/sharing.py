"""Pieces of one batch, taken by whichever thread is free: two counters that threads may change at once.

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
"""How many pieces were taken (more than there are, in the end), and how many are done; both begin at zero."""

_let_others_run: Any = types.ExternalFunction("sched_yield", types.int32())

_ONE = ir.Constant(ir.IntType(64), 1)


@instruction
def take(typingctx: Any, counters: Any) -> Any:
    """The next piece, which is nobody else's."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _counter(context, builder, sig, args, 0), _ONE, "acq_rel")

    return types.int64(counters), codegen


@instruction
def finish(typingctx: Any, counters: Any) -> Any:
    """Tell that a piece is done."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _counter(context, builder, sig, args, 1), _ONE, "acq_rel")

    return types.int64(counters), codegen


@instruction
def _finished(typingctx: Any, counters: Any) -> Any:
    """How many are done."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_counter(context, builder, sig, args, 1), "acquire", 8)

    return types.int64(counters), codegen


@kernel
def wait(counters: Counters, pieces: int) -> None:
    """Return when all pieces are done: at once, or when another thread has finished its last one."""
    # Not asleep: a piece takes some microseconds, and to be woken takes longer. But where the processor has more to do
    # than it has cores, the other thread may be one of those that wait for this one's.
    while _finished(counters) < pieces:
        _let_others_run()


def _counter(context: Any, builder: Any, sig: Any, args: Any, which: int) -> Any:
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    return builder.gep(data, [ir.Constant(ir.IntType(64), which)])
