"""Loops that NumPy has no word for: compiled at their first call, so that importing them costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function, compiled by Numba when it is first called and kept on disk.

    Args:
        function: of arrays and integers; it may call nothing that is not Numba's.
    """

    @cache
    def machine_code() -> Callable[_Given, _Result]:
        from numba import njit

        return cast(Callable[_Given, _Result], njit(cache=True, nogil=True)(function))

    @wraps(function)
    def call(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return machine_code()(*args, **kwargs)

    return call
