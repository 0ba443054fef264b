"""The tiers of tests, by the kind of time that they are good for."""

from __future__ import annotations

from types import MappingProxyType

import pytest

CLOCKS = ("virtual", "icount", "wall")
TIERS = MappingProxyType(
    {
        "functional": frozenset(CLOCKS),
        "deterministic": frozenset({"virtual", "icount"}),  # the same bytes every time
        "realtime": frozenset({"wall"}),  # of an emulator's clock nothing follows for a board's
    }
)
"""Tiers, each with the clocks of benches that its tests can run on."""

PROPERTY = "tier"
_PREFIX = "jointbench_"
MARKS = {
    f"{_PREFIX}functional": "a bench test for every bench",
    f"{_PREFIX}deterministic": "a bench test that needs a clock under the bench's control",
    f"{_PREFIX}realtime": "a bench test that needs the wall clock",
}

functional: pytest.MarkDecorator = pytest.mark.jointbench_functional
deterministic: pytest.MarkDecorator = pytest.mark.jointbench_deterministic
realtime: pytest.MarkDecorator = pytest.mark.jointbench_realtime


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test, empty where it has none.

    Raises:
        pytest.UsageError: it has several.
    """
    tiers = [tier for tier in TIERS if item.get_closest_marker(_PREFIX + tier)]
    if len(tiers) > 1:
        raise pytest.UsageError(f"{item.nodeid} is marked {' and '.join(tiers)}; a test has one tier")
    return tiers[0] if tiers else ""


def need_tier(item: pytest.Item) -> str:
    """Return the tier of a test that must have one.

    Raises:
        pytest.UsageError: it has none, or several.
    """
    tier = tier_of(item)
    if not tier:
        raise pytest.UsageError(
            f"{item.nodeid} runs on a bench and has no tier; mark it with one of {', '.join(TIERS)} of "
            "jointbench.testing"
        )
    return tier
