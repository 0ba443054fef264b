"""How the kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

from numba import njit
from numba.extending import intrinsic

_Function = TypeVar("_Function", bound=Callable[..., Any])

# A product and a sum may become one instruction, which rounds once instead of twice. No other liberty is taken: the
# reduction of angles in motion.py lives on sums being done in the order in which they are written.
_FASTMATH = {"contract"}

# All that kernels are made of: these files, and those whose records and constants they take.
_HERE = Path(__file__).parent
_MADE_OF = (*sorted(_HERE.glob("*.py")), *(_HERE.parent / f"{name}.py" for name in ("batch", "chosen_columns", "tree")))
_SOURCES = f"{crc32(b''.join(path.read_bytes() for path in _MADE_OF)):08x}"


def inlined(function: _Function) -> _Function:
    """A function that becomes a part of those that call it; it makes no arrays."""
    # Without Numba's run time: it would count who uses each array, in every function, and cost more than the maths.
    options: dict[str, Any] = {"forceinline": True, "_nrt": False}
    return cast(_Function, njit(**options, fastmath=_FASTMATH, error_model="numpy")(function))


def kernel(function: _Function) -> _Function:
    """A function that Python calls: kept on disk, and run beside other threads."""
    # What is kept is found by the function's name and its own file's date; a change in any of these files must count.
    function.__qualname__ += f"_{_SOURCES}"
    return cast(_Function, njit(cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy")(function))


def instruction(function: Callable[..., Any]) -> Any:
    """An operation of the machine, written out by its name: its arguments are types, which the compiler goes by."""
    return intrinsic(function)
