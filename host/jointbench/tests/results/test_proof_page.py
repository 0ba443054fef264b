"""The page on what a model does for its arm: verdict, shares, tracking, parts of the torque, controls.

Numbers carry the digits that they have earned.
"""

import html
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jointbench.excitation import Excitation
from jointbench.identification import Model
from jointbench.identification.proof import Proof
from jointbench.results import write_proof
from jointbench.results.content import column, count, percent, typeset, value_and_sigma
from jointbench.results.proof_page import proof_content

from .page_text import Page
from .recordings import Example, proof_of

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
