"""The benchmarks of dynamics, plans and fits: what they are made of, their checks, and what they say."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from hil_tests.virtual_bench.model import TICK
from hil_tests.virtual_bench.plant import OVERSAMPLES
from jointbench import fit, model
from jointbench.arrays import Array
from jointbench.cli.console import Console
from jointbench.excitation import random_excitation
from jointbench.identification.momentum_observer import pushes
from jointbench.model import (
    Tolerances,
    base_parameters,
    drive_parameter_names,
    inverse_dynamics,
    load_robot,
    model_columns,
)
from jointbench.recording import open_run
from jointbench.signals import LowPass
from tools.bench import (
    accuracy,
    calibration,
    excitation,
    friction,
    header,
    hindsight,
    identification,
    logs,
    observer,
    predictor,
    regressor,
)
from tools.bench.__main__ import VERBS
from tools.bench.identification_memory import (
    imported_log,
    in_own_process,
    many_rows,
    recorded_log,
    true_parameters,
)
from tools.bench.peers import BenchmarkFailed
from tools.bench.public_recordings import SPLITS
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
def case() -> accuracy.Case:
    """A short motion, planned in a hurry."""
    return accuracy.make_cases(1, 6.0, 5, Console(), starts=1)[0]


@lru_cache(maxsize=1)
def trials() -> tuple[accuracy.Trial, ...]:
    return tuple(accuracy.try_out(case(), [11, 12, 13]))


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
    found = accuracy.Accuracy.of(trials())
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
    done = list(accuracy.run_trials([case(), case()], 2, seed=4))
    assert [index for index, _ in done] == [0, 1]
    seeds = np.random.SeedSequence(4).generate_state(2).tolist()
    alone = accuracy.try_out(case(), [seeds[1]])[0]
    np.testing.assert_array_equal(done[1][1].error, alone.error)


def test_the_verb_says_what_it_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(accuracy, "make_cases", lambda *_: [case()])
    result = VERBS["accuracy"][0](argparse.Namespace(recordings=2, seed=0), Console())
    assert not result.checks[0].ok  # two are too few
    assert result.checks[-1].ok
    frame = result.to_dict(0.0)
    assert frame["all"]["recordings"] == len(frame["moved_to_be_possible_sigma"]) == 2
    assert [each["name"] for each in frame["parameters"]] == list(trials()[0].names)
    assert "arm 1" in capsys.readouterr().out


def made_up(times: float, sigma: float, *, faults: tuple[str, ...] = (), recordings: int = 200) -> list[accuracy.Trial]:
    """Errors `times` a bound of one, with error bars `sigma` times right."""
    rng = np.random.default_rng(1)
    ones = np.ones(50)
    return [
        accuracy.Trial(
            names=tuple(f"p{k}" for k in range(50)), truth=4.0 * ones, error=times * rng.standard_normal(50),
            sigma=times * sigma * ones, bound=ones, bound_all=0.95 * ones, faults=faults, moved=0.0,
        )
        for _ in range(recordings)
    ]  # fmt: skip


def test_figures_are_those_of_the_trials() -> None:
    found = accuracy.Accuracy.of(made_up(1.1, 1.0))
    # 10 000 normal errors: their rms to 0.7 %, the share within 2 σ (95.45 %) to 0.2 %; four of each.
    assert found.times_bound == pytest.approx(1.1, rel=0.03)
    assert found.times_bound_all == pytest.approx(1.1 / 0.95, rel=0.03)
    assert found.times_sigma == pytest.approx(1.0, rel=0.03)
    assert found.covered == pytest.approx(0.9545, abs=0.01)
    each = accuracy.by_parameter(made_up(1.1, 1.0))[7]
    assert each.name == "p7"
    assert each.relative_bound == pytest.approx(0.25)
    assert abs(each.bias) < 0.4  # 1.1 / √200, five of it
    unknown = [replace(trial, sigma=np.full(50, np.inf)) for trial in made_up(1.0, 1.0)]
    assert accuracy.Accuracy.of(unknown).covered == 0.0


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
def test_checks_can_fail(trials: list[accuracy.Trial], fails: list[int]) -> None:
    assert [k for k, check in enumerate(accuracy.make_checks(accuracy.Accuracy.of(trials))) if not check.ok] == fails


def test_tables_say_what_was_found() -> None:
    made = made_up(1.1, 1.0)
    assert "arm 1" in accuracy.case_table({"arm 1": made})
    assert "within 2 σ" in accuracy.parameter_table(accuracy.by_parameter(made))
    assert "1 of 3" in accuracy.moved_line([0.0, 0.5, 1e-9])
    assert "all estimates" in accuracy.moved_line([0.0])


PROBLEM = excitation.problem_of(excitation.ur10())
FIRST = excitation.FirstOptimum(0, 90.0, 16.0, 0.2, excitation.PeerFound(17.0, 20.0, 0.0, 20_000))
PLAN = excitation.Planned(0, 5.0, 4.9, 13.4, 0, 30, [(0.1, 40.0), (0.3, 16.5), (2.0, 13.4)])


def test_the_verb_is_there() -> None:
    assert "excitation" in VERBS


def test_the_arm_has_as_many_base_parameters_as_its_makers_urdf() -> None:
    robot = excitation.ur10()
    assert base_parameters(robot, drives=False).rank == excitation.pivoted_base(robot).rank == 36
    assert len(set(excitation.pivoted_base(robot).columns.tolist())) == 36


@pytest.mark.parametrize("seed", range(3))
def test_the_peer_sees_the_same_condition_number(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = PROBLEM.random(np.random.default_rng(seed))
    peer = excitation.Peer(PROBLEM)
    variables = peer.variables(PROBLEM, weights)

    # Two libraries' regressors agree to 1e-14; the condition number, some hundred, multiplies that.
    assert peer.condition(variables) == pytest.approx(PROBLEM.value(weights), rel=1e-11)
    monkeypatch.setattr(excitation, "_ORDER", np.array([0, 1, 2, 3, 9, 8, 7, 6, 5, 4]))
    assert excitation.Peer(PROBLEM).condition(variables) != pytest.approx(PROBLEM.value(weights), rel=1e-3)


def test_the_peer_goes_downhill_within_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excitation, "_ITERATIONS", 3)
    weights = PROBLEM.random(np.random.default_rng(0))

    found = excitation.Peer(PROBLEM).run(PROBLEM, weights)

    assert found.value < PROBLEM.value(weights)
    assert found.evaluations >= 3 * 67
    assert found.seconds > 0.0
    # It linearises peaks that jump from sample to sample, and was stopped on its way.
    assert found.broken < 0.2


def test_without_pinocchio_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str):
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BenchmarkFailed, match=r"libgomp\.so\.1.*\./run test"):
        excitation.Peer(PROBLEM)


def test_violations_are_found_where_there_are_some() -> None:
    motion = random_excitation(excitation.ur10(), period=excitation.PERIOD, seed=0)

    assert excitation.violations(PROBLEM, motion) == 0
    assert excitation.violations(PROBLEM, replace(motion, weights=1.5 * motion.weights)) > 0


def test_the_condition_number_is_that_of_the_problem() -> None:
    motion = random_excitation(excitation.ur10(), period=excitation.PERIOD, seed=0)

    assert excitation.condition(PROBLEM, motion) == pytest.approx(PROBLEM.value(motion.weights), rel=1e-12)
    assert PROBLEM.samples == excitation.SAMPLES


def test_a_plan_says_when_it_was_how_good() -> None:
    assert PLAN.reached(17.0) == 0.3
    assert np.isnan(PLAN.reached(13.0))


def test_checks_hold_the_issues_limits() -> None:
    plans = [PLAN, replace(PLAN, time_limit=20.0)]
    checks = excitation.make_checks([FIRST], plans)
    assert all(check.ok for check in checks)
    assert [check.limit for check in checks] == [50.0, 14.5, 5.0, 0.0, 14.2, 20.0, 0.0]

    slow = replace(FIRST, seconds=0.41)
    worse = [
        replace(PLAN, value=14.6, seconds=5.1, violations=1),
        replace(PLAN, time_limit=20.0, value=14.3, seconds=20.1, violations=1),
    ]
    assert not any(check.ok for check in excitation.make_checks([slow], worse))


def test_tables_hold_every_row() -> None:
    """Below heads and rule, of the first of the tables that a wide one becomes."""
    first = excitation.first_table([FIRST, FIRST]).partition("\n\n")[0]
    assert "20000" in first
    assert first.count("\n") == 3
    assert excitation.plan_table([PLAN], [FIRST]).partition("\n\n")[0].count("\n") == 2


MINE = friction.Found(rms_to_true=0.05, r_squared=0.95, squares=9.0, seconds=0.004)
PEER = friction.Found(rms_to_true=0.05, r_squared=0.94, squares=9.1, seconds=0.8)


def test_friction_the_verb_is_there() -> None:
    assert "friction" in VERBS


def test_the_problem_is_as_described() -> None:
    made, noisy = friction.cases(20, 3), friction.cases(20, 3, like_paper=True)
    for case in made:
        assert case.data.n_rows == 120
        assert case.data.both_directions
    errors = np.concatenate([case.data.torque - case.true for case in made])
    # 2400 samples tell their deviation to 1.5 %, and 40 sets of 120 a mean R² to a few thousandths.
    assert errors.std() == pytest.approx(friction.NOISE, rel=0.06)
    r_squared = [1.0 - np.var(case.data.torque - case.true) / np.var(case.data.torque) for case in noisy]
    assert np.mean(r_squared) == pytest.approx(friction.R_SQUARED, abs=0.01)
    assert not np.allclose(made[0].true, made[1].true)


def test_found_is_held_against_the_true_curve() -> None:
    case = friction.cases(1, 0)[0]
    found = friction.ours(case)
    # Six parameters fitted to 120 rows err by 0.3 √(6/120) = 0.07.
    assert found.rms_to_true < 0.14
    assert found.squares == pytest.approx(120 * friction.NOISE**2, rel=0.4)
    assert friction.ours(replace(case, true=case.true + 1.0)).rms_to_true > 0.9


@pytest.mark.parametrize("count", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_over_many_truths_the_fit_is_as_near_to_the_curve_as_a_global_search(count: int) -> None:
    made = friction.cases(count, 11)
    pairs = [(friction.ours(case, 1), friction.global_search(case, seed)) for seed, case in enumerate(made)]
    error, _, _ = friction.make_checks(pairs, [(MINE, PEER)])
    assert error.ok, str(error)


def test_with_the_papers_noise_it_explains_no_less_than_the_swarm() -> None:
    for seed, case in enumerate(friction.cases(12, 5, like_paper=True)):
        assert friction.ours(case, 1).r_squared >= friction.swarm(case, seed).r_squared - friction.ROUNDING


@pytest.mark.parametrize(
    ("mine", "fails"),
    [
        ({}, []),
        ({"rms_to_true": 0.056}, [0]),
        ({"seconds": 0.011}, [1]),
        ({"r_squared": 0.939}, [2]),
    ],
)
def test_friction_checks_can_fail(mine: dict[str, float], fails: list[int]) -> None:
    pair = (replace(MINE, **mine), PEER)
    checks = friction.make_checks([pair] * 3, [(MINE, PEER), pair])
    assert [k for k, check in enumerate(checks) if not check.ok] == fails


def test_friction_tables_say_what_was_found() -> None:
    said = friction.search_table([(MINE, PEER), (replace(MINE, squares=10.0), PEER)])
    assert "0.9890 to 1.0989, above it for 1 of 2 joints" in said
    assert "particle swarm" in friction.swarm_table([(MINE, PEER)])


@pytest.mark.parametrize("minutes", [0.25, pytest.param(0.75, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [imported_log, recorded_log])
def test_logs_hold_the_motion_that_they_are_made_of(tmp_path: Path, make, minutes: float) -> None:
    """From the log's directory to its model, which has the parameters that made the log."""
    run = open_run(make(tmp_path / "run", minutes, seed=3))
    assert run.samples.n_samples == pytest.approx(60_000 * minutes, abs=64)
    assert run.samples.valid.all()
    model = fit(run)
    truth = base_parameters(run.robot).group(true_parameters(run.robot, 3))
    # Friction turns over within a sample, and the delay is known only as far as it is told: a little more than noise.
    assert np.sqrt(np.mean(((model.parameters - truth) / model.sigma) ** 2)) < 2.0
    assert model.error.total_relative < 0.02


