"""Bit for bit: samples of which the host knows exactly what a board makes of them, counted by filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.filter_bench.cases import Case
from tools.filter_bench.twins import host_outputs

FILTERS = ("boxcar", "CIC 2", "biquad", "two biquads", "tracking observer", "M/T counting")
"""By the names that tables have."""

Run = Callable[[Sequence[Case]], Iterable[NDArray[Any]]]


@dataclass(frozen=True)
class Exactness:
    """How many samples of each filter were compared, and how many were not equal.

    Attributes:
        where: what computed them beside the host.
        compared, different: by filter, in the order of FILTERS, shape (n_filters,).
    """

    where: str
    compared: NDArray[np.int64]
    different: NDArray[np.int64]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        counts = zip(FILTERS, self.compared.tolist(), self.different.tolist(), strict=True)
        return {name: {"samples": compared, "different": different} for name, compared, different in counts}


def compare(where: str, run: Run, cases: Sequence[Case], at_once: int = 50) -> Exactness:
    """Run cases elsewhere and on the host's twins.

    Args:
        where: name of what `run` runs them on.
        run: gives outputs of each case, dtype OUTPUTS.
        cases: as many as wanted; they run some at a time.
        at_once: how many.
    """
    compared, different = np.zeros((2, len(FILTERS)), np.int64)
    for start in range(0, len(cases), at_once):
        some = cases[start : start + at_once]
        for case, found in zip(some, run(some), strict=True):
            expected = host_outputs(case)
            for name in expected.dtype.names or ():
                index = _filter_of(name, case)
                compared[index] += len(expected)
                different[index] += int(np.sum(found[name] != expected[name]))
    return Exactness(where, compared, different)


def _filter_of(output: str, case: Case) -> int:
    if output == "velocity":
        return 4 + case.registers["velocity.source"]
    if output.endswith("_middle"):
        return 2
    return 3 if output.endswith("_filtered") else case.registers["adc.cic_order"] - 1
