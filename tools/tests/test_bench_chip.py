"""`./run bench chip`: its limits, and that the firmware keeps them for some seconds on the emulated chip."""

from dataclasses import replace
from pathlib import Path

import pytest

from hil_tests.test_rp2040_board import need_rp2040
from tools.bench.chip import LIMITS_US, Turns, make_checks, run, turns_table

GOOD = Turns(
    joints=1, tick_us=1000, seconds=60.0, mean_us=120.0, longest_us=300, missed=0, late=0, lost=0, lost_in_all=0,
    pings=480, bytes_per_s=18_000.0, collected=False,
)  # fmt: skip
BAD = replace(GOOD, mean_us=121.0, longest_us=301, missed=1, lost=1, lost_in_all=3, pings=479, collected=True)


@pytest.mark.parametrize("joints", LIMITS_US)
def test_every_limit_can_be_missed(joints: int) -> None:
    mean_us, longest_us = LIMITS_US[joints]
    good = replace(GOOD, joints=joints, mean_us=mean_us, longest_us=longest_us)
    bad = replace(BAD, joints=joints, mean_us=mean_us + 1.0, longest_us=longest_us + 1)
    assert all(check.ok for check in make_checks([good]))
    assert not any(check.ok for check in make_checks([bad]))


def test_what_is_lost_while_running_is_told_from_what_is_lost_before() -> None:
    lines = turns_table([GOOD, BAD]).splitlines()
    rows = [line.split()[-2:] for line in lines if "lost" in line]
    assert rows == [["0", "1"], ["0", "2"]]


@pytest.mark.slow
@pytest.mark.parametrize("joints", LIMITS_US)
def test_turns_on_the_chip_keep_their_time(tmp_path: Path, joints: int) -> None:
    need_rp2040()
    found = run(tmp_path, 1000, 3.0, 0, joints)
    missed = [str(check) for check in make_checks([found]) if not check.ok]
    assert not missed
