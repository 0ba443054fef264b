"""Wherever a log is cut into stretches, its rows are the same: nothing feels the cuts."""

import dataclasses

import numpy as np
import pytest

from jointbench.identification import FitSettings
from jointbench.identification import observations as observing
from jointbench.identification import parallel_filter as cutting
from jointbench.identification.observations import Observations, observe
from jointbench.identification.parallel_filter import cut, spread
from jointbench.model import base_parameters
from jointbench.recording import Run
from jointbench.signals import LowPass
from jointbench.tests.identification.synthetic import arm, butterworth_filter, synthetic_run

ARM = arm(3)
BASE = base_parameters(ARM)
SLOW = butterworth_filter(4, 8.0, cic_order=2)  # remembers for a second


def run_with_a_gap(*, known_filter: bool) -> Run:
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1, repeats=1, board_filter=SLOW)
    valid = run.samples.valid.copy()
    valid[3100:3160] = False
    position, torque = run.samples.motor_position, run.samples.motor_torque
    assert torque is not None
    samples = dataclasses.replace(
        run.samples, valid=valid, motor_position=np.where(valid, position, np.nan),
        motor_torque=np.where(valid, torque, np.nan), board_filters=run.samples.board_filters if known_filter else None,
    )  # fmt: skip
    return dataclasses.replace(run, samples=samples)


def observed(monkeypatch: pytest.MonkeyPatch, run: Run, samples: int, settings: FitSettings) -> Observations:
    monkeypatch.setattr(cutting, "SAMPLES", samples)
    monkeypatch.setattr(cutting, "_MEMORIES", 0)
    return observe(run, ARM, BASE, settings)


SETTINGS = (
    (True, FitSettings()),
    (False, FitSettings(delay=(0.031, -0.017, 0.2))),
    (False, FitSettings(delay="estimate")),
    (False, FitSettings(cutoff_Hz=60.0, rest_guard=0.3, filter_order=8, delay=0.0)),
)


@pytest.mark.parametrize(("known_filter", "settings"), SETTINGS)
@pytest.mark.parametrize("samples", [400, 1234])
def test_any_cut_gives_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, known_filter: bool, settings: FitSettings, samples: int
):
    run = run_with_a_gap(known_filter=known_filter)
    whole = observed(monkeypatch, run, 10**6, settings)
    pieces = observed(monkeypatch, run, samples, settings)
    assert len(whole.stretches) == 2
    assert len(pieces.stretches) > 8_000 // samples
    np.testing.assert_array_equal(pieces.complete, whole.complete)
    np.testing.assert_array_equal(pieces.moving, whole.moving)
    assert whole.settings.velocity_threshold is not None
    assert pieces.settings.velocity_threshold == pytest.approx(whole.settings.velocity_threshold, rel=1e-9)
    # Second differences of positions divide by h² = 1e-6: their rounding, 1e-16 of some radians, becomes 1e-9.
    for name in ("regressor", "torque"):
        one, other = getattr(pieces, name), getattr(whole, name)
        np.testing.assert_allclose(one, other, atol=3e-9 * np.abs(other).max(), err_msg=name)
    for name in ("q", "dq", "ddq"):
        one, other = getattr(pieces.motion, name), getattr(whole.motion, name)
        np.testing.assert_allclose(one, other, atol=3e-9 * max(1.0, np.abs(other).max()), err_msg=name)


def test_a_cut_is_felt_by_who_takes_too_little_of_the_neighbours(monkeypatch: pytest.MonkeyPatch):
    run, settings = run_with_a_gap(known_filter=False), FitSettings(delay=0.0)
    whole = observed(monkeypatch, run, 10**6, settings)
    monkeypatch.setattr(LowPass, "memory", property(lambda self: self.settling))
    pieces = observed(monkeypatch, run, 1234, settings)
    assert np.abs(pieces.regressor - whole.regressor).max() > 1e-4 * np.abs(whole.regressor).max()


def no_room(_: object) -> None:
    raise OSError("no space left on device")


@pytest.mark.parametrize("room", [True, False])
def test_blocks_of_a_long_log_are_read_or_computed_again_and_the_same(monkeypatch: pytest.MonkeyPatch, room: bool):
    run = run_with_a_gap(known_filter=True)
    kept = observe(run, ARM, BASE, FitSettings())
    assert [a is b for a, b in zip(kept.blocks(), kept.blocks(), strict=True)] == [True, True]
    monkeypatch.setattr(observing, "_IN_MEMORY", 0.0)
    if not room:
        monkeypatch.setattr(observing, "BlocksInFile", no_room)
    again = observe(run, ARM, BASE, FitSettings())
    for _ in range(2):
        for found, wanted in zip(again.blocks(), kept.blocks(), strict=True):
            assert found is not wanted
            assert found.start == wanted.start
            for name in ("regressor", "torque", "used", "complete"):
                np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
            for name in ("q", "dq", "ddq"):
                np.testing.assert_array_equal(getattr(found.motion, name), getattr(wanted.motion, name))


def test_every_sample_and_every_row_is_in_one_stretch():
    low_pass = LowPass(20.0, 1e-3)
    parts = [slice(7, 5003), slice(5100, 5100 + 2 * low_pass.settling + 27)]
    stretches = cut(parts, low_pass, most=600)
    samples = np.concatenate([np.arange(stretch.own.start, stretch.own.stop) for stretch in stretches])
    np.testing.assert_array_equal(samples, np.concatenate([np.arange(part.start, part.stop) for part in parts]))
    rows = np.concatenate([np.arange(stretch.rows.start, stretch.rows.stop) for stretch in stretches])
    grid = np.arange(0, parts[-1].stop, low_pass.stride)
    away = [(grid >= part.start + low_pass.settling) & (grid < part.stop - low_pass.settling) for part in parts]
    np.testing.assert_array_equal(rows, np.flatnonzero(away[0] | away[1]))
    for stretch in stretches:
        span = stretch.around(50)
        assert stretch.part.start <= span.start <= stretch.own.start
        rows = np.arange(stretch.rows.start, stretch.rows.stop)
        np.testing.assert_array_equal(stretch.places(span) + span.start, stretch.stride * rows)


def test_chosen_stretches_lie_evenly():
    stretches = cut([slice(0, 1_000_000)], LowPass(20.0, 1e-3), most=5000)
    chosen = spread(stretches, 4000)
    assert sum(each.n_rows for each in chosen) == pytest.approx(4000, rel=0.1)
    middles = [0.5 * (each.own.start + each.own.stop) for each in chosen]
    apart = np.diff([-middles[0], *middles, 2_000_000 - middles[-1]])
    assert apart == pytest.approx(1_000_000 / len(chosen), abs=6000)  # whole stretches of 5000 samples are chosen
    assert spread(stretches, 10**9) == stretches
    assert len(spread(stretches, 1)) == 1
