"""What `./run bench feed` says of what it measured."""

from tools.bench.__main__ import VERBS
from tools.bench.feed import Recorded, feed_table, make_checks


def recorded(cpu: float = 0.03, lost: int = 0, rate: float = 25.0) -> list[Recorded]:
    return [Recorded(0, 0.02, 0, ()), Recorded(1, 0.025, 0, (25.0,)), Recorded(3, cpu, lost, (25.0, 25.0, rate))]


def test_it_is_a_verb() -> None:
    assert "feed" in VERBS


def test_a_feed_that_costs_little_passes() -> None:
    assert all(check.ok for check in make_checks(recorded()))
    assert "3.00" in feed_table(recorded())


def test_loss_cost_and_rate_can_fail() -> None:
    for wrong in (recorded(lost=1), recorded(cpu=0.18), recorded(rate=19.0)):
        assert [check.ok for check in make_checks(wrong)].count(False) == 1
