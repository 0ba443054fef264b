"""Springs and other torques beside links and drives: fitted, judged, predicted, kept in files, or refused.

Robots with a joint that is measured but not modelled: the others are identified while it moves.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FileError, FitError, ShapeError
from jointbench.excitation import plan_excitation
from jointbench.identification import Model, fit, load_model, validate
from jointbench.identification.model_file import plain, robot_from, robot_values
from jointbench.identification.predictor import Predictor
from jointbench.model import (
    Compensation,
    Coupling,
    Drive,
    Robot,
    base_parameters,
    model_columns,
    sine_spring,
    spring,
    with_compensations,
)
from jointbench.recording import Run
from jointbench.results import FullModel, export
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth
from jointbench.tests.results.test_c_header import assert_same_currents, in_c, needs_compiler

PLAIN = arm(3)
SPRUNG = with_compensations(PLAIN, spring("return", "j3"), sine_spring("balancer", "j2"))
OF_SPRINGS = np.array([12.0, -3.0, 20.0, -5.0])
"""Stiffness and preload, sine and cosine: some tenths of the joints' torques."""
SEEDS = range(6)


def stretch(q: Array, dq: Array, ddq: Array) -> Array:
    """Of a rubber band over two joints."""
    both = q.sum(axis=1)
    return np.stack([both, both**3], axis=1)[:, None].repeat(2, axis=1)


BAND = Compensation("band", ("j2", "j3"), ("stiffness", "hardening"), stretch)


def recorded(seed: int) -> Run:
    parameters = np.concatenate([truth(SPRUNG), OF_SPRINGS])
    return synthetic_run(SPRUNG, motion_seed=seed, noise_seed=seed, full_parameters=parameters)


@pytest.fixture(scope="module")
def model() -> Model:
    return fit(recorded(1))


def test_springs_are_recovered_with_honest_error_bars() -> None:
    """Errors are those the covariance says, which of an efficient estimate is the Cramér-Rao bound."""
    values = np.concatenate([truth(SPRUNG), OF_SPRINGS])
    models = [fit(recorded(seed)) for seed in SEEDS]
    assert models[0].names[-1] == "return.stiffness"
    deviations = np.array([each.deviations(values) for each in models])
    # Of 156 deviations, some 30 of them independent, one in twenty is expected outside: three times that is improbable.
    assert np.mean(np.abs(deviations) <= 2.0) >= 0.85
    own = deviations[:, models[0].names.index("return.stiffness")]
    assert np.abs(own).max() < 4.0
    # Six draws: chi-square of the spring's own deviations lies below this in 999 of 1000.
    assert np.sum(own**2) < 22.5
    assert models[0].is_identified("return.stiffness")
    assert models[0].sigma[-1] < 0.02 * OF_SPRINGS[0]


def test_a_spring_that_gravity_hides_is_told_in_sum(model: Model) -> None:
    assert "balancer.sine acts as j2.mcy in every motion, and is identifiable only in sum with that" in model.notes
    with pytest.raises(FitError, match=r"no base parameter is led by 'balancer\.sine'; it is part of 'j2\.mcy"):
        model.value("balancer.sine")


@needs_compiler
def test_the_headers_feed_forward_keeps_the_preload(model: Model, tmp_path: Path) -> None:
    """A spring's preload and the offset of its joint's drive are one base parameter; the arm needs that torque."""
    assert any("preload" in name and "offset" in name for name in model.base.names)
    assert_same_currents(model, tmp_path, 0.02)


def test_without_the_block_the_torque_is_not_explained(model: Model) -> None:
    """A gravity-like spring is taken up by a first moment; a linear one is not."""
    without = fit(recorded(1), PLAIN)
    other = recorded(2)
    with_it, bare = validate(model, other), validate(without, dataclasses.replace(other, robot=PLAIN))
    assert with_it.relative.max() < 0.01
    assert bare.relative[2] > 5.0 * with_it.relative[2]


