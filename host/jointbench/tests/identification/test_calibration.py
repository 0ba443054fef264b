"""What a calibration known to a tolerance does to error bars and verdicts, and zeros that gravity shows.

Identification until it is precise, on simulated recordings: when it ends, what it says, and what it comes to.
"""

import dataclasses
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, FitError
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import FitSettings, Model, compare, fit, load_model
from jointbench.identification.calibration import tolerances_of
from jointbench.identification.calibration_rows import CalibrationRows, effects_of
from jointbench.identification.rows import MotionRows
from jointbench.identification.sequential_design import PATIENCE, Precision, SequentialIdentification, identify_until
from jointbench.model import Robot, Tolerances, base_parameters, inverse_dynamics
from jointbench.recording import Run
from jointbench.signals import Motion
from jointbench.tests.identification.synthetic import arm, as_log, excitation, synthetic_run, truth

ARM = arm(3)
BASE = base_parameters(ARM)
DEGREE = np.pi / 180.0
SETTINGS = FitSettings(cutoff_Hz=20.0, delay=0.0)


def log(
    seed: int, *, robot: Robot = ARM, zeros: Array | None = None, gains: Array | None = None, noise: float = 0.05
) -> Run:
    """A log whose recorded positions lack `zeros` [rad] and whose torques are too large by `gains`."""
    run = as_log(synthetic_run(robot, motion_seed=seed, noise_seed=seed, repeats=1, noise=noise))
    assert run.samples.motor_torque is not None
    samples = dataclasses.replace(
        run.samples,
        motor_position=run.samples.motor_position - (0.0 if zeros is None else zeros),
        motor_torque=run.samples.motor_torque * (1.0 + (0.0 if gains is None else gains)),
    )
    return dataclasses.replace(run, samples=samples, sha256=f"{seed:064d}")


def fitted(run: Run, **tolerances: float) -> Model:
    settings = dataclasses.replace(SETTINGS, tolerances=dict(tolerances) if tolerances else None)
    return fit(run, settings=settings, friction="coulomb_viscous")


def test_columns_are_the_torque_that_a_fault_adds() -> None:
    """Against the dynamics of an arm that is off by one standard deviation: it is so small that all is linear."""
    tolerances = Tolerances(zero=1e-4, length=1e-4, axis=1e-4, mounting=1e-4, gear_ratio=1e-4, clock=1e-4)
    effects, full = effects_of(ARM, tolerances, "motor"), truth(ARM)
    q, dq, ddq = excitation(ARM, 1).evaluate(np.linspace(1.0, 9.0, 40))
    rows = CalibrationRows(MotionRows(BASE, q, dq, ddq, q), BASE, BASE.group(full), full, effects)
    still = inverse_dynamics(ARM, q, dq, ddq, full[:30])
    columns = dict(zip(effects, rows.columns(Motion(q, dq, ddq), still), strict=True))

    def torque(robot: Robot = ARM, q: Array = q) -> Array:
        return inverse_dynamics(robot, q, dq, ddq, full[:30])

    for effect, column in columns.items():
        if effect.kind == "zero":
            moved = q.copy()
            moved[:, effect.place] += 1e-4
            expected = torque(q=moved) - still
        elif effect.kind == "length":
            joints = list(ARM.joints)
            x, y, z = np.array(joints[effect.place].origin) + 1e-4 * np.array(effect.axis)
            joints[effect.place] = dataclasses.replace(joints[effect.place], origin=(x, y, z))
            expected = torque(dataclasses.replace(ARM, joints=tuple(joints))) - still
        elif effect.kind == "mounting":
            x, y, z = np.array(ARM.gravity) - 1e-4 * np.cross(effect.axis, ARM.gravity)
            expected = torque(dataclasses.replace(ARM, gravity=(x, y, z))) - still
        elif effect.kind == "torque":
            expected = np.where(np.arange(3) == effect.place, 0.05 * still, 0.0)
        else:
            continue  # gear ratios and the clock change what drives add, too
        # Second order in 1e-4, and differences of torques of some 100 N·m in double precision.
        np.testing.assert_allclose(column, expected, atol=2e-3 * np.abs(expected).max() + 1e-9)
    assert {effect.kind for effect in effects} == {
        "zero", "length", "axis", "mounting", "torque", "gear ratio", "clock",
    }  # fmt: skip


