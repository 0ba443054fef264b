"""`./run bench chip`: its limits, and that the firmware keeps them for some seconds on the emulated chip."""

from dataclasses import replace
from pathlib import Path

import pytest

from hil_tests.test_rp2040_board import need_rp2040
from tools.chip_bench import LONGEST_US, MEAN_US, Turns, make_checks, run, turns_table

GOOD = Turns(
    tick_us=1000, seconds=60.0, mean_us=MEAN_US, longest_us=LONGEST_US, missed=0, late=0, lost=0, lost_in_all=0,
    pings=480, bytes_per_s=18_000.0, collected=False,
)  # fmt: skip
BAD = replace(
    GOOD, mean_us=MEAN_US + 1.0, longest_us=LONGEST_US + 1, missed=1, lost=1, lost_in_all=3, pings=479,
    collected=True,
)  # fmt: skip


def test_every_limit_can_be_missed() -> None:
    assert all(check.ok for check in make_checks([GOOD]))
    assert not any(check.ok for check in make_checks([BAD]))


def test_what_is_lost_while_running_is_told_from_what_is_lost_before() -> None:
    lines = turns_table([GOOD, BAD]).splitlines()
    rows = [line.split()[-2:] for line in lines if "lost" in line]
    assert rows == [["0", "1"], ["0", "2"]]


@pytest.mark.slow
def test_turns_on_the_chip_keep_their_time(tmp_path: Path) -> None:
    need_rp2040()
    found = run(tmp_path, 1000, 3.0, 0)
    missed = [str(check) for check in make_checks([found]) if not check.ok]
    assert not missed
