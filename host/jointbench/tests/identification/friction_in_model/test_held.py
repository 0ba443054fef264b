"""Friction that an experiment told is held, and all else fitted beside it, with error bars that know of both."""

from dataclasses import replace

import numpy as np
import pytest

import jointbench as jb
from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification import Model, load_model
from jointbench.identification.friction import FrictionData, FrictionFit, fit_friction, friction_law
from jointbench.tests.identification.friction_in_model.law_runs import (
    Friction,
    law_run,
    loaded,
    makkar,
    truth_without_friction,
)
from jointbench.tests.identification.synthetic import arm

ROBOT = arm(2)
MAKKAR = [4.0, 6.0, 9.0, 30.0, 5.0, 12.0]
LOADED = [5.0, 8.0, 0.08]
SPEEDS = np.radians(np.arange(1.0, 60.0))


def experiment(law: str, friction: Friction, noise: float, seed: int = 0) -> FrictionFit:
    """What a sweep of speeds under loads of all kinds would tell."""
    rng = np.random.default_rng(seed)
    load = rng.uniform(0.0, 60.0, len(SPEEDS))
    data = FrictionData(SPEEDS, friction(SPEEDS, load) + noise * rng.standard_normal(len(SPEEDS)), load)
    return fit_friction(data, friction_law(law, data))


def errors(model: Model, joints: dict[str, Friction]) -> Array:
    """Of the base parameters that are told."""
    truth = model.base.group(truth_without_friction(ROBOT, joints))
    return (model.parameters - truth)[np.isfinite(model.sigma)]


def test_base_parameters_come_back_beside_a_known_law() -> None:
    joints = dict.fromkeys(ROBOT.joint_names, makkar(*MAKKAR))
    known = experiment("makkar", makkar(*MAKKAR), noise=1e-6)
    runs = [law_run(ROBOT, joints, motion_seed=1, noise_seed=k) for k in range(3)]
    models = [jb.fit(run, friction=dict.fromkeys(ROBOT.joint_names, known)) for run in runs]
    in_sigma = [errors(model, joints) / model.sigma[np.isfinite(model.sigma)] for model in models]
    # Some 30 errors, of which half are independent: their rms is 1 ± 0.2, and Newey and West's σ err by a tenth.
    assert 0.6 < float(np.sqrt(np.mean(np.square(in_sigma)))) < 1.5
    friction = models[0].friction
    assert friction is not None
    np.testing.assert_array_equal(friction.parameters, np.tile(known.parameters, 2))


def test_load_friction_is_held_too() -> None:
    joints = dict.fromkeys(ROBOT.joint_names, loaded(*LOADED))
    known = experiment("coulomb_viscous+load", loaded(*LOADED), noise=1e-6)
    run = law_run(ROBOT, joints, motion_seed=1, noise_seed=1)
    model = jb.fit(run, friction=dict.fromkeys(ROBOT.joint_names, known))
    deviation = errors(model, joints) / model.sigma[np.isfinite(model.sigma)]
    assert float(np.sqrt(np.mean(deviation**2))) < 2.0  # one recording: ten errors of size 1
    assert np.all(model.error.relative < 0.02)


def test_a_vague_experiment_makes_wide_error_bars() -> None:
    """Errors that come from the experiment alone stay within error bars that know of it."""
    truth = makkar(*MAKKAR)
    joints = dict.fromkeys(ROBOT.joint_names, truth)
    run = law_run(ROBOT, joints, motion_seed=1, noise_seed=1)
    sharp = jb.fit(run, friction=dict.fromkeys(ROBOT.joint_names, experiment("makkar", truth, noise=1e-6)))
    in_sigma: list[Array] = []
    for seed in range(4):
        vague = jb.fit(run, friction=dict.fromkeys(ROBOT.joint_names, experiment("makkar", truth, 0.3, seed)))
        told = np.isfinite(vague.sigma)
        assert np.all(vague.sigma[told] >= 0.9 * sharp.sigma[told])
        in_sigma.append(errors(vague, joints) / vague.sigma[told])
    # Four experiments and one recording: with so few, three times what is expected.
    assert float(np.sqrt(np.mean(np.square(in_sigma)))) < 3.0


def test_it_can_be_saved_and_predicts_with_friction(tmp_path) -> None:
    joints = dict.fromkeys(ROBOT.joint_names, makkar(*MAKKAR))
    known = experiment("makkar", makkar(*MAKKAR), noise=0.05)
    run = law_run(ROBOT, joints, motion_seed=1, noise_seed=1)
    model = jb.fit(run, friction={"j2": known})
    assert model.friction is not None
    assert list(model.friction.laws.laws) == ["j2"]
    assert "j1.coulomb" in model.names
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    q = np.zeros((3, 2))
    dq = np.array([[0.1, 0.1], [0.0, 0.5], [0.3, -0.2]])
    np.testing.assert_array_equal(again.predict(q, dq, q), model.predict(q, dq, q))
    judged = jb.validate(model, law_run(ROBOT, joints, motion_seed=2, noise_seed=2))
    assert judged.relative[1] < 0.02


def test_wrong_use_is_named() -> None:
    joints = dict.fromkeys(ROBOT.joint_names, makkar(*MAKKAR))
    run, known = law_run(ROBOT, joints, motion_seed=1, noise_seed=1), experiment("makkar", makkar(*MAKKAR), 0.1)
    with pytest.raises(FitError, match=r"friction of j1 is fitted already, and of j2 a law is named"):
        jb.fit(run, friction={"j1": known, "j2": "makkar"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(FitError, match=r"friction is given for 'elbow', but the joints of 'cobot6' are j1, j2"):
        jb.fit(run, friction={"elbow": known})
    with pytest.raises(FitError, match=r"estimator 'bayes' fits no friction laws"):
        jb.fit(run, friction={"j1": known}, estimator="bayes")
    warm = replace(known, law=friction_law("makkar+offset"), parameters=np.append(known.parameters, 0.0))
    with pytest.raises(FitError, match=r"a model has offsets and rotor inertias of its own"):
        jb.fit(run, friction={"j1": warm})