def test_many_rows_are_solved_as_numpy_solves_them() -> None:
    rows, truth = many_rows(seed=1, samples=6000)
    raced = identification.race(rows, truth, rounds=1)
    assert (raced.rows, raced.columns) == (36_000, 61)
    assert raced.apart <= identification.APART
    assert raced.condition_apart <= identification.CONDITION_APART
    assert 0.5 < raced.off < 1.6  # 61 correlated deviations


def test_every_limit_can_be_missed() -> None:
    rows, truth = many_rows(seed=1, samples=6000)
    raced = replace(identification.race(rows, truth, rounds=1), rows=600_000, seconds=[0.1])
    short = {"samples": 600_000, "resident_MB": 280.0, "total_relative": 0.01}
    long = {**short, "samples": 3_600_000, "resident_MB": 290.0}
    good = identification.make_checks(
        raced,
        {"resident_MB": 280.0},
        {"imported": {identification.SHORT_MINUTES: short, identification.LONG_MINUTES: long}},
    )
    assert all(check.ok for check in good)
    bad = identification.make_checks(
        replace(raced, rows=1, columns=1, seconds=[1.0], apart=1.0, condition_apart=1.0),
        {"resident_MB": 400.0},
        {
            "imported": {
                identification.SHORT_MINUTES: short,
                identification.LONG_MINUTES: {"samples": 1, "resident_MB": 400.0, "total_relative": 1.0},
            }
        },
    )
    assert not any(check.ok for check in bad)


