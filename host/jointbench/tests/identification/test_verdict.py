"""The one verdict on a model: no good word above a contradiction, whichever part it lies in."""

import dataclasses
from functools import lru_cache

import numpy as np
import pytest

from jointbench.identification import Model, fit, load_model, validate
from jointbench.identification.verdict import Part, WholeVerdict, condition, impossible_signs
from jointbench.model import model_parameter_names
from jointbench.recording import Run
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth
from jointbench.tests.results.recordings import whole_ledger

ARM = arm(2)
PARTS = ["recording", "log check", "physical consistency", "parameters", "joints"]


@lru_cache(maxsize=8)
def recorded(motion: int = 1, parameter: str = "", value: float = 0.0) -> Run:
    """A recording of an arm, one of whose true parameters is this one."""
    values = truth(ARM)
    if parameter:
        values[model_parameter_names(ARM).index(parameter)] = value
    return synthetic_run(ARM, motion_seed=motion, noise_seed=motion, full_parameters=values)


@lru_cache(maxsize=8)
def model(parameter: str = "", value: float = 0.0) -> Model:
    return fit(recorded(1, parameter, value))


def word_of(verdict: WholeVerdict, name: str) -> str:
    return next(part.word for part in verdict.parts if part.name == name)


def test_of_a_good_fit_every_part_is_named_and_the_condition() -> None:
    verdict = model().verdict
    assert [part.name for part in verdict.parts] == PARTS
    assert {part.word for part in verdict.parts} == {"identified"}
    assert (verdict.word, verdict.is_refused, verdict.advice) == ("identified", False, "")
    assert verdict.reason.startswith("worst joint")
    assert "if the " in verdict.lines()[-1]


@pytest.mark.parametrize("name", ["j1.coulomb", "j2.coulomb", "j1.viscous"])
def test_friction_that_drives_refuses_the_model(name: str) -> None:
    made = model(name, -4.0)
    own = made.parameter_verdicts[made.names.index(name)]
    assert own.word == "refused"
    assert "below zero, and friction cannot be" in own.reason
    # The torque itself is explained as well as ever: only the sign speaks against it.
    assert {verdict.word for verdict in made.joint_verdicts} == {"identified"}
    assert made.verdict.is_refused
    assert word_of(made.verdict, "parameters") == "refused"
    assert name.partition(".")[0] in next(part.advice for part in made.verdict.parts if part.name == "parameters")


def test_friction_of_nothing_is_no_contradiction() -> None:
    made = model("j2.viscous", 0.0)
    assert made.impossible == {}
    assert not made.verdict.is_refused


def test_a_sign_counts_from_three_sigma_on() -> None:
    made, name = model(), "j1.coulomb"
    index = made.names.index(name)
    values = made.parameters.copy()
    for times, refused in ((2.9, False), (3.1, True)):
        values[index] = -times * made.sigma[index]
        assert (name in impossible_signs(made.base, values, made.sigma)) is refused
        changed = dataclasses.replace(made, parameters=values.copy())
        assert changed.parameter_verdicts[index].word != "identified"
    values[index] = -10.0
    unknown = np.full(len(values), np.inf)
    assert impossible_signs(made.base, values, unknown) == {}


def test_an_inertia_may_be_below_zero_where_it_is_a_difference() -> None:
    made = model()
    grouped = next(k for k, row in enumerate(made.base.grouping) if np.count_nonzero(row) > 1)
    values = made.parameters.copy()
    values[grouped] = -1e3 * abs(values[grouped])
    assert made.names[grouped] not in impossible_signs(made.base, values, made.sigma)


def test_a_body_that_cannot_be_refuses_the_model() -> None:
    """A rotor and its link that turn the less the more they are pushed: -5 kg·m² together."""
    made = model("j1.rotor_inertia", -5.0)
    assert word_of(made.verdict, "physical consistency") == "refused"
    assert {verdict.word for verdict in made.joint_verdicts} == {"identified"}
    assert made.verdict.is_refused


