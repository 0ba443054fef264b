"""The bench as every test of the suite finds it: connected, and with each joint's default servo and limits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hil_tests.suite.driven_joint import DrivenJoint
from jointbench.bench import Bench, open_bench
from jointbench.testing.roles import TakingTurns


@pytest.fixture
def connected(live_bench: Path) -> Iterator[Bench]:
    """Greeted boards, as they are."""
    with open_bench(live_bench, around=TakingTurns) as bench:
        bench.connect()
        yield bench


@pytest.fixture
def bench(connected: Bench) -> Bench:
    """Boards that are ready to move."""
    connected.configure()
    return connected


@pytest.fixture
def joint(bench: Bench) -> DrivenJoint:
    """The first joint, to be driven by hand."""
    return DrivenJoint(bench, bench.boards[0])