def test_a_process_that_fails_is_named() -> None:
    with pytest.raises(BenchmarkFailed, match=r"(?s)'fit' ended with 1: .*/nowhere is not a run"):
        in_own_process("fit", "/nowhere")


@pytest.mark.skipif(shutil.which("cc") is None and shutil.which("gcc") is None, reason="no C compiler (cc or gcc)")
def test_a_header_agrees_and_each_state_takes_its_time() -> None:
    times, apart = header.race(load_robot("cobot6"), seed=0, states=200, rounds=3)
    assert set(times) == {header.LINKS, header.FEEDFORWARD, header.PEER}
    assert max(apart.values()) <= header.DISAGREEMENT
    for of in times.values():
        assert of.in_a_row.shape == (3,)
        assert np.all(of.longest >= of.shortest)
    # More work takes longer, in every round but for interruptions.
    assert np.min(times[header.FEEDFORWARD].in_a_row) > np.min(times[header.LINKS].in_a_row) > 0.0


@pytest.mark.parametrize("name", predictor.ROBOTS)
def test_all_take_their_turn_and_agree(name: str) -> None:
    seconds, apart = predictor.race(load_robot(name), seed=0, rounds=3)
    assert set(seconds) == {predictor.OURS, predictor.REGRESSOR, predictor.PEER}
    assert all(each.shape == (3,) and (each > 0.0).all() for each in seconds.values())
    assert apart <= predictor.DISAGREEMENT
    # A regressor makes sixty columns for what the recursion sums up at once: no noise turns that around.
    assert np.min(seconds[predictor.OURS]) < np.min(seconds[predictor.REGRESSOR])


