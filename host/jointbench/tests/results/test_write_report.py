"""The report says what the model says, stands alone, and hides nothing."""

import dataclasses
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jointbench import extras
from jointbench.errors import MissingExtra, ReportError
from jointbench.identification import validate
from jointbench.link.sync import Exchange, board_clock
from jointbench.results import key_picture, write_report
from jointbench.results.evidence import Evidence
from jointbench.results.fit_facts import fit_facts

from .page_text import Page
from .recordings import Example, evidence_of

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
        elif owner and len(row) == 6:
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
    assert page.by_id["verdict"] == "yes"
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
        assert row[5].startswith(verdict.word)
    counts = Counter(verdict.word for verdict in model.parameter_verdicts)
    assert f"{counts['identified']} of {len(model.names)} parameters are identified" in page.text


def test_how_the_model_was_made_is_told(page: Page, example: Example) -> None:
    facts = {row[0]: row[1] for row in page.rows if len(row) == 2}
    model, names = example.model, example.model.robot.joint_names
    assert facts["Estimator"] == "wls"
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
    assert facts["Estimator"] == "wls (loss huber, scale 1.25)"


def test_a_delay_that_was_found_and_not_believed_is_told_as_that(example: Example) -> None:
    delays = tuple(dataclasses.replace(each, source="not told", reason="a doubt") for each in example.model.delays)
    model = dataclasses.replace(example.model, delays=delays)
    facts = facts_of(evidence_of(example, model=model))
    assert facts["Delay"] == "Not told by this motion and taken as none: a doubt."


def test_parameters_that_no_robot_can_have_are_warned_of(example: Example) -> None:
    """As of torques whose sign is wrong: negative friction and masses."""
    model = dataclasses.replace(example.model, parameters=-example.model.parameters)
    evidence = evidence_of(example, model=model)
    possible = "the nearest physically possible parameters are "
    assert facts_of(evidence)["Physically possible"].startswith(f"No: {possible}")
    assert any(warning.startswith(f"Physically possible parameters: {possible}") for warning in evidence.warnings)


def test_every_joint_has_its_five_pictures(page: Page, example: Example) -> None:
    labels = [values["aria-label"] for tag, values in page.tags if tag == "svg"]
    for name in example.model.robot.joint_names:
        mine = [label.partition(": ")[2].partition("; ") for label in labels if label.startswith(f"{name}: ")]
        assert [what for what, _, _ in mine] == [
            "measured and predicted torque",
            "residual torque",
            "spectrum of the residual",
            "friction over speed",
            "planned motion in its limits",
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
    assert page.by_id["verdict"] == "no"
    assert "j1, j2 are refused" in page.text
    assert any(row[0] == "j1" and "above 30\u00a0%" in row[7] for row in page.rows if len(row) == 8)


def test_imported_recording_has_no_ledger_and_no_excitation(imported: Example, tmp_path: Path) -> None:
    path = write_report(
        tmp_path / "r.html", imported.model, imported.fit_run, imported.validation, imported.verification_run,
        commands=["./run tx40 recordings --seed 7"],
    )  # fmt: skip
    page = Page(path.read_text(encoding="utf-8"))
    assert page.by_id["verdict"] == "yes"
    assert "./run tx40 recordings --seed 7" in page.text
    assert "jointbench report" not in page.text
    assert page.text.count("No ledger") == 2
    assert "No planned motion comes with this recording" in page.text
    assert "samples lost" not in page.text
    assert sum(tag == "svg" for tag, _ in page.tags) == 4 * imported.model.robot.n_joints


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
    with pytest.raises(ReportError, match=r"file/key\.png cannot be written: .*; name another file"):
        key_picture(tmp_path / "file" / "key.png", example.model, example.validation)
