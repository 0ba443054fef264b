"""`./run bench startup`: what it starts, and that it can fail."""

import pytest

from tools.bench import VERBS
from tools.startup_bench import COMMANDS, LIMIT_S, OURS, PEER, make_checks, seconds_of, times_table


def test_the_verb_is_there() -> None:
    assert "startup" in VERBS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_does_what_it_is_timed_for(name: str) -> None:
    assert seconds_of(COMMANDS[name]) > 0.0


def test_a_slow_median_fails() -> None:
    times = {name: [LIMIT_S / 2.0] * 3 for name in COMMANDS}
    assert all(check.ok for check in make_checks(times))
    times[OURS[1]] = [0.1, 1.1 * LIMIT_S, 1.1 * LIMIT_S]
    assert [check.ok for check in make_checks(times)] == [True, False, True]
    assert f"times {PEER}" in times_table(times)
