"""The report says what the model says, stands alone, and hides nothing."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench import extras
from jointbench.bench import Exchange, board_clock
from jointbench.drawing import PALETTE
from jointbench.errors import FileNotWritten, MissingExtra
from jointbench.identification import fit, validate
from jointbench.identification.observations import observe
from jointbench.results import ComparisonEvidence, key_picture, write_comparison, write_proof, write_report
from jointbench.results.evidence import Evidence
from jointbench.results.pages import comparison_content, difference_panel
from jointbench.results.summary import fit_facts
from tools.browser import page_of, serious_findings

from .page_text import BEYOND, LETTERS, ON_PAPER, SMALLEST_LETTER, TEXTS, Page, overlapping
from .recordings import Example, evidence_of, proof_of

FIVE_MIB = 5 * 2**20


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("\u202f", ""))


def parameter_rows(page: Page) -> dict[str, list[str]]:
    """Rows of the table of parameters by full name: a row of one cell names the joint of those below it."""
    rows: dict[str, list[str]] = {}
    owner = ""
    for row in page.rows:
        if len(row) == 1:
            owner = row[0]
        elif owner and len(row) == 7:
            rows[f"{owner}.{''.join(re.findall('^[A-Za-z_]+', row[0]))}"] = row
    return rows


def facts_of(evidence: Evidence) -> dict[str, str]:
    """What the report says of how a model was made."""
    return {fact.name: fact.text for fact in fit_facts(evidence)}


def report_of(example: Example, folder: Path, **changes: Any) -> str:
    example = dataclasses.replace(example, **changes)
    path = write_report(
        folder / "report.html", example.model, example.fit_run, example.validation, example.verification_run
    )
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def source(example: Example, tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_of(example, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_verdict_comes_first(page: Page, example: Example) -> None:
    assert page.by_id["verdict"] == "usable"
    first = [row for row in page.rows if row][1 : 1 + example.model.robot.n_joints]
    assert [row[0] for row in first] == list(example.model.robot.joint_names)


def test_table_of_joints_holds_the_errors_of_model_and_validation(page: Page, example: Example) -> None:
    names = example.model.robot.joint_names
    shown = {row[0]: row for row in page.rows if len(row) == 8 and row[0] in names}
    for joint, name in enumerate(names):
        expected = (
            example.model.error_all.rms[joint],
            example.validation.error_all.rms[joint],
            100.0 * example.validation.error_all.relative[joint],
            100.0 * example.validation.relative[joint],
        )
        # Four decimals at most, two significant digits at least: half a unit of the second digit is 5 %.
        assert [number(cell) for cell in shown[name][1:5]] == pytest.approx(expected, rel=0.05)
        assert number(shown[name][5]) == pytest.approx(example.validation.r_squared[joint], abs=0.51e-4)
        assert shown[name][6] == example.validation.whiteness.words[joint]
        assert shown[name][7].startswith(example.validation.joint_verdicts[joint].word)


def test_every_parameter_is_shown_with_its_sigma_and_verdict(page: Page, example: Example) -> None:
    model = example.model
    rows = parameter_rows(page)
    assert sorted(rows) == sorted(model.names)
    items = zip(model.names, model.parameters, model.sigma, model.parameter_verdicts, strict=True)
    for name, value, sigma, verdict in items:
        row = rows[name]
        # Both end at the second digit of σ, so that each is off by at most a twentieth of σ.
        assert number(row[1]) == pytest.approx(value, abs=0.0501 * sigma)
        assert number(row[2]) == pytest.approx(sigma, rel=0.0501)
        shares = [float(share) for share in row[3].split(" / ")]
        assert sum(shares) == pytest.approx(100.0, abs=1.5)  # three of them, each rounded to one
        assert row[6].startswith(verdict.word)
    counts = Counter(verdict.word for verdict in model.parameter_verdicts)
    assert f"{counts['identified']} of {len(model.names)} parameters are identified" in page.text


def test_how_the_model_was_made_is_told(page: Page, example: Example) -> None:
    facts = {row[0]: row[1] for row in page.rows if len(row) == 2}
    model, names = example.model, example.model.robot.joint_names
    assert facts["Estimator"].startswith("map (strength ")
    assert facts["Physically possible"].startswith("Yes: ")
    assert facts["Outliers"] == "No sample was left out."
    for name, sentence in (
        ("Delay", f"not told by this motion and taken as none: {model.delay.reason}"),
        ("Residuals of the fit", model.whiteness.sentence(names)),
        ("Residuals of the verification", example.validation.whiteness.sentence(names, held_out=True)),
    ):
        assert facts[name].replace("\u00a0", "")[1:] == sentence.removesuffix(".")[1:] + "."


def test_what_was_left_out_and_what_to_note_is_told(example: Example) -> None:
    outliers = example.model.outliers.copy()
    outliers[[1, 8]] = 3, 40
    model = dataclasses.replace(
        example.model,
        outliers=outliers,
        notes=("it took 7 % more",),
        options={"loss": "huber"},
        figures={"scale": 1.25},
    )
    facts = facts_of(evidence_of(example, model=model))
    assert facts["Outliers"] == "Samples left out of the average over periods: j2 position 3, j3 torque 40."
    assert facts["Note"] == "It took 7 % more."
    assert facts["Estimator"] == "map (loss huber, scale 1.25)"


def test_a_delay_that_was_found_and_not_believed_is_told_as_that(example: Example) -> None:
    delays = tuple(dataclasses.replace(each, source="not told", reason="a doubt") for each in example.model.delays)
    model = dataclasses.replace(example.model, delays=delays)
    facts = facts_of(evidence_of(example, model=model))
    assert facts["Delay"] == "Not told by this motion and taken as none: a doubt."


def test_parameters_that_no_robot_can_have_are_warned_of(example: Example) -> None:
    """As of torques whose sign is wrong: negative friction and masses."""
    model = dataclasses.replace(example.model, parameters=-example.model.parameters, made_physical=None)
    evidence = evidence_of(example, model=model, validation=dataclasses.replace(example.validation, model=model))
    possible = "the nearest physically possible parameters are "
    assert facts_of(evidence)["Physically possible"].startswith(f"No: {possible}")
    assert any(
        warning.startswith(f"Physical consistency of the fit, refused: {possible}") for warning in evidence.warnings
    )


def test_every_joint_has_its_five_pictures(page: Page, example: Example) -> None:
    labels = [values["aria-label"] for tag, values in page.tags if tag == "svg"]
    for name in example.model.robot.joint_names:
        mine = [label.partition(": ")[2].partition("; ") for label in labels if label.startswith(f"{name}: ")]
        assert [what for what, _, _ in mine] == [
            "measured and predicted torque",
            "residual torque",
            "spectrum of the residual",
            "friction over speed",
            "planned motion within its limits",
        ]
        assert all(note and note in page.text for _, _, note in mine)  # who sees no picture is told its figures


def test_ledger_and_provenance_are_shown(page: Page, example: Example) -> None:
    taken = "2\u202f000"
    assert sum(row[5:7] == [taken, taken] for row in page.rows if len(row) == 12) == 2 * example.model.robot.n_joints
    pairs = dict(row for row in page.rows if len(row) == 2)
    assert pairs["fit run, SHA-256"] == example.fit_run.sha256
    assert pairs["verification run"] == str(example.verification_run.path)
    assert pairs["fit run, seed"] == "11"
    assert pairs["verification run, seed"] == "12"
    assert pairs["both runs, clock"] == "virtual"
    assert pairs["boards, firmware"] == "1.0.0"
    assert "jointbench report model.json runs/fit runs/verification --out report.html" in page.text


def test_clocks_are_shown_of_runs_whose_boards_have_their_own(two_joints: Example, page: Page, tmp_path: Path) -> None:
    clocks = {
        joint: board_clock([Exchange(10**6 * k, 10**6 * k + 700, 1000 * k, 10**6 * k + 350) for k in range(20)], 1000.0)
        for joint in two_joints.model.robot.joint_names
    }
    clocks["j2"] = replace(clocks["j2"], drift_ppm=-41.237, residual_us=12.34, bound_us=400.06)
    shown = Page(report_of(two_joints, tmp_path, fit_run=replace(two_joints.fit_run, clocks=clocks)))
    offset = f"{clocks['j2'].offset_us * 1e-6:.6f}"
    assert ["j2", offset, "−41.24", "12.3", "400.1", "20", "0"] in shown.rows
    assert "by answered PINGs; the largest residual is 12.3\u00a0µs (j2)." in shown.text
    assert "clocks" in shown.by_id
    assert "clocks" not in page.by_id  # all of its boards count the same ticks


def test_page_stands_alone(source: str, page: Page) -> None:
    assert len(source.encode()) < FIVE_MIB
    for outside in ("http", "@import", "//"):
        assert outside not in source
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "img", "iframe", "object", "base")]
    for tag, values in page.tags:
        assert "src" not in values
        assert values.get("href", "#").startswith("#"), (tag, values)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", source))


def test_references_on_the_page_are_unique_and_lead_somewhere(source: str, page: Page) -> None:
    identities = [values["id"] for _, values in page.tags if "id" in values]
    assert len(identities) == len(set(identities))
    wanted = {values["href"][1:] for _, values in page.tags if "href" in values}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", source))
    assert wanted <= set(identities)


def test_colours_of_pictures_follow_the_page(source: str) -> None:
    pictures = "".join(re.findall(r"<svg.*?</svg>", source, flags=re.DOTALL))
    for name in ("measured", "predicted", "limit"):
        assert f"var(--{name})" in pictures
    assert not re.findall(r"(?:fill|stroke): #\w+", pictures)


def test_same_model_gives_same_bytes(two_joints: Example, tmp_path: Path) -> None:
    first, second = (report_of(two_joints, tmp_path / name) for name in "ab")
    assert first == second
    model, validation = two_joints.model, two_joints.validation
    pictures = [key_picture(tmp_path / name, model, validation) for name in ("a.png", "b.png")]
    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_key_picture_is_wide_and_light(example: Example, tmp_path: Path) -> None:
    content = key_picture(tmp_path / "pictures" / "key.png", example.model, example.validation).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 2**20
    width, height = (int.from_bytes(content[offset : offset + 4], "big") for offset in (16, 20))
    assert width == 2000
    assert 0.4 < height / width < 0.7


def test_model_that_does_not_predict_gets_a_no(two_joints: Example, tmp_path: Path) -> None:
    # Half of the torques explained leaves about half of them as error: above the 30 % of a refusal.
    half = dataclasses.replace(two_joints.model, parameters=0.5 * two_joints.model.parameters)
    validation = validate(half, two_joints.verification_run)
    page = Page(report_of(two_joints, tmp_path, model=half, validation=validation))
    assert page.by_id["verdict"] == "not usable"
    assert "j1, j2 are refused" in page.text
    assert any(row[0] == "j1" and "above 30\u00a0%" in row[7] for row in page.rows if len(row) == 8)


def test_imported_recording_has_no_ledger_and_no_excitation(imported: Example, tmp_path: Path) -> None:
    path = write_report(
        tmp_path / "r.html", imported.model, imported.fit_run, imported.validation, imported.verification_run,
        commands=["./run tx40 recordings --seed 7"],
    )  # fmt: skip
    page = Page(path.read_text(encoding="utf-8"))
    assert page.by_id["verdict"] == "usable"
    assert "./run tx40 recordings --seed 7" in page.text
    assert "jointbench report" not in page.text
    assert page.text.count("No ledger") == 2
    assert "No planned motion comes with this recording" in page.text
    assert "samples lost" not in page.text
    # Four a joint, and one of the cut-offs that were tried.
    assert sum(tag == "svg" for tag, _ in page.tags) == 4 * imported.model.robot.n_joints + 1


def test_names_and_warnings_are_text_never_markup(two_joints: Example, tmp_path: Path) -> None:
    evil = '<script>alert("1")</script> & $\\frac$'
    joints = tuple(dataclasses.replace(joint, name=f"<b>{joint.name}") for joint in two_joints.model.robot.joints)
    robot = dataclasses.replace(two_joints.model.robot, name=evil, joints=joints)
    model = dataclasses.replace(two_joints.model, robot=robot)
    validation = dataclasses.replace(two_joints.validation, joint_names=robot.joint_names)
    run = dataclasses.replace(two_joints.fit_run, robot=robot, warnings=("torn <i>end",))
    page = Page(report_of(two_joints, tmp_path, model=model, validation=validation, fit_run=run))
    assert not {tag for tag, _ in page.tags} & {"script", "b", "i"}
    assert evil in page.text
    assert "<b>j1" in page.text
    assert "torn <i>end" in page.text


def test_missing_extra_says_what_to_install(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "jinja2" else name)
    sentence = r"needs jinja2, which is not installed; run: pip install 'jointbench\[report\]'"
    with pytest.raises(MissingExtra, match=sentence):
        report_of(example, tmp_path)
    assert not list(tmp_path.iterdir())


def test_file_that_cannot_be_written_is_named(example: Example, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotWritten, match=r"file/key\.png cannot be written: .*; name another file"):
        key_picture(tmp_path / "file" / "key.png", example.model, example.validation)


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


pytestmark = pytest.mark.slow  # axe alone takes seconds for a page of so many marks

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
A4 = {"width": 688, "height": 1017}
"""A4 within the margins of the style sheet, 14 mm, in CSS pixels."""
LARGEST = 5 * 10**6


@pytest.fixture(scope="module")
def files(example: Example, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report with all that it can hold, names longer than ours among it; and one on two models."""
    folder = tmp_path_factory.mktemp("pages")
    clocks = {
        name: board_clock([Exchange(10**6 * k, 10**6 * k + 700, 1000 * k, 10**6 * k + 350) for k in range(20)], 1000.0)
        for name in example.model.robot.joint_names
    }
    run = dataclasses.replace(example.fit_run, clocks=clocks, warnings=(f"torn/{'a-long-name/' * 12}end",))
    parameters = example.model.parameters.copy()
    parameters[[name.startswith("j6.") for name in example.model.names]] *= 0.5  # refused, with its reason
    model = dataclasses.replace(example.model, parameters=parameters)
    places = Path(f"runs/{'2026-05-04T101500Z-' * 6}/model.json"), Path("b.json")
    evidence = ComparisonEvidence.of(model, fit(example.verification_run), places, example.fit_run)
    motion = example.verification_run.excitation
    assert motion is not None
    return {
        "model": write_report(folder / "model.html", model, run, example.validation, example.verification_run),
        "two models": write_comparison(folder / "two.html", evidence),
        "proof": write_proof(folder / "proof.html", proof_of(example), example.model, motion, commands=("again",)),
    }


