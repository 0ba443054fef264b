import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tools import tx40

DATA = Path(__file__).parents[3] / "shared" / "data" / "staubli_tx40"


def test_without_the_recording_it_says_what_to_give(capsys: pytest.CaptureFixture[str]):
    assert tx40.main([]) == 2
    assert "recording's folder is missing; give the folder that holds pos_read_data.csv" in capsys.readouterr().err
    assert tx40.main(["nowhere"]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_a_folder_without_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert tx40.main([str(tmp_path), "--out", str(tmp_path / "run")]) == 2
    assert "pos_read_data.csv cannot be read" in capsys.readouterr().err


def test_the_published_values_are_complete():
    published = tx40.read_published()
    assert len(published) == 4 * 6 + 3
    assert published["j6.coulomb"] == 0.282
    assert tx40.limit("j6.coulomb") == 20.0
    assert tx40.limit("wrist.coulomb") == 6.0


@pytest.mark.slow
def test_the_recording_gives_the_published_values(tmp_path: Path):
    if not DATA.is_dir():
        reason = "the public TX40 recording is not in ../shared/data/staubli_tx40"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    code = tx40.main([str(DATA), "--out", str(tmp_path / "run"), "--json", str(tmp_path / "result.json")])
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert len(result["checks"]) == 6 + 6 + 3 + 4
    assert {"command", "seed", "seconds", "checks"} <= set(result)
    assert code == 0, [check for check in result["checks"] if not check["ok"]]
    # Both parts tell the same delay, as parts of a recording should: to four deviations, a delay being one parameter.
    assert abs(result["held_out_delay_s"] - result["delay_s"]) < 4.0 * result["delay_sigma_s"]
    assert result["total_relative"] < result["total_relative_without_delay"]
    errors = result["errors"]
    for what in ("whole recording", "held out"):
        plain = errors[f"{what}, Coulomb and viscous friction"]
        assert errors[what]["all"] < 0.7 * plain["all"]
        assert errors[what]["moving"] < plain["moving"]


def test_a_check_can_fail(tmp_path: Path):
    if not DATA.is_dir():
        pytest.skip("the public TX40 recording is not in ../shared/data/staubli_tx40")
    from jointbench import FitSettings, fit
    from jointbench.identification.delay import given_delay
    from jointbench.recording import import_csv

    run = import_csv("tx40", tmp_path / "run", data=DATA)
    model = fit(run, settings=FitSettings(delay=0.0), friction="coulomb_viscous")
    wrong = {name: 1.5 * value for name, value in tx40.read_published().items()}
    assert not all(check.ok for check in tx40.published_checks(model, wrong))
    delay = given_delay(np.zeros(6), "as if there were none")
    held_out: Any = SimpleNamespace(error_all=SimpleNamespace(total_relative=0.2))
    # Without friction that remembers the whole recording's error is 10.7 %, too.
    assert [check.ok for check in tx40.torque_checks(model, held_out, delay)] == [False, True, False, False]