def test_a_torque_constant_s_tolerance_is_in_every_parameter() -> None:
    """All torques 8 % too large: every parameter is, too, and only the error bars with a tolerance know."""
    run = log(1, gains=np.full(3, 0.08))
    exact = fit(run, settings=dataclasses.replace(SETTINGS, tolerances="none"), friction="coulomb_viscous")
    model = fitted(run)  # 5 % by default
    assert exact.calibration is None
    coulomb = model.names.index("j1.coulomb")
    away = model.parameters[coulomb] / BASE.group(truth(ARM))[coulomb] - 1.0
    assert away == pytest.approx(0.08, abs=0.01)
    assert abs(exact.deviations(truth(ARM))[coulomb]) > 8.0
    # 8 of 5 per cent are 1.6 σ; other joints' constants and the data's noise make the bar a little wider.
    assert 1.0 < abs(model.deviations(truth(ARM))[coulomb]) < 1.7
    assert "torque constants" in model.parameter_verdicts[coulomb].reason


def test_error_bars_hold_the_truth_of_arms_that_are_off() -> None:
    """Zeros by 0.2°, torque constants by 5 %, drawn anew each time, as the default tolerances say."""
    rng = np.random.default_rng(5)
    runs = [
        log(seed, zeros=0.2 * DEGREE * rng.standard_normal(3), gains=0.05 * rng.standard_normal(3)) for seed in range(4)
    ]
    models = [fitted(run) for run in runs]
    z = np.concatenate([model.deviations(truth(ARM)) for model in models])
    blind = np.concatenate(
        [(model.parameters - BASE.group(truth(ARM))) / np.sqrt(np.diag(model.repeatability)) for model in models]
    )
    # Four fits of some 20 parameters that share their errors: 2 σ hold 95 ± 5 %; noise alone far fewer.
    assert np.mean(np.abs(z) < 2.0) > 0.88
    assert np.mean(np.abs(blind) < 2.0) < 0.8


@pytest.mark.slow
def test_gravity_shows_zeros() -> None:
    """Joint 2 of six carries the arm: its zero, 1.5° off, is fitted; joint 1 turns about the vertical: nothing tells.

    Of three joints' zeros nothing is told either: links whose frames are turned make up for them.
    """
    whole, off = arm(6), np.array([0.0, 1.5, 0.0, 0.0, 0.0, 0.0]) * DEGREE
    settings = dataclasses.replace(
        SETTINGS,
        interval=(0.0, 6.0),
        tolerances={"zero_deg": 1.0, "axis_deg": 0.02, "length_mm": 0.2, "mounting_deg": 0.02},
    )
    run = log(2, robot=whole, zeros=off, noise=0.003)
    model = fit(run, settings=settings, friction="coulomb_viscous")
    assert model.calibration is not None
    zeros = model.calibration.zeros
    assert zeros is not None
    assert zeros.is_told[1]
    assert not zeros.is_told[0]
    assert abs(zeros.values[1] - off[1]) < 3.0 * zeros.sigma[1]
    assert model.settings.zeros == pytest.approx(zeros.values)
    assert any("zero of j2" in note for note in model.notes)
    # 2 σ hold all of some 60 parameters here, as the tolerances of the others are far larger than what is off.
    assert np.mean(np.abs(model.deviations(truth(whole))) < 2.0) > 0.95
    blind, right = (
        fit(run, settings=dataclasses.replace(settings, tolerances="none"), friction="coulomb_viscous"),
        base_parameters(whole).group(truth(whole)),
    )
    errors = [np.sqrt(np.mean(((each.parameters - right) / blind.sigma) ** 2)) for each in (model, blind)]
    assert errors[0] < 0.9 * errors[1]


