"""What tests need of a bench, by name."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType

import pytest

MARK = "jointbench_needs"

FEATURES = MappingProxyType(
    {
        "motor": "each board drives a motor, or what behaves like one",
        "link_encoder": "boards measure the joint behind its gear too",
        "current": "boards measure their motor's current",
        "torque_sensor": "boards measure the torque behind the gear",
        "foot_force": "boards measure the force under a foot",
        "model_in_firmware": "boards carry a model of their joint and need no motor (`sim_joint`)",
        "supply": "boards measure their supply voltage",
        "temperature": "boards measure their temperature",
        "sync": "all boards see the pulses of one SYNC line",
        "shared_line": "boards share a serial line",
        "several_boards": "there are two boards or more",
        "faults": "faults of sensors, motors and boards can be put in",
        "outputs": "the bench sees what boards give their motors' drives",
        "power": "the bench can take a board's power and give it back",
        "flash": "firmware can be put onto the boards",
        "fault_transport": "the ports can be put behind fault:// URLs",
    }
)
"""Features of benches, each with what it says."""
SETTING = "jointbench_features"


def needs(*features: str) -> pytest.MarkDecorator:
    """Mark a test, or all of a class, as one that needs these features of its bench.

    Args:
        features: names of `FEATURES`, or of the setting `jointbench_features`; others are refused at collection.
    """
    return getattr(pytest.mark, MARK)(*features)


def known_features(config: pytest.Config) -> frozenset[str]:
    """Return the names of all features, with those that the setting adds, a line "name: what it says" each."""
    return frozenset({*FEATURES, *(line.partition(":")[0].strip() for line in config.getini(SETTING))})


def needed(item: pytest.Item) -> tuple[str, ...]:
    """The features that a test needs, each once, those nearest to the test first."""
    return tuple(dict.fromkeys(name for mark in item.iter_markers(MARK) for name in mark.args))


def check_needs(item: pytest.Item, known: Collection[str]) -> None:
    """Refuse a test that asks for what nobody knows: on every bench it would be skipped.

    Raises:
        pytest.UsageError: a feature is unknown, or the mark names none.
    """
    if any(not mark.args or mark.kwargs for mark in item.iter_markers(MARK)):
        raise pytest.UsageError(f'{item.nodeid}: needs() must name features, as in needs("motor", "sync")')
    for name in needed(item):
        if name not in known:
            raise pytest.UsageError(
                f"{item.nodeid} needs {name!r}, which is no feature; there are {', '.join(sorted(known))} (more by "
                f"the setting {SETTING})"
            )