STARTS = (regressor.Start(1.0, 9.0, 2, 0), regressor.Start(1.0, 1.0, 0, 2))


def times_of(name: str, size: int, **seconds: float) -> regressor.Times:
    given = {regressor.PEER: 10.0, regressor.REGRESSOR: 1.0, regressor.TORQUES: 0.2, regressor.NORMAL: 1.0} | seconds
    return regressor.Times(name, size, {method: np.full(3, 1e-6 * size * value) for method, value in given.items()})


def test_regressor_the_verb_is_there() -> None:
    assert "regressor" in VERBS


@pytest.mark.parametrize(("arm", "rank"), list(zip(regressor.robots(), (36, 43), strict=True)), ids=["UR10", "Panda"])
def test_the_arms_are_those_that_others_time(arm, rank: int) -> None:
    """As many base parameters as their makers' URDF files give."""
    assert base_parameters(arm, drives=False).rank == rank


def test_the_peer_agrees_and_a_wrong_one_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = regressor.robots()[1]
    assert regressor.disagreement(arm, seed=3, n_samples=50) < 1e-13
    monkeypatch.setattr(regressor, "_ORDER", list(range(10)))
    assert regressor.disagreement(arm, seed=3, n_samples=50) > 1e-2


def test_regressor_without_pinocchio_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str):
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BenchmarkFailed, match=r"libgomp\.so\.1.*\./run test"):
        regressor.Peer(regressor.robots()[0])