@pytest.mark.parametrize(("off", "is_named"), [(0.4, True), (0.03, False)])
def test_a_tolerance_that_the_recording_contradicts_is_taken_larger(off: float, is_named: bool) -> None:
    """Joint 2 feels link 3 through its own motor: with a constant off by eight times its tolerance the two disagree."""
    model = fitted(log(8, gains=np.array([0.0, 0.0, off])), torque_constant_percent=5.0)
    assert model.calibration is not None
    assert any("contradicts the tolerance of torque constants" in note for note in model.notes) == is_named
    assert (model.calibration.by_kind["torque"][0] > 0.1 * model.parameters[0]) == is_named


def test_right_zeros_are_left_alone() -> None:
    model = fitted(log(4))
    assert model.calibration is not None
    assert model.calibration.zeros is None
    assert model.settings.zeros is None


def test_recordings_of_boards_count_as_exact_unless_the_file_says_otherwise() -> None:
    run = synthetic_run(ARM, motion_seed=1, noise_seed=1)
    assert fit(run, settings=SETTINGS).calibration is None
    declared = dataclasses.replace(ARM, tolerances=Tolerances(torque_constant=0.02))
    model = fit(run, declared, settings=SETTINGS)
    assert model.calibration is not None
    coulomb = model.names.index("j1.coulomb")
    # Nothing else is known so badly that matters to it: 2 % of its value.
    assert model.sigma[coulomb] == pytest.approx(0.02 * model.parameters[coulomb], rel=0.2)


def test_shares_of_a_variance_make_one_and_a_file_keeps_them(tmp_path: Path) -> None:
    model = fitted(log(5), clock_percent=1.0)
    assert model.calibration is not None
    assert sum(model.calibration.shares(0)) == pytest.approx(1.0)
    again = load_model(model.save(tmp_path / "model.json"))
    assert again.calibration is not None
    assert again.calibration.tolerances == model.calibration.tolerances
    assert again.parameter_verdicts == model.parameter_verdicts
    np.testing.assert_allclose(again.repeatability, model.repeatability)


def test_two_recordings_of_one_arm_share_their_calibration() -> None:
    """8 % more friction is less than 2 σ of calibration, and far more than what noise makes of it."""
    a, b = fitted(log(6)), fitted(log(7, gains=np.array([0.08, 0.0, 0.0])))
    comparison = compare(a, b)
    assert comparison.answer == "different"
    assert comparison.sigma[0] < a.sigma[0]


def test_tolerances_of_the_settings_stand_over_the_file_s() -> None:
    declared = dataclasses.replace(ARM, tolerances=Tolerances(zero=1.0 * DEGREE, clock=0.02))
    merged = tolerances_of(declared, {"zero_deg": 0.1, "j2": {"torque_constant_percent": 1.0}}, is_log=False)
    assert merged is not None
    assert merged.of("j1").zero == pytest.approx(0.1 * DEGREE)
    assert merged.clock == 0.02
    assert (merged.of("j2").torque_constant, merged.of("j1").torque_constant) == (0.01, 0.05)
    assert tolerances_of(declared, "none", is_log=True) is None
    assert tolerances_of(ARM, None, is_log=False) is None


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"zero_degrees": 0.5}, "unknown key 'zero_degrees'; did you mean 'zero_deg'"),
        ({"zero_deg": -0.5}, "zero_deg = -0.5 must not be below 0"),
        ({"j9": {"zero_deg": 1.0}}, "unknown key 'j9'"),
        ({"j2": {"length_mm": 1.0}}, "unknown key 'length_mm'"),
    ],
)
def test_wrong_tolerances_are_named(asked: dict[str, object], message: str) -> None:
    with pytest.raises(FileError, match=message):
        tolerances_of(ARM, asked, is_log=True)


def test_settings_that_are_none_are_refused() -> None:
    with pytest.raises(FitError, match=r"tolerances = 3\.0 must be a table, such as"):
        FitSettings.from_dict({"tolerances": 3.0})
    with pytest.raises(FitError, match="zeros has 2 values; give one for each of the 3 joints"):
        fit(log(1), settings=dataclasses.replace(SETTINGS, zeros=(0.0, 0.1)))