@pytest.fixture(scope="module", params=["model", "two models", "proof"])
def file(request: pytest.FixtureRequest, files: dict[str, Path]) -> Path:
    return files[request.param]


@pytest.fixture(scope="module", params=[DESK, PHONE], ids=["desk", "phone"])
def shown(request: pytest.FixtureRequest, browser: Any, file: Path) -> Iterator[Any]:
    """The page, opened; whatever it writes to the console is an error of the test."""
    said: list[str] = []
    with page_of(browser, viewport=request.param) as page:
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        yield page
    assert said == []


def test_nothing_reaches_out_and_nothing_overlaps(shown: Any) -> None:
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.evaluate(BEYOND) == []
    assert overlapping(shown.evaluate(TEXTS)) == []


def test_letters_can_be_read(shown: Any) -> None:
    assert shown.evaluate(LETTERS) >= SMALLEST_LETTER


def test_the_verdict_is_in_the_first_screen(shown: Any) -> None:
    for place in ("#verdict", ".sentence"):
        box = shown.locator(place).bounding_box()
        assert box["y"] + box["height"] < shown.viewport_size["height"]


def test_axe_finds_nothing_serious(shown: Any) -> None:
    assert serious_findings(shown) == []


def test_headings_are_in_order_and_links_lead_to_what_the_keyboard_reaches(shown: Any) -> None:
    levels = shown.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.closest('nav, .scroll') !== null")
    links = shown.evaluate("[...document.querySelectorAll('nav a')].map(each => each.getAttribute('href'))")
    assert len(links) >= 4
    assert all(shown.locator(link).is_visible() for link in links)