def test_the_race_times_every_method_and_leaves_results() -> None:
    arm = regressor.robots()[0]
    times = regressor.race(arm, 100, seed=0, rounds=3)
    assert set(times.seconds) == {regressor.PEER, regressor.REGRESSOR, regressor.TORQUES, regressor.NORMAL}
    assert all(len(seconds) == 3 and (seconds > 0.0).all() for seconds in times.seconds.values())
    assert times.rate(regressor.PEER) == pytest.approx(100 / np.median(times.seconds[regressor.PEER]))


def test_ratios_are_of_the_same_round() -> None:
    """The machine slowed down by ten in two of three rounds, for both alike."""
    slowed = np.array([1.0, 10.0, 10.0])
    times = regressor.Times("arm", 1000, {regressor.PEER: 8.0 * slowed, regressor.REGRESSOR: slowed})
    assert times.ratio(regressor.PEER, regressor.REGRESSOR) == 8.0


@pytest.mark.slow
def test_the_second_process_has_the_kernels_from_disk() -> None:
    first, second = regressor.two_starts()
    assert (first.compiled, first.loaded) == (2, 0)
    assert (second.compiled, second.loaded) == (0, 2)
    assert second.calls_s < first.calls_s


def test_regressor_a_process_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.bench.regressor._PROGRAM", "raise SystemExit('no such robot')")
    with pytest.raises(BenchmarkFailed, match="ended with 1: no such robot"):
        regressor._start("unused")


def test_regressor_checks_hold_the_issues_limits() -> None:
    good = [times_of("UR10", size) for size in (1_000, 10_000, 100_000)]
    checks = regressor.make_checks(good, {"UR10": 1e-14}, STARTS)
    assert all(check.ok for check in checks)
    assert len(checks) == 3 + 1 + 3
    assert [check.limit for check in checks if "Pinocchio" in check.name] == [1.0, 1.0, 1.0, 1e-10]

    bad = [times_of("UR10", 1_000, regressor=10.1), times_of("UR10", 10_000)]
    bad.append(times_of("UR10", 100_000, **{regressor.PEER: 0.9}))
    recompiled = (STARTS[0], regressor.Start(1.0, 1.0, 1, 1))
    failed = {check.name for check in regressor.make_checks(bad, {"UR10": float("nan")}, recompiled) if not check.ok}
    assert failed == {
        "UR10, 1000: regressor, times as fast as Pinocchio",
        "UR10, 100000: regressor, times as fast as Pinocchio",
        "UR10: from Pinocchio",
        "kernels the second process compiled",
        "kernels it had from disk",
    }


def test_tables_hold_every_batch() -> None:
    text = regressor.times_table([times_of("UR10", 1_000), times_of("Panda", 10_000)])
    assert "UR10, 1000" in text
    assert "Panda, 10000" in text
    assert regressor.starts_table(STARTS).count("\n") == 3


def test_the_arms_regressors_are_of_their_shape() -> None:
    for arm in regressor.robots():
        still = np.zeros((2, arm.n_joints))
        assert model.regressor(arm, still, still, still).shape == (2 * arm.n_joints, 10 * arm.n_joints)


# Logs


def test_a_log_is_fitted_by_default_about_as_well_as_by_the_best_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "CUTOFFS_HZ", (2.0, 16.0))
    monkeypatch.setattr(logs, "ESTIMATORS", logs.ESTIMATORS[:2])
    short = next(fault for fault in logs.FAULTS if fault.name == "few rows")
    outcome = logs.outcome(short, 0)
    assert outcome.options in ("wls, 2 Hz", "wls, 16 Hz", "map, 2 Hz", "map, 16 Hz")
    # Noise is 2 % of the torque, and the file's bodies are off by up to 30 %.
    assert 0.001 < outcome.best < 0.2
    assert outcome.ratio < 1.5