PLANNED_ARM = arm(2)
PIECE_S = 3.2


def play(excitation: Excitation, number: int) -> Run:
    return synthetic_run(PLANNED_ARM, motion_seed=0, noise_seed=number, repeats=1, plan=excitation)


def identified(wanted: float, most: float) -> SequentialIdentification:
    return identify_until(PLANNED_ARM, play, wanted, most=most, piece=PIECE_S, plan_time=0.3)


@pytest.fixture(scope="module")
def ten_percent() -> SequentialIdentification:
    return identified(0.1, 48.0)


@pytest.mark.slow
def test_it_ends_when_all_that_can_be_is_known(ten_percent: SequentialIdentification) -> None:
    precision = ten_percent.precision
    assert precision.is_reached
    assert not ten_percent.precisions[-2].is_reached
    assert ten_percent.motion == pytest.approx(PIECE_S * len(ten_percent.runs))
    # Five standard deviations: one in two million of so many draws.
    assert np.max(np.abs(ten_percent.model.deviations(truth(PLANNED_ARM)))) < 5.0


@pytest.mark.slow
def test_the_worst_is_known_better_than_by_as_much_random_motion(ten_percent: SequentialIdentification) -> None:
    """Pieces are planned for what is known worst; random ones are not."""
    size = ten_percent.precision.size
    worst = ten_percent.precision.relative_sigma.max()
    n = len(ten_percent.runs)
    by_chance = [
        (
            fit([play(random_excitation(PLANNED_ARM, period=PIECE_S, seed=10 * draw + k), k) for k in range(n)]).sigma
            / size
        ).max()
        for draw in range(3)
    ]
    assert worst < min(by_chance)


@pytest.mark.slow
def test_what_the_time_does_not_allow_is_out_of_reach() -> None:
    identification = identified(0.002, PIECE_S * (PATIENCE + 2))
    precision = identification.precision
    assert precision.is_out_of_reach.any()
    assert precision.is_reached or len(identification.runs) == PATIENCE + 2
    missed = np.flatnonzero(precision.is_out_of_reach)
    assert np.all(precision.time_needed(identification.motion)[missed] > identification.motion)
    assert np.all(precision.at_best[missed] > 0.002)


def precision_of(relative_sigma: list[float], missed: list[int]) -> Precision:
    values = np.array(relative_sigma)
    names = tuple(f"p{k}" for k in range(len(values)))
    confused = (("p0", 0.5),) * len(values)
    return Precision(
        names, np.ones(len(values)), values, values, np.ones(len(values)), 1.0, np.array(missed), confused, 0.1
    )


def test_a_parameter_is_given_up_after_some_judgements_and_counts_again_once_it_is_known() -> None:
    precision = precision_of([0.05, 0.5, 0.5, 0.05], [0, PATIENCE - 1, PATIENCE, PATIENCE])
    assert precision.is_known.tolist() == [True, False, False, True]
    assert precision.is_out_of_reach.tolist() == [False, False, True, False]
    assert not precision.is_reached
    assert replace(precision, missed_before=np.full(4, PATIENCE)).is_reached


def test_the_time_that_is_needed_grows_with_the_square_of_what_is_missing() -> None:
    assert precision_of([0.05, 0.1, 0.4], [0, 0, 0]).time_needed(20.0).tolist() == pytest.approx([20.0, 20.0, 320.0])


@pytest.mark.parametrize(("wanted", "most"), [(0.0, 60.0), (1.5, 60.0), (0.1, 3.0)])
def test_what_cannot_be_is_refused_before_anything_moves(wanted: float, most: float) -> None:
    def must_not_move(excitation: Excitation, number: int) -> Run:
        raise AssertionError(number)

    with pytest.raises(FitError, match=r"give a share between 0 and 1|do not hold one piece of 3\.2 s"):
        identify_until(PLANNED_ARM, must_not_move, wanted, most=most, piece=PIECE_S)
