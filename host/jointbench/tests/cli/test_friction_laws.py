"""`jointbench fit --friction`: what it takes, says and writes."""

import json
from pathlib import Path

import pytest

from jointbench.cli import fit
from jointbench.cli.friction_laws import asked_friction
from jointbench.cli.main import main
from jointbench.cli.parser import build_parser
from jointbench.errors import FitError
from jointbench.identification import load_model
from jointbench.results.summary import parameter_groups, parameter_note
from jointbench.tests.identification.friction.law_runs import law_run, stribeck
from jointbench.tests.identification.synthetic import arm


def asked(*arguments: str) -> object:
    return asked_friction(build_parser().parse_args(["fit", "run", *arguments]))


def test_a_law_for_all_or_one_for_each() -> None:
    assert asked() is None
    assert asked("--friction", "choose") == "choose"
    assert asked("--friction", "j1=stribeck", "--friction", "j2=makkar+load") == {"j1": "stribeck", "j2": "makkar+load"}
    with pytest.raises(FitError, match="give one law for all joints, or JOINT=LAW for each"):
        asked("--friction", "stribeck", "--friction", "j2=makkar")


def test_a_fit_with_a_law_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    run = law_run(arm(2), {"j1": stribeck(6.0, 4.0, 9.0, 0.2)}, motion_seed=1, noise_seed=1)
    monkeypatch.setattr(fit, "open_run", lambda name: run)
    assert main(["fit", str(tmp_path), "--friction", "j1=stribeck", "--json", "-"]) == 0

    said = capsys.readouterr()
    law = json.loads(said.out)["friction"]["j1"]
    assert (law["law"], law["verdict"]) == ("stribeck", "identified")
    assert law["parameters"]["stribeck_speed"]["value"] == pytest.approx(0.2, rel=0.02)
    lines = [line.split() for line in said.err.splitlines()]
    assert ["j1.stribeck_speed", "rad/s"] in [line[:2] for line in lines]
    assert sum(line[:1] == ["j1.coulomb"] for line in lines) == 1  # the law's, not the base parameter's
    assert "friction of j1: identified (stribeck; as asked for)" in said.err

    model = load_model(tmp_path / "model.json")
    rows = next(group.rows for group in parameter_groups(model) if group.name == "j1")
    assert [row.lumped for row in rows if row.name == "coulomb"] == ["of friction law stribeck"]
    assert "and the 4 parameters of the joints' friction laws" in parameter_note(model)


def test_an_unknown_law_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys) -> None:
    run = law_run(arm(2), {}, motion_seed=1, noise_seed=1, repeats=1)
    monkeypatch.setattr(fit, "open_run", lambda name: run)
    assert main(["fit", str(tmp_path), "--friction", "stiction"]) == 2
    assert "friction law 'stiction' is not known; a law is one of coulomb_viscous" in capsys.readouterr().err