def test_an_arm_that_is_off_within_its_tolerances_is_not_called_right_by_mistake() -> None:
    rng = np.random.default_rng(3)
    outcome = calibration.outcome("within", 3, lambda n: calibration.drawn(n, Tolerances(), rng))
    assert not outcome.wrong
    # One arm's 58 parameters share a handful of faults: 2 σ hold 95 ± 10 %; noise alone far fewer.
    assert calibration.share(outcome.deviations) > 0.85
    assert calibration.share(outcome.repeatability) < 0.95
    assert "within" in calibration.outcome_table([outcome])


@pytest.mark.slow
def test_pushes_of_a_recorded_arm_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short form of the benchmark: boards' converters, encoders and filters, and a model identified by them."""
    monkeypatch.setattr(observer, "SECONDS", 8.0)
    subject = observer.watched(3)
    found = observer.pushed_joints(subject, 4)
    assert [push.named for push in found] == [push.joint for push in found]
    assert all(0.0 < push.latency <= observer.LATEST_S for push in found)
    assert not pushes(subject.observe(5), subject.thresholds, subject.arm.robot.joint_names)
    assert "named right" in observer.pushes_table(subject, found)


def test_a_fault_moves_the_arm_it_is_of() -> None:
    arm = arms(1, 0)[0]
    n = arm.robot.n_joints
    right = calibration.simulated_log(arm, calibration.none(n), 0).samples
    off = calibration.simulated_log(arm, calibration.none(n)._replace(zero=np.full(n, 0.01)), 0).samples
    np.testing.assert_allclose(right.motor_position - off.motor_position, 0.01, atol=1e-12)
    larger = calibration.simulated_log(arm, calibration.none(n)._replace(gain=np.full(n, 0.2)), 0).samples
    assert right.motor_torque is not None
    assert larger.motor_torque is not None
    # The noise is the same, so that 0.2 of the torque without it is between.
    assert np.std(larger.motor_torque - right.motor_torque) == pytest.approx(0.2 * np.std(right.motor_torque), rel=0.02)
    longer = calibration.displaced(arm.robot, calibration.none(n)._replace(length=np.full((n, 3), 0.005)))
    assert longer.joints[2].origin == pytest.approx(np.array(arm.robot.joints[2].origin) + 0.005)


def test_the_default_is_held_against_a_grid_in_hindsight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindsight, "CUTOFFS_HZ", (0.2, 16.0))
    monkeypatch.setattr(hindsight, "STRENGTHS", (1.0, 100.0))
    arm, rng = logs.arm_of(0), np.random.default_rng(0)
    fault = logs.Fault("nothing", seconds=6.0, rate_Hz=100.0)
    training, test = (
        logs.simulated_log(arm, fault, random_excitation(arm.robot, 5, 6.0, seed), rng) for seed in (1, 2)
    )
    row = hindsight.hindsight(SPLITS[2], training, test)
    # Noise is 2 % of the torque; 0.2 Hz lies below the motion, and leaves too few rows.
    assert (row.cutoff_Hz, row.split) == (16.0, "TIAGo")
    assert 0.02 < row.best < 0.2
    assert -0.2 < row.loss < 0.5


def test_a_refused_log_counts_as_one_that_is_missed() -> None:
    refused = logs.Outcome("few rows", 0, float("nan"), 0.01, "wls, 2 Hz")
    assert not refused.ratio <= logs.LARGEST_RATIO
    assert "few rows" in logs.outcome_table([refused])


def test_faults_are_in_the_log() -> None:
    arm, rng = arms(1, 0)[0], np.random.default_rng(0)
    played = random_excitation(arm.robot, 5, 4.0, 0)
    whole = logs.simulated_log(arm, logs.Fault("nothing", seconds=4.0), played, rng)
    gappy = logs.simulated_log(arm, logs.Fault("gaps", seconds=4.0, gaps=6.0), played, rng)
    late = logs.simulated_log(arm, logs.Fault("delay", seconds=4.0, delay=0.1), played, rng)
    assert whole.samples.valid.all()
    assert 20 <= np.count_nonzero(np.diff(gappy.samples.valid[:, 0].astype(int)) == -1) <= 24
    shift = round(0.1 / whole.samples.sample_period)
    np.testing.assert_allclose(
        late.samples.motor_position[shift:], whole.samples.motor_position[:-shift], atol=3e-5
    )  # a count of the encoder
