"""The page on what a model does for its arm: verdict, shares, tracking, parts of the torque, controls.

Numbers carry the digits that they have earned.

What stands against a model is said, in the verdict and beside it.
"""

import dataclasses
import html
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.excitation import Basis, Excitation, PointToPoint, RampedFourier, RestToRestFourier
from jointbench.identification import Model, fit, validate
from jointbench.identification.proof import Proof
from jointbench.model import with_passive
from jointbench.recording import Run
from jointbench.results import write_proof
from jointbench.results.content import column, count, percent, typeset, value_and_sigma
from jointbench.results.evidence import reproduce_commands
from jointbench.results.proof_page import proof_content
from jointbench.results.summary import excitation_note, joint_rows, parameter_groups, sentence, torque_note

from .page_text import Page
from .recordings import Example, evidence_of, proof_of, whole_ledger

HEAVIER = "With link 2 20 % heavier feedback supplies 12 % of j2's torque; with the model as it is, 3.0 %."


@pytest.fixture(scope="module")
def proof(two_joints: Example) -> Proof:
    return proof_of(two_joints)


@pytest.fixture(scope="module")
def model(two_joints: Example) -> Model:
    return two_joints.model


@pytest.fixture(scope="module")
def motion(two_joints: Example) -> Excitation:
    assert two_joints.verification_run.excitation is not None
    return two_joints.verification_run.excitation


def test_the_page_says_what_the_proof_says(proof: Proof, model: Model, motion: Excitation, tmp_path: Path) -> None:
    command = "jointbench prove m.json b.toml"
    path = write_proof(tmp_path / "proof.html", proof, model, motion, commands=(command,))
    source = path.read_text(encoding="utf-8")
    page = Page(source)
    assert page.by_id["verdict"] == "proven"
    rows = {row[0]: row[1:] for row in page.rows if row}
    for name in proof.joint_names:
        assert rows[name] == ["3.0", "3.0 (1.0 … 5.0)", "6.0", "2.000", "0.100", "20.0", "–", "yes"]
    assert rows["torque × 0.8"] == ["j1: 20\u00a0% by feedback, allowed 6.0\u00a0%", "fails"]
    assert rows["sign of j2"] == ["stopped: j2: FOLLOWING <1>", "fails"]
    assert "FOLLOWING &lt;1&gt;" in source
    assert HEAVIER in html.unescape(source).replace("\u00a0", " ")
    assert source.count("<figure>") == 1 + 2 * len(proof.joint_names)
    assert command in page.text
    assert "http" not in source.replace("http://www.w3.org", "")


def test_a_refused_model_is_shown_as_one_and_joints_that_are_not_judged_are_left_out(
    proof: Proof, model: Model, motion: Excitation
) -> None:
    refused = replace(proof, moving_error=np.full(2, -0.02), modelled=np.array([True, False]))
    content = proof_content(refused, model, motion)
    assert (content.answer, content.mark) == ("refused", "no")
    assert content.warnings == ("j1: feedback supplies 3.0 %, allowed are 2.0 %",)
    assert [row.name for row in content.joints] == ["j1"]
    assert not content.joints[0].passes
    assert [panel.heading for panel in (*content.tracking, *content.parts)] == ["j1", "j1"]


def test_links_have_their_figure_and_their_lead_is_said(proof: Proof, model: Model, motion: Excitation) -> None:
    assert "lead" not in proof_content(proof, model, motion).tracking_note
    without, fed = (replace(runs[0], link_error=2.0 * runs[0].error) for runs in (proof.without, proof.fed))
    linked = replace(proof, without=(without,), fed=(fed,), stiffness=np.array([5000.0, np.inf]))
    content = proof_content(linked, model, motion)
    assert "leads by the wind-up of the gears of j1, so that the links follow" in content.tracking_note
    assert [row.link_ratio for row in content.joints] == ["20.0", "20.0"]
    assert "tracking error of the links, all joints" in [fact.name for fact in content.facts]


def test_the_parts_are_those_of_the_model(proof: Proof, model: Model, motion: Excitation) -> None:
    whole = proof_content(proof, model, motion).parts[0].note
    bare = proof_content(proof, replace(model, parameters=0.0 * model.parameters), motion).parts[0].note
    assert "friction 0," in bare
    assert "bodies 0," in bare
    assert "friction 0," not in whole
    assert "springs" not in whole
    residual = 0.03 * np.sqrt(np.mean(proof.fed[0].torque[:, 0] ** 2))
    assert f"residual {residual:.2g} N·m rms" in whole


@pytest.mark.parametrize(
    ("value", "sigma", "shown"),
    [
        (1.23456, 0.0432, ("1.235", "0.043")),
        (-12.3456, 2.5, ("−12.3", "2.5")),
        (12345.6, 340.0, ("12346", "340")),
        (0.00123456, 0.0000012, ("0.0012346", "0.0000012")),
        (-1.2346e-8, 3.1e-10, ("−1.235e−8", "0.031e−8")),
        (0.0, 0.5, ("0.00", "0.50")),
    ],
)
def test_value_ends_at_second_digit_of_its_sigma(value: float, sigma: float, shown: tuple[str, str]) -> None:
    assert value_and_sigma(value, sigma) == shown


@pytest.mark.parametrize("sigma", [0.0, math.nan])
def test_value_without_an_error_says_so(sigma: float) -> None:
    assert value_and_sigma(2.5, sigma) == ("2.5", "–")


def test_nothing_is_shown_of_a_value_that_nothing_is_known_of() -> None:
    assert value_and_sigma(0.0, math.inf) == ("–", "–")
    assert value_and_sigma(math.nan, 1.0) == ("–", "–")


def test_column_has_one_number_of_decimals() -> None:
    assert column([12.345, 0.0567, math.nan, -3.0]) == ["12.345", "0.057", "–", "−3.000"]
    assert column([math.nan, 0.0]) == ["–", "0"]


def test_percent_of_small_and_large_fractions() -> None:
    shown = [percent(fraction) for fraction in (0.0123, 0.079, 0.5, 1.234, math.nan)]
    assert shown == ["1.2\u00a0%", "7.9\u00a0%", "50\u00a0%", "123\u00a0%", "–"]


def test_count_in_groups_of_three() -> None:
    assert count(1234567) == "1\u202f234\u202f567"


def test_sentences_are_set_like_the_numbers_beside_them() -> None:
    assert typeset("error 14.0% is above 10% (100 %)") == "error 14.0\u00a0% is above 10\u00a0% (100 %)"
    assert typeset("j2 -51.0%, p = 5e-151, on 2026-05-04") == "j2 −51.0\u00a0%, p = 5e-151, on 2026-05-04"


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