def test_a_sample_at_a_time_is_predicted_alike(model: Model) -> None:
    moves = np.random.default_rng(0).standard_normal((3, 10, 3))
    for each in (model, fit(recorded(1), friction={"j3": "stribeck+load"})):
        expected = each.predict(*moves)
        predict = Predictor.of(each)
        found = np.array([predict(*sample) for sample in zip(*moves, strict=True)])
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
    with pytest.raises(ShapeError, match=r"compensation_parameters has shape \(0,\); robot 'cobot6' needs \(4,\)"):
        Predictor(SPRUNG, np.zeros(30), np.zeros(12))


@needs_compiler
def test_the_header_has_springs(model: Model, tmp_path: Path) -> None:
    moves = np.random.default_rng(0).standard_normal((3, 10, 3))
    torque, expected = in_c(model, tmp_path), model.predict(*moves)
    found = np.array([torque(*each) for each in zip(*moves, strict=True)])
    # The header's own limit for double precision.
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


def test_springs_stay_beside_possible_bodies(model: Model) -> None:
    found = model.physical
    assert found.compensation_parameters.shape == (4,)
    assert found.unchanged
    assert found.compensation_parameters[0] == pytest.approx(model.value("return.stiffness"), rel=1e-6)
    np.testing.assert_allclose(found.base_parameters, model.parameters, atol=1e-5 * np.abs(model.parameters).max())


def test_files_of_other_programs_have_them_or_say_that_they_have_not(model: Model, tmp_path: Path) -> None:
    values = json.loads(export(model, tmp_path / "model.json").read_text(encoding="utf-8"))
    by_name = {each["name"]: each for each in values["compensation_parameters"]}
    assert by_name["return.stiffness"]["value"] == pytest.approx(model.value("return.stiffness"), rel=1e-6)
    assert by_name["return.stiffness"]["unit"] == "N·m/rad"
    assert values["robot"]["compensations"][1] == {
        "name": "balancer", "kind": "sine_spring", "joints": ["j2"], "parameters": ["sine", "cosine"],
    }  # fmt: skip
    for suffix in (".urdf", ".xml"):
        text = export(model, tmp_path / f"arm{suffix}").read_text(encoding="utf-8")
        assert "compensation return (spring) at j3 with stiffness 1" in text
        assert "its torque is not here" in text
    known = FullModel.of_robot(SPRUNG)
    assert np.isnan(known.compensation_parameters).all()


def test_a_model_file_keeps_springs(model: Model, tmp_path: Path) -> None:
    again = load_model(model.save(tmp_path / "model.json"))
    assert again.robot == model.robot
    moves = np.random.default_rng(0).standard_normal((3, 10, 3))
    np.testing.assert_array_equal(again.predict(*moves), model.predict(*moves))


def test_a_function_of_ones_own(tmp_path: Path) -> None:
    robot = with_compensations(PLAIN, BAND)
    true = np.array([10.0, 4.0])
    parameters = np.concatenate([truth(robot), true])
    model = fit(synthetic_run(robot, motion_seed=3, noise_seed=3, full_parameters=parameters))
    assert model.names[-2:] == ("band.stiffness", "band.hardening")
    # Three σ of two parameters, and tight enough to mean something.
    assert np.abs((model.parameters[-2:] - true) / model.sigma[-2:]).max() < 3.0
    assert (model.sigma[-2:] < 0.05 * true).all()
    with pytest.raises(FitError, match="compensation 'band' of robot 'cobot6' is a Python function"):
        export(model, tmp_path / "arm.h")
    path = model.save(tmp_path / "model.json")
    with pytest.raises(FileError, match=r"a function that no file holds; give it: load_model\(path, compensations"):
        load_model(path)
    other = dataclasses.replace(BAND, joints=("j1", "j2"))
    with pytest.raises(FileError, match="a function that no file holds"):
        load_model(path, compensations=[other])
    assert load_model(path, compensations=[BAND]).robot == robot


def test_what_simulates_the_arm_refuses_them() -> None:
    with pytest.raises(FitError, match="compensation 'return' acts on it, which the simulation does not have"):
        fit(recorded(1), estimator="output_error")


