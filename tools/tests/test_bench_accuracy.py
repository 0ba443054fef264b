"""What `./run bench accuracy` is made of: arms, motions, recordings, the bound, and what it says of them."""

import argparse
import os
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import OVERSAMPLES
from jointbench import fit
from jointbench.arrays import Array
from jointbench.cli.console import Console
from jointbench.dynamics import base_parameters, drive_parameter_names, inverse_dynamics, model_columns
from jointbench.signals import LowPass
from tools.bench import accuracy as verb
from tools.bench.__main__ import VERBS
from tools.bench.accuracy import (
    Accuracy,
    Case,
    Trial,
    by_parameter,
    case_table,
    make_cases,
    make_checks,
    moved_line,
    parameter_table,
    run_trials,
    try_out,
)
from tools.bench.simulated_recordings import (
    REST_TICKS,
    Arm,
    arms,
    cramer_rao,
    fitted_moments,
    impossible,
    record,
    torque_noise,
)


@lru_cache(maxsize=1)
def case() -> Case:
    """A short motion, planned in a hurry."""
    return make_cases(1, 6.0, 5, Console(), starts=1)[0]


@lru_cache(maxsize=1)
def trials() -> tuple[Trial, ...]:
    return tuple(try_out(case(), [11, 12, 13]))


def standard_parameters(arm: Arm) -> Array:
    """The true ones of all links, shape (60,)."""
    of_links = [joint.link.standard_parameters for joint in arm.truth.joints]
    return np.concatenate([each for each in of_links if each is not None])


def test_arms_are_possible_and_differ() -> None:
    made = arms(3, 1)
    for arm in made:
        for joint, nominal in zip(arm.truth.joints, made[0].truth.joints, strict=True):
            assert joint.link.physical_fault is None
            assert joint.link.mass == pytest.approx(nominal.link.mass, rel=0.3)
    assert made[1].truth.joints[0].link.mass != made[2].truth.joints[0].link.mass
    assert arms(3, 1)[2].truth == made[2].truth


def test_the_plant_takes_the_torques_of_rigid_bodies() -> None:
    played, arm = case().playing, case().arm
    k = np.arange(0, len(played.position), 97)
    time = TICK * (k + 0.5 / OVERSAMPLES - 1.0)  # the first instant of the tick before
    q, dq, ddq = case().excitation.evaluate(np.mod(time, case().excitation.duration))
    links = standard_parameters(arm)
    ratio = np.array([drive.ratio for drive in arm.robot.drives])
    rotor, viscous, coulomb = (
        np.array([getattr(joint, name) for joint in arm.truth.joints])
        for name in ("rotor_inertia", "viscous", "coulomb")
    )
    sign = np.tanh(dq / arm.truth.ideal_transition)
    torque = inverse_dynamics(arm.robot, q, dq, ddq, links) + rotor * ratio**2 * ddq + viscous * dq + coulomb * sign
    constant = np.array([drive.torque_per_current for drive in arm.robot.drives])
    # Two implementations of the same dynamics: rounding alone, of torques up to 100 N·m.
    np.testing.assert_allclose(played.current[k, 0] * constant, torque, atol=1e-10)


def test_a_recording_is_the_motion_as_boards_see_it() -> None:
    arm, played = case().arm, case().playing
    run = record(arm, case().excitation, played, 2, seed=3).run
    samples, n = run.samples, len(played.position)
    assert samples.n_samples == REST_TICKS + 2 * n
    assert samples.play_tick[[0, REST_TICKS, -1]].tolist() == [-1, 0, 2 * n - 1]
    count = 2.0 * np.pi / (np.array([drive.ratio for drive in arm.robot.drives]) * 4096)
    # Both the first count and this one are rounded down, by less than a count each.
    assert np.abs((samples.motor_position[REST_TICKS:] - np.tile(played.position, (2, 1))) / count).max() < 1.0
    assert samples.motor_current is not None
    error = samples.motor_current[REST_TICKS : REST_TICKS + n] - played.current.mean(axis=1)
    # The filter's lag and noise, around a calibrated zero: 3 mA, one sigma, of which 5 are allowed.
    assert np.abs(error.mean(axis=0)).max() < 0.015
    again = record(arm, case().excitation, played, 2, seed=3).run.samples
    np.testing.assert_array_equal(again.motor_current, samples.motor_current)
    other = record(arm, case().excitation, played, 2, seed=4).run.samples
    assert other.motor_current is not None
    assert not np.array_equal(other.motor_current, samples.motor_current)


