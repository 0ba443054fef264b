import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.dynamics import base_parameters, model_parameter_names
from jointbench.errors import FitError
from jointbench.identification import FitSettings, fit, load_model
from jointbench.identification.estimators.estimator import JoinedRows
from jointbench.recording import Run
from jointbench.tests.identification.estimators.exact_problem import noisy_rows
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

ARM = arm(3)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [synthetic_run(ARM, motion_seed=seed, noise_seed=seed) for seed in (1, 2)]


def sensor_truth() -> Array:
    rotors = [name.endswith(".rotor_inertia") for name in model_parameter_names(ARM)]
    return np.where(rotors, 0.0, truth(ARM))


def at_the_joints(run: Run) -> Run:
    """The run with its torque as that of sensors at the joints, and no motor current."""
    samples = dataclasses.replace(run.samples, joint_torque=run.samples.motor_torque, motor_torque=None)
    return dataclasses.replace(run, samples=samples)


def test_two_runs_tell_what_both_tell(runs: list[Run]):
    """Independent data: informations add."""
    both = fit(runs)
    apart = [fit(run) for run in runs]
    expected = np.linalg.inv(sum(np.linalg.inv(each.covariance) for each in apart))
    # Each covariance is itself an estimate, to some 10 % of a σ.
    assert both.sigma == pytest.approx(np.sqrt(np.diag(expected)), rel=0.35)
    assert np.median(both.sigma / np.sqrt(np.diag(expected))) == pytest.approx(1.0, abs=0.12)
    assert np.abs(both.deviations(truth(ARM))).max() < 4.0
    assert both.rows == tuple(np.sum([each.rows for each in apart], axis=0))
    assert both.error.total_relative == pytest.approx(np.mean([e.error.total_relative for e in apart]), rel=0.1)


def test_the_order_of_runs_does_not_matter(runs: list[Run]):
    one, other = fit(runs), fit(runs[::-1])
    np.testing.assert_allclose(one.parameters, other.parameters, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-5, atol=1e-9 * one.covariance.max())


def test_each_run_has_its_own_settings_and_the_model_knows_them(runs: list[Run], tmp_path: Path):
    model = fit(runs, settings=[FitSettings(cutoff_Hz=20.0), {"cutoff_Hz": 30.0, "delay": 0.0}])
    recorded = [each["settings"]["cutoff_Hz"] for each in model.provenance["runs"]]
    assert recorded == [20.0, 30.0]
    assert model.settings.cutoff_Hz == 20.0
    assert [delay.reason for delay in model.delays] == [model.delay.reason, "as set"]
    loaded = load_model(model.save(tmp_path / "model.json"))
    assert loaded.provenance["runs"] == json.loads(json.dumps(model.provenance["runs"]))
    assert [each.reason for each in loaded.delays] == [each.reason for each in model.delays]


def test_a_noisy_run_counts_less(runs: list[Run]):
    loud = synthetic_run(ARM, motion_seed=3, noise_seed=3, noise=0.5)
    quiet, joined = fit(runs[0]), fit([runs[0], loud])
    assert np.abs((joined.parameters - quiet.parameters) / quiet.sigma).max() < 1.0
    assert np.median(joined.sigma / quiet.sigma) < 1.05


def test_motor_currents_beside_torque_sensors_tell_of_the_links(runs: list[Run]):
    sensed = at_the_joints(synthetic_run(ARM, motion_seed=1, noise_seed=1, full_parameters=sensor_truth(), noise=0.05))
    settings = [FitSettings(torque="joint"), FitSettings()]
    alone, both = fit(sensed, settings=settings[0]), fit([sensed, runs[1]], settings=settings)
    assert both.settings.torque == "joint"
    assert "all that drives add is taken out" in both.notes[-1]
    assert np.abs(both.deviations(sensor_truth())).max() < 4.0
    links = [not name.endswith(("viscous", "coulomb", "offset", "rotor_inertia")) for name in both.names]
    assert np.median(both.sigma[links] / alone.sigma[links]) < 0.8
    # The same with the motor's friction left in would be far off: it is not what the sensor feels.
    assert np.isinf(both.sigma[both.names.index("j3.rotor_inertia")])


def test_a_silent_sensor_gives_no_rows_in_its_run_only(runs: list[Run]):
    samples = runs[0].samples
    assert samples.motor_torque is not None
    torque = samples.motor_torque.copy()
    torque[:, 0] = 0.0
    silent = dataclasses.replace(runs[0], samples=dataclasses.replace(samples, motor_torque=torque))
    alone, both = fit(silent), fit([silent, runs[1]])
    assert alone.rows[0] == 0
    assert "j1" in alone.uninformative
    assert alone.joint_verdicts[0].word == "refused"
    verdict = alone.parameter_verdicts[alone.names.index("j1.coulomb")]
    assert verdict.word == "refused"
    assert "does not vary" in verdict.reason
    assert both.rows[0] == fit(runs[1]).rows[0]
    assert not both.uninformative
    assert any("does not vary" in note and "left out" in note for note in both.notes)
    assert np.abs(both.deviations(truth(ARM))).max() < 4.0


def test_joined_rows_never_adjoin():
    parts = tuple(noisy_rows(seed, samples=3000) for seed in (0, 1))
    blocks = list(JoinedRows(parts).blocks())
    gaps = [after.start - before.stop for before, after in pairwise(blocks)]
    assert sorted(gaps)[-1] > 0
    assert sum(gap > 0 for gap in gaps) == 1
    assert sum(len(block.torque) for block in blocks) == 6000


def test_a_robot_of_another_kind_is_named(runs: list[Run]):
    other = synthetic_run(arm(2), motion_seed=1, noise_seed=1)
    with pytest.raises(FitError, match=r"has joints j1, j2, but robot 'cobot6' has j1, j2, j3"):
        fit([runs[0], other])


@pytest.mark.parametrize(
    ("estimator", "options"),
    [("ols", {}), ("irls", {"loss": "bisquare"}), ("ridge", {}), ("bayes", {}), ("physical", {"weight": 1.0})],
)
def test_every_estimator_takes_several_runs_and_its_model_comes_back(
    runs: list[Run], estimator: str, options: dict[str, object], tmp_path: Path
):
    model = fit(runs, estimator=estimator, options=options)
    assert np.abs(model.deviations(truth(ARM))).max() < 5.0
    assert model.estimator == estimator
    loaded = load_model(model.save(tmp_path / "model.json"))
    assert (loaded.estimator, loaded.options, loaded.notes) == (estimator, model.options, model.notes)
    assert loaded.figures == model.figures
    assert loaded.physical_verdict.word == model.physical_verdict.word == "identified"
    assert base_parameters(ARM).leading_names == loaded.names