@pytest.mark.parametrize("estimator", ["bayes", "ridge", "physical"])
def test_other_estimators_know_them(estimator: str) -> None:
    found = fit(recorded(1), estimator=estimator)
    assert found.value("return.stiffness") == pytest.approx(OF_SPRINGS[0], rel=0.05)


def test_plans_tell_them_apart() -> None:
    """A search that sees their columns finds a smaller condition number than one that does not."""
    plan = plan_excitation(SPRUNG, harmonics=3, period=10.0, samples=60, starts=1, iterations=20, seed=0)
    blind = plan_excitation(PLAIN, harmonics=3, period=10.0, samples=60, starts=1, iterations=20, seed=0)
    motion = blind.evaluate(np.linspace(0.0, 10.0, 60, endpoint=False))
    columns = base_parameters(SPRUNG).project(model_columns(SPRUNG, *motion)[0])
    assert plan.condition_number < np.linalg.cond(columns)


PASSIVE = 2


def passive_arm() -> Robot:
    """Three joints, the last of which is moved by hand; its link is known to weigh something, and told."""
    whole = arm(3)
    joints = (*whole.joints[:PASSIVE], dataclasses.replace(whole.joints[PASSIVE], passive=True))
    return dataclasses.replace(whole, joints=joints)


def recorded_passive(motion_seed: int, torque_there: float = 3.0) -> Run:
    """As the arm with three modelled joints would record it, but for a torque at the third that means nothing."""
    run = synthetic_run(arm(3), motion_seed=motion_seed, noise_seed=motion_seed)
    torque = run.samples.motor_torque
    assert torque is not None
    spoiled = torque.copy()
    spoiled[:, PASSIVE] = torque_there
    samples = dataclasses.replace(run.samples, motor_torque=spoiled)
    return dataclasses.replace(run, robot=passive_arm(), samples=samples)


@pytest.fixture(scope="module")
def passive_model() -> Model:
    return fit(recorded_passive(0))


def test_the_modelled_joints_are_identified(passive_model: Model) -> None:
    assert np.abs(passive_model.deviations(truth(passive_arm()))).max() < 4.0
    assert passive_model.rows[PASSIVE] == 0
    assert not any(name.startswith("j3.coulomb") for name in passive_model.names)
    assert [verdict.word for verdict in passive_model.joint_verdicts] == ["identified", "identified", "passive"]
    assert passive_model.verdict.word == "identified"


@pytest.mark.parametrize("torque_there", [-100.0, np.nan])
def test_what_was_recorded_as_its_torque_makes_no_difference(passive_model: Model, torque_there: float) -> None:
    np.testing.assert_array_equal(fit(recorded_passive(0, torque_there)).parameters, passive_model.parameters)


def test_it_is_judged_by_the_others_on_another_motion(passive_model: Model) -> None:
    check = validate(passive_model, recorded_passive(1))
    assert check.verdict.word == "identified"
    assert check.joint_verdicts[PASSIVE].word == "passive"
    assert check.error_all.relative[:PASSIVE].max() < 0.1
    assert np.isnan(check.error_all.relative[PASSIVE])
    assert not check.predicted[:, PASSIVE].any()


def test_a_model_file_keeps_it(passive_model: Model, tmp_path: Path) -> None:
    again = load_model(passive_model.save(tmp_path / "passive_model.json"))
    assert again.robot == passive_model.robot
    assert again.joint_verdicts == passive_model.joint_verdicts


def test_a_model_file_keeps_bases_that_move_and_motors_beyond_one_for_each_joint() -> None:
    whole = arm(3)
    drive = Drive("second", "j1", "direct", -80.0, 0.1, 5.0, link_encoder=True, motor_coulomb=0.1)
    robot = dataclasses.replace(
        whole,
        couplings=(Coupling("twins", ("j1",), ((101.0,), (-80.0,)), (drive,)),),
        base_link=dataclasses.replace(whole.joints[0].link, name="trunk"),
        part_faults=(("lid", "mass 0 kg is not positive"),),
    )
    assert robot_from(plain(robot_values(robot))) == robot
