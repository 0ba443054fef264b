"""The response that the host states of a board's filter is that of the filter which ran on it."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hil_tests.link_helpers import COBOT, record_wave
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import Bench, open_bench
from jointbench.recording import Samples

QUICK = {"cutoff_hz": 300.0, "filter_order": 2, "cic_order": 1}
SLOW = {"cutoff_hz": 12.0, "filter_order": 4, "cic_order": 2}
PERIOD = 1024


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    out = tmp_path_factory.mktemp("sim")
    with virtual_bench(COBOT, plant="ideal", seed=5, out=out) as path, open_bench(path) as bench:
        bench.connect()
        yield bench


@pytest.fixture(scope="module")
def quick(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return _record(bench, tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def slow(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The same motion behind a slow filter."""
    return _record(bench, tmp_path_factory.mktemp("slow"), SLOW)


def _record(bench: Bench, folder: Path, settings: dict) -> Samples:
    bench.configure(**settings)
    bench.move_to(bench.robot.home)
    return record_wave(bench, folder / "run", repeats=3).samples


def lag(quick: Samples, slow: Samples, channel: str) -> np.ndarray:
    """Delay [s] by joint that the stated filters leave unexplained.

    Each recording goes through the other's filter, so that both hold the motion behind both filters. Where the one
    that is stated of the slow recording has less delay than the one that ran, what went through it comes earlier.
    """
    behind_both = []
    for samples, other in ((quick, slow), (slow, quick)):
        assert other.board_filters is not None
        values = getattr(samples, channel)[samples.play_tick >= 0]
        filtered = [each.apply(column) for each, column in zip(other.board_filters, values.T, strict=True)]
        behind_both.append(np.column_stack(filtered)[PERIOD:])  # the first period still settles
    early, late = behind_both
    slope = np.gradient(late, slow.sample_period, axis=0)
    return np.sum(slope * (early - late), axis=0) / np.sum(slope**2, axis=0)


@pytest.mark.parametrize("channel", ["motor_current", "joint_torque"])
def test_a_board_filters_as_its_registers_say(quick: Samples, slow: Samples, channel: str) -> None:
    assert slow.board_filters is not None
    ran = slow.board_filters[0]
    assert len(ran.sections) == 2
    assert ran.cic_order == 2
    # The smallest mistake is the decimator's order, 0.53 ms: half of it tells. The wrist's two last joints carry so
    # little that their sensors' noise hides it.
    tolerance = 0.25e-3
    assert lag(quick, slow, channel)[:4] == pytest.approx(0.0, abs=tolerance)
    for part in ({"cic_order": 1}, {"sections": ran.sections[:1]}, {"sections": ran.sections[1:]}):
        wrong = dataclasses.replace(ran, **part)
        stated = dataclasses.replace(slow, board_filters=(wrong,) * slow.n_joints)
        assert lag(quick, stated, channel)[:4] == pytest.approx(ran.delay - wrong.delay, abs=tolerance), part