def test_it_is_small(file: Path) -> None:
    assert file.stat().st_size <= LARGEST


def test_dark_letters_are_light_on_dark(browser: Any, file: Path) -> None:
    with page_of(browser, viewport=DESK, color_scheme="dark") as page:
        page.goto(file.as_uri())
        assert serious_findings(page) == []
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 23, 27)"


def test_paper_cuts_nothing(browser: Any, file: Path, tmp_path: Path) -> None:
    with page_of(browser, viewport=A4) as page:
        page.goto(file.as_uri())
        page.emulate_media(media="print")
        assert page.evaluate(ON_PAPER) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert overlapping(page.evaluate(TEXTS)) == []
        printed = page.pdf(path=tmp_path / "report.pdf", format="A4", prefer_css_page_size=True)
        heights = "[...document.querySelectorAll('figure, tr, p, pre')].map(e => e.getBoundingClientRect().height)"
        tallest = max(page.evaluate(heights))
    assert tallest < A4["height"]  # or it would be cut between two pages
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 6


def test_what_overlaps_is_found() -> None:
    apart = [["a", 0.0, 0.0, 10.0, 10.0], ["b", 0.0, 9.0, 10.0, 19.0], ["c", 12.0, 0.0, 20.0, 10.0]]
    assert overlapping(apart) == []
    assert overlapping([*apart, ["d", 5.0, 3.0, 15.0, 13.0]]) == [("a", "d"), ("c", "d"), ("d", "b")]
