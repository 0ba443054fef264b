"""What the benchmarks share: their error, and their peer Pinocchio."""

from __future__ import annotations

import importlib
from typing import Any


class BenchmarkFailed(Exception):
    """Raised when something cannot be measured: a peer or program is missing, a process fails, results differ."""


def pinocchio() -> Any:
    """Return the module Pinocchio, the peer of the dynamics' benchmarks.

    Raises:
        BenchmarkFailed: it does not load here.
    """
    try:
        return importlib.import_module("pinocchio")
    except ImportError as error:
        raise BenchmarkFailed(
            f"Pinocchio, the peer, does not load: {error}; `./run test` fetches what it lacks"
        ) from error
