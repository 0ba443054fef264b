"""What stands against a model is said, in the verdict and beside it."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from jointbench.excitation import Basis, Excitation, PointToPoint, RampedFourier, RestToRestFourier
from jointbench.identification import Model, fit, validate
from jointbench.model import with_passive
from jointbench.recording import Run
from jointbench.results.evidence import reproduce_commands
from jointbench.results.summary import excitation_note, joint_rows, parameter_groups, sentence, torque_note

from .recordings import Example, evidence_of, whole_ledger


def test_good_model_gets_a_yes_and_no_warning(example: Example) -> None:
    evidence = evidence_of(example)
    assert evidence.answer == "yes"
    assert evidence.warnings == example.model.robot.warnings
    assert "a motion it was not fitted to" in sentence(evidence)


# An error of 20 % of the torque is between the 10 % of "identified" and the 30 % of "poor fit"; 50 % is beyond both.
@pytest.mark.parametrize(
    ("scale", "answer", "word", "said"),
    [(0.8, "with care", "poor fit", "fits poorly"), (0.5, "no", "refused", "is refused")],
)
def test_one_bad_joint_decides(example: Example, scale: float, answer: str, word: str, said: str) -> None:
    parameters = example.model.parameters.copy()
    mine = [name.startswith("j6.") for name in example.model.names]
    parameters[mine] *= scale
    model = dataclasses.replace(example.model, parameters=parameters)
    evidence = evidence_of(example, model=model, validation=validate(model, example.verification_run))
    assert evidence.answer == answer
    assert f"; j6 {said}; " in sentence(evidence)
    row = joint_rows(model, evidence.validation)[-1]
    assert row.verdict == word
    assert row.reason


def test_a_passive_joint_stands_against_nothing_and_laws_are_counted_as_the_table_has_them(example: Example) -> None:
    model = fit(example.fit_run, with_passive(example.model.robot, "j6"), friction={"j1": "stribeck"})
    evidence = evidence_of(example, model=model, validation=validate(model, example.verification_run))
    said, rows = sentence(evidence), sum(len(group.rows) for group in parameter_groups(model))
    assert "j6" not in said
    assert f" of {rows} parameters are identified" in said
    assert rows != len(model.names)
    assert "(0 %" not in torque_note(evidence)


@pytest.mark.parametrize("name", ["fit_run", "verification_run"])
def test_lost_samples_get_a_no_whatever_the_errors(example: Example, name: str) -> None:
    ledger = whole_ledger(example.model.robot, samples=2000, lost=100)
    run = dataclasses.replace(getattr(example, name), ledger=ledger)
    evidence = evidence_of(example, **{name: run})
    assert evidence.answer == "no"
    assert f"the {name.replace('_', ' ')} is invalid: 100 of 12000 samples lost" in sentence(evidence)


def test_validation_on_the_fitted_motion_is_not_called_verification(example: Example) -> None:
    evidence = evidence_of(
        example, validation=validate(example.model, example.fit_run, in_sample=True), verification_run=example.fit_run
    )
    assert not evidence.held_out
    assert "the torques of the motion it was fitted to" in sentence(evidence)
    assert any("say nothing about other motions" in warning for warning in evidence.warnings)


def test_held_out_part_of_the_same_recording_counts_as_another_motion(example: Example) -> None:
    settings = dataclasses.replace(example.model.settings, interval=(0.0, 5.0))
    model = dataclasses.replace(example.model, settings=settings)
    rest = dataclasses.replace(example.model.settings, interval=(5.0, 10.0))
    validation = validate(model, example.fit_run, settings=rest)
    changes: dict[str, Any] = {"model": model, "verification_run": example.fit_run}
    assert evidence_of(example, validation=validation, **changes).held_out
    overlapping = validate(model, example.fit_run, in_sample=True)
    assert not evidence_of(example, validation=overlapping, **changes).held_out


def test_parameter_that_was_not_excited_shows_no_value(example: Example) -> None:
    covariance = example.model.covariance.copy()
    covariance[-1, -1] = math.inf
    parameters = np.append(example.model.parameters[:-1], 0.0)
    model = dataclasses.replace(example.model, covariance=covariance, parameters=parameters)
    name = model.names[-1]
    group = next(group for group in parameter_groups(model) if group.name == name.partition(".")[0])
    row = next(row for row in group.rows if row.name == name.partition(".")[2])
    assert (row.value, row.sigma, row.relative_sigma) == ("–", "–", "–")
    assert row.verdict == "not observable"
    assert row.reason == model.parameter_verdicts[-1].reason


def test_note_on_the_excitation_names_the_tightest_joint(example: Example) -> None:
    excitation = example.fit_run.excitation
    assert isinstance(excitation, Excitation)
    note = excitation_note(evidence_of(example))
    assert note.startswith("Fourier series of 5 harmonics, period 10 s, seed 1, played once.")
    tightest = min(excitation.margins, key=lambda margins: margins.smallest)
    assert f"({tightest.joint})" in note
    assert f"Planned with {excitation.not_checked}." in note


@pytest.mark.parametrize(
    ("basis", "periods"),
    [(RampedFourier(5, 4.0, 1.0, 2), 6), (PointToPoint(4, 2.0), 3), (RestToRestFourier(5, 10.0), 3)],
)
def test_note_on_torques_counts_the_periods_between_ramps(example: Example, basis: Basis, periods: int) -> None:
    excitation = example.verification_run.excitation
    assert excitation is not None
    weights = np.zeros((len(excitation.home), basis.size))
    played = dataclasses.replace(excitation, basis=basis, weights=weights)
    run = dataclasses.replace(example.verification_run, excitation=played, repeats=3)
    assert f", the mean of its {periods} periods." in torque_note(evidence_of(example, verification_run=run))


def of_several(example: Example, **first: Any) -> Model:
    """The model as if it had been fitted to another run as well, the first with these settings."""
    entry = {"run": "runs/fit", "sha256": example.fit_run.sha256, "settings": first}
    other = {"run": "runs/other fit", "sha256": "5" * 64, "settings": {}}
    return dataclasses.replace(example.model, provenance={"runs": [other, entry], "versions": {}})


def test_each_run_of_a_model_of_several_counts_as_fitted(example: Example) -> None:
    def held_out(model: Model, run: Run) -> bool:
        validation = validate(model, run, in_sample=True)
        return evidence_of(example, model=model, validation=validation, verification_run=run).held_out

    assert not held_out(of_several(example), example.fit_run)
    assert held_out(of_several(example, interval=[90.0, 99.0]), example.fit_run)
    assert held_out(of_several(example), example.verification_run)


def test_commands_get_the_same_model_again(example: Example) -> None:
    fit, report = reproduce_commands(evidence_of(example))
    cutoff = example.model.settings.cutoff_Hz
    assert fit == f"jointbench fit runs/fit --estimator map --cutoff-Hz {cutoff} --out model.json"
    assert report == "jointbench report model.json runs/fit runs/verification --out report.html"
    model = dataclasses.replace(of_several(example), estimator="irls", options={"loss": "bisquare", "tuning": None})
    expected = (
        "jointbench fit 'runs/other fit' runs/fit --together --estimator irls --option loss=bisquare --out model.json"
    )
    assert reproduce_commands(evidence_of(example, model=model))[0] == expected


def test_commands_have_the_settings_that_were_asked_for(example: Example) -> None:
    asked: dict[str, Any] = {"cutoff_Hz": 12.5, "torque": "joint", "interval": [0.0, 5.25]}
    runs = [
        {"run": f"runs/{k}", "sha256": str(k), "settings": asked | {"delay": 1e-3 * k}, "recorded": recorded}
        for k, recorded in enumerate(({"fit": {"torque": "joint"}}, {}))
    ]
    model = dataclasses.replace(example.model, provenance={"runs": runs, "versions": {}})
    fit, _ = reproduce_commands(evidence_of(example, model=model))
    assert "--together --estimator map --cutoff-Hz 12.5 --torque joint --interval 0.0,5.25 --out" in fit
    asked["interval"] = None
    runs[0]["settings"] = asked | {"torque": "motor"}
    fit, _ = reproduce_commands(evidence_of(example, model=model))
    assert "--torque" not in fit  # there is no option that is one run's
