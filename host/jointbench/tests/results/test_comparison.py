"""The report on two models says what differs, by how much, and which is which."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from jointbench.identification import fit
from jointbench.identification.observations import observe
from jointbench.results import ComparisonEvidence, write_comparison
from jointbench.results.comparison_page import comparison_content
from jointbench.results.comparison_panels import difference_panel
from jointbench.results.theme import PALETTE

from .page_text import Page
from .recordings import Example

PLACES = Path("runs/before/model.json"), Path("runs/after the crash/model.json")


@pytest.fixture(scope="module")
def alike(two_joints: Example) -> ComparisonEvidence:
    """The model beside one of another recording of the same robot."""
    return ComparisonEvidence.of(two_joints.model, fit(two_joints.verification_run), PLACES, two_joints.fit_run)


@pytest.fixture(scope="module")
def rougher(two_joints: Example) -> ComparisonEvidence:
    """Beside one whose second joint has three tenths more viscous friction."""
    other = fit(two_joints.verification_run)
    parameters = other.parameters.copy()
    parameters[other.names.index("j2.viscous")] *= 1.3
    return ComparisonEvidence.of(
        two_joints.model, dataclasses.replace(other, parameters=parameters), PLACES, two_joints.fit_run
    )


def test_models_of_one_robot_are_the_same(alike: ComparisonEvidence) -> None:
    content = comparison_content(alike)
    assert (content.answer, content.mark) == ("same", "yes")
    assert content.sentence.startswith("A and B say the same: χ² ")
    assert content.different == ()
    assert {pair.told for _, rows in content.groups for pair in rows} == {"alike"}


def test_the_parameter_that_differs_is_named_with_both_values(rougher: ComparisonEvidence) -> None:
    content = comparison_content(rougher)
    assert (content.answer, content.mark) == ("different", "no")
    (pair,) = content.different
    assert (pair.name, pair.unit, pair.told) == ("j2.viscous", "N·m·s/rad", "differs")
    a, b = (float(text.partition(" ± ")[0]) for text in (pair.a, pair.b))
    assert b / a == pytest.approx(1.3, rel=0.02)
    assert content.facts[0].value == f"1 of {len(rougher.comparison.names)}"
    told = [panel for panel in content.bars if panel.note.startswith("1 of")]
    assert [panel.heading for panel in told] == ["j2"]


def test_torques_are_those_of_both_models_on_the_motion(rougher: ComparisonEvidence, two_joints: Example) -> None:
    rows = observe(two_joints.fit_run, two_joints.model.robot, two_joints.model.base, two_joints.model.settings)
    k = int(np.argmin(np.abs(rows.time - rougher.time[100])))
    q, dq, ddq = (values[k : k + 1] for values in (rows.motion.q, rows.motion.dq, rows.motion.ddq))
    for torque, model in zip(rougher.torques, rougher.models, strict=True):
        np.testing.assert_allclose(torque[100], model.predict(q, dq, ddq)[0], rtol=1e-9)
    apart = np.sqrt(np.nanmean((rougher.torques[1] - rougher.torques[0]) ** 2, axis=0))
    np.testing.assert_allclose(apart, rougher.comparison.torques["all"].rms, rtol=1e-6)
    assert np.argmax(apart) == 1


def test_the_page_says_which_is_which_and_stands_alone(rougher: ComparisonEvidence, tmp_path: Path) -> None:
    source = write_comparison(tmp_path / "report.html", rougher).read_text(encoding="utf-8")
    page = Page(source)
    assert page.by_id["verdict"] == "different"
    assert page.text.index(str(PLACES[0])) < page.text.index(str(PLACES[1]))
    assert "jointbench report runs/before/model.json 'runs/after the crash/model.json'" in page.text
    rows = [row for row in page.rows if len(row) == 7 and row[6] in ("alike", "differs", "not told by both")]
    assert len(rows) == len(rougher.comparison.names) + 1  # once more, first of all
    assert rows[0][0] == "j2.viscous"
    sides = {row[0]: row[1:] for row in page.rows if len(row) == 3}
    assert sides["SHA-256"][0] == rougher.models[0].provenance["sha256"]
    assert not re.search(r'(?:src|href)="(?!#)|url\((?!#)|@import', source)


def test_without_a_run_there_are_no_traces(two_joints: Example) -> None:
    content = comparison_content(ComparisonEvidence.of(two_joints.model, two_joints.model, PLACES))
    assert content.traces == ()
    assert "at random states within the robot's limits" in content.torque_note
    assert "Both models were fitted to a recording they share" in content.warnings[0]


def test_what_one_model_does_not_tell_is_no_difference(two_joints: Example) -> None:
    covariance = two_joints.model.covariance.copy()
    covariance[-1, -1] = np.inf
    blind = dataclasses.replace(two_joints.model, covariance=covariance)
    content = comparison_content(ComparisonEvidence.of(two_joints.model, blind, PLACES))
    last = content.groups[-1][1][-1]
    assert (last.b, last.difference, last.in_sigma, last.told) == ("–", "–", "–", "not told by both")


def test_friction_laws_stand_with_their_joint_and_their_units(two_joints: Example) -> None:
    a, b = (fit(run, friction={"j1": "stribeck"}) for run in (two_joints.fit_run, two_joints.verification_run))
    content = comparison_content(ComparisonEvidence.of(a, b, PLACES))
    of_j1 = {pair.name: pair.unit for pair in dict(content.groups)["j1"]}
    assert of_j1["j1.stribeck_speed"] == "rad/s"
    assert (of_j1["j1.static_rise"], of_j1["j1.viscous"]) == ("N·m", "N·m·s/rad")
    (side,) = (side for side in content.sides if side.name == "friction laws")
    assert side.a == side.b == "j1 stribeck"


def test_the_panel_marks_what_differs() -> None:
    differ = np.array([False, True])
    (axes,) = difference_panel(("coulomb", "viscous"), np.array([-1.2, 40.0]), differ, 52.0).axes
    dots = {line.get_color(): line.get_xydata() for line in axes.lines if line.get_marker() == "o"}
    assert np.array_equal(dots[PALETTE.measured], [[-1.2, 0.0]])
    assert np.array_equal(dots[PALETTE.predicted], [[40.0, 1.0]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["coulomb", "viscous"]
    assert axes.get_ylim() == (1.5, -0.5)