def test_weighted_least_squares_reaches_the_bound_where_noise_is_white() -> None:
    arm, excitation = case().arm, case().excitation
    base, noise = base_parameters(arm.robot), torque_noise(arm)
    moments = np.zeros(case().playing.position.shape, dtype=np.bool_)
    moments[::20] = True
    bound = cramer_rao(arm, excitation, base, 1, moments)
    time = np.mod(TICK * (np.arange(0, len(moments), 20) - 0.5), excitation.duration)
    columns = base.project(model_columns(arm.robot, *excitation.evaluate(time))[0])
    weighted = columns / np.tile(noise, len(time))[:, None]
    errors = np.linalg.lstsq(weighted, np.random.default_rng(0).standard_normal((len(weighted), 300)))[0]
    # 300 draws of 58 correlated parameters: the rms is known to a percent or so.
    assert np.sqrt(np.mean((errors / bound[:, None]) ** 2)) == pytest.approx(1.0, abs=0.04)


def test_the_bound_knows_playings_moments_and_noise() -> None:
    arm, excitation, base = case().arm, case().excitation, base_parameters(case().arm.robot)
    every = np.ones(case().playing.position.shape, dtype=np.bool_)
    some = every.copy()
    some[: len(some) // 2] = False
    bound = cramer_rao(arm, excitation, base, 1, every)
    np.testing.assert_allclose(cramer_rao(arm, excitation, base, 4, every), bound / 2.0, rtol=1e-12)
    assert (cramer_rao(arm, excitation, base, 1, some) > bound).all()
    sensors = arm.truth.sensors
    loud = replace(arm, truth=replace(arm.truth, sensors=replace(sensors, current_noise=3.0 * sensors.current_noise)))
    # Rounding to 12 bits adds 0.1 % at most to the noise, to all parameters alike.
    np.testing.assert_allclose(cramer_rao(loud, excitation, base, 1, every), 3.0 * bound, rtol=1e-2)


def test_moments_are_those_that_a_fit_takes_its_rows_from() -> None:
    model = fit(record(case().arm, case().excitation, case().playing, 1, seed=8).run)
    assert model.settings.cutoff_Hz is not None
    moments = fitted_moments(case().excitation, model.settings)
    stride = LowPass(model.settings.cutoff_Hz, TICK, model.settings.filter_order).stride
    # At each of the motion's two ends and some five rests a joint may have one row more or less.
    np.testing.assert_allclose(moments.sum(axis=0) / stride, model.rows, atol=7.0)
    assert 0.5 < moments.mean() < 0.95


def test_what_is_impossible_is_named() -> None:
    arm = arms(1, 0)[0]
    links = standard_parameters(arm)
    drives = np.ones(len(drive_parameter_names(arm.robot)))
    offset = drive_parameter_names(arm.robot).index("j3.offset")
    drives[offset] = -1.0
    assert impossible(arm.robot, links, drives) == ()
    for index, value, word in ((20, -0.1, "j3: mass"), (9, 9.0, "j1: principal"), (54, -1.0, "j6: principal")):
        wrong = links.copy()
        wrong[index] = value
        (fault,) = impossible(arm.robot, wrong, drives)
        assert word in fault
    drives[drive_parameter_names(arm.robot).index("j5.coulomb")] = -1e-3
    assert impossible(arm.robot, links, drives) == ("j5.coulomb: -0.001",)


def test_a_trial_fits_what_was_recorded() -> None:
    found = Accuracy.of(trials())
    # Three recordings of 58 correlated parameters tell an rms to some 15 %; that of a right fit is 1.0 to 1.1.
    assert 0.6 < found.times_bound < 1.6
    assert 0.6 < found.times_sigma < 1.6
    assert found.times_bound_all > found.times_bound
    assert found.impossible == 0
    for trial in trials():
        assert np.isfinite(trial.moved)
        assert (trial.bound >= trial.bound_all).all()
    assert (trials()[0].error != trials()[1].error).all()


def test_recordings_are_dealt_out_and_come_out_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    done = list(run_trials([case(), case()], 2, seed=4))
    assert [index for index, _ in done] == [0, 1]
    seeds = np.random.SeedSequence(4).generate_state(2).tolist()
    alone = try_out(case(), [seeds[1]])[0]
    np.testing.assert_array_equal(done[1][1].error, alone.error)


def test_the_verb_says_what_it_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(verb, "make_cases", lambda *_: [case()])
    result = VERBS["accuracy"][0](argparse.Namespace(recordings=2, seed=0), Console())
    assert not result.checks[0].ok  # two are too few
    assert result.checks[-1].ok
    frame = result.to_dict(0.0)
    assert frame["all"]["recordings"] == len(frame["moved_to_be_possible_sigma"]) == 2
    assert [each["name"] for each in frame["parameters"]] == list(trials()[0].names)
    assert "arm 1" in capsys.readouterr().out


def made_up(times: float, sigma: float, *, faults: tuple[str, ...] = (), recordings: int = 200) -> list[Trial]:
    """Errors `times` a bound of one, with error bars `sigma` times right."""
    rng = np.random.default_rng(1)
    ones = np.ones(50)
    return [
        Trial(
            names=tuple(f"p{k}" for k in range(50)), truth=4.0 * ones, error=times * rng.standard_normal(50),
            sigma=times * sigma * ones, bound=ones, bound_all=0.95 * ones, faults=faults, moved=0.0,
        )
        for _ in range(recordings)
    ]  # fmt: skip


def test_figures_are_those_of_the_trials() -> None:
    found = Accuracy.of(made_up(1.1, 1.0))
    # 10 000 normal errors: their rms to 0.7 %, the share within 2 σ (95.45 %) to 0.2 %; four of each.
    assert found.times_bound == pytest.approx(1.1, rel=0.03)
    assert found.times_bound_all == pytest.approx(1.1 / 0.95, rel=0.03)
    assert found.times_sigma == pytest.approx(1.0, rel=0.03)
    assert found.covered == pytest.approx(0.9545, abs=0.01)
    each = by_parameter(made_up(1.1, 1.0))[7]
    assert each.name == "p7"
    assert each.relative_bound == pytest.approx(0.25)
    assert abs(each.bias) < 0.4  # 1.1 / √200, five of it
    unknown = [replace(trial, sigma=np.full(50, np.inf)) for trial in made_up(1.0, 1.0)]
    assert Accuracy.of(unknown).covered == 0.0


@pytest.mark.parametrize(
    ("trials", "fails"),
    [
        (made_up(1.05, 1.0), []),
        (made_up(1.05, 1.0, recordings=199), [0]),
        (made_up(1.25, 1.0), [1, 2]),
        (made_up(1.11, 1.0), [2]),
        (made_up(1.05, 0.85), [3]),
        (made_up(1.05, 1.15), [4]),
        (made_up(1.05, 1.0, faults=("j1: mass -1 kg",)), [5]),
    ],
)
def test_checks_can_fail(trials: list[Trial], fails: list[int]) -> None:
    assert [k for k, check in enumerate(make_checks(Accuracy.of(trials))) if not check.ok] == fails


def test_tables_say_what_was_found() -> None:
    made = made_up(1.1, 1.0)
    assert "arm 1" in case_table({"arm 1": made})
    assert "within 2 σ" in parameter_table(by_parameter(made))
    assert "1 of 3" in moved_line([0.0, 0.5, 1e-9])
    assert "all estimates" in moved_line([0.0])