@pytest.mark.parametrize("joint", [0, 1])
def test_a_torque_of_the_other_sign_refuses_the_model(joint: int) -> None:
    samples = recorded().samples
    assert samples.motor_torque is not None
    torque = samples.motor_torque.copy()
    torque[:, joint] *= -1.0
    made = fit(dataclasses.replace(recorded(), samples=dataclasses.replace(samples, motor_torque=torque)))
    assert made.verdict.is_refused
    assert made.verdict.advice


def test_a_log_that_looks_wrong_refuses_a_model_that_fits() -> None:
    """Positions in degrees, taken for radians, are outside any limits; the same error refuses a validation."""
    narrow = dataclasses.replace(
        ARM, joints=tuple(dataclasses.replace(joint, position_limits=(-0.1, 0.1)) for joint in ARM.joints)
    )
    made = fit(recorded(), narrow)
    assert {verdict.word for verdict in made.joint_verdicts} == {"identified"}
    assert word_of(made.verdict, "log check") == "refused"
    assert made.verdict.is_refused
    assert made.verdict.reason.startswith("log check: wrong: limits")
    assert made.verdict.advice
    assert validate(made, recorded(2)).verdict.is_refused


def test_a_recording_that_lost_too_much_refuses_the_model() -> None:
    run = dataclasses.replace(recorded(), ledger=whole_ledger(ARM, samples=2000, lost=100))
    verdict = fit(run).verdict
    assert verdict.is_refused
    assert verdict.reason.startswith("recording: run synthetic is invalid")


def test_validation_carries_what_speaks_against_the_model() -> None:
    wrong = model("j1.coulomb", -4.0)
    check = validate(wrong, recorded(2, "j1.coulomb", -4.0))
    assert {verdict.word for verdict in check.joint_verdicts} == {"identified"}
    assert check.verdict.is_refused
    assert "parameters of the fit" in check.verdict.reason
    good = validate(model(), recorded(2)).verdict
    assert (good.word, good.parts[-1].name) == ("identified", "held-out error")


def test_the_model_file_keeps_the_verdict(tmp_path) -> None:
    made = dataclasses.replace(model(), run_parts=(Part("log check", "refused", "wrong: limits", "check the unit"),))
    read = load_model(made.save(tmp_path / "model.json"))
    assert read.verdict == made.verdict
    assert read.verdict.is_refused
    assert read.verdict.advice == "check the unit"


@pytest.mark.parametrize(
    ("torque", "is_log", "said"),
    [
        ("joint", True, "torque sensors are right"),
        ("motor", True, "the log's torques are right"),
        ("motor", False, "the torque constants and gear ratios are right"),
    ],
)
def test_the_condition_names_where_the_torque_is_from(torque: str, is_log: bool, said: str) -> None:
    text = condition(torque, is_log)
    assert said in text
    assert "5 %" in text
    assert "the robot's file on zeros, link lengths and axes" in text


def test_the_condition_of_a_model_with_tolerances_are_these() -> None:
    made = fit(recorded(), settings={"tolerances": {"torque_constant_percent": 7.0}})
    assert made.calibration is not None
    assert made.verdict.condition.startswith("the calibration is within its tolerances")
    assert "torque constant 7 %" in made.verdict.condition
    doubted = dataclasses.replace(
        made.calibration, contradictions=("the recording contradicts the tolerance of zeros",)
    )
    verdict = dataclasses.replace(made, calibration=doubted).verdict
    assert (verdict.word, verdict.is_refused) == ("suspicious", False)
    assert verdict.reason.startswith("calibration: the recording contradicts")
    assert "--tolerance" in verdict.advice


def test_5_percent_of_a_torque_constant_are_5_percent_of_its_parameters() -> None:
    """What the condition says, on a recording whose currents are all 5 % too large."""
    samples = recorded().samples
    assert samples.motor_torque is not None
    more = dataclasses.replace(samples, motor_torque=1.05 * samples.motor_torque)
    off = fit(dataclasses.replace(recorded(), samples=more))
    seen = model().sigma < 0.01 * np.abs(model().parameters)
    np.testing.assert_allclose(off.parameters[seen] / model().parameters[seen], 1.05, rtol=1e-3)
    assert off.verdict.word == "identified"
