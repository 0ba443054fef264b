"""`./run demo cobot6 --bench rp2040`: its comparison, with unix boards in both places, and that it can fail."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from hil_tests.link_helpers import record_wave, wave
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.kinds import UNIX
from jointbench.identification import fit
from jointbench.identification.comparison import Comparison, compare
from jointbench.link import open_bench
from tools.demo import __main__ as verb
from tools.demo import chips
from tools.demo.story import Plant


def compared(*in_sigma: float) -> Comparison:
    """A comparison with these differences; infinite: not told by both."""
    told = np.isfinite(in_sigma)
    values, sigma = np.where(told, in_sigma, 0.0), np.where(told, 1.0, np.inf)
    return cast(Comparison, SimpleNamespace(sigma=sigma, in_sigma=values))


def arm(folder: Path, joints: int) -> Path:
    """A bench of the first joints of an arm."""
    path = write_bench_file(folder, *joints * [None])
    path.write_text(path.read_text().replace('"cobot6"', f'"cobot6:{joints}"'))
    return path


@pytest.mark.parametrize(("plant", "far"), [("harmonic", 1), ("ideal", 3)])
def test_too_many_parameters_that_are_far_or_told_by_one_alone_are_a_no(plant: Plant, far: int) -> None:
    """Of 20, one may be far where noise alone makes the error bars."""
    near = (20 - far) * [-1.99]
    told, within = chips.comparison_checks(compared(*near, *(far - 1) * [2.01], 0.0, np.inf), plant)
    assert (told.ok, within.ok) == (True, True)
    told, within = chips.comparison_checks(compared(*near, *far * [2.01], *21 * [np.inf]), plant)
    assert (told.ok, within.ok) == (True, False)
    told, within = chips.comparison_checks(compared(0.0, *3 * [np.inf]), plant)
    assert (told.ok, within.ok) == (False, True)


@pytest.mark.slow
def test_models_of_boards_with_other_zeros_are_compared_at_the_same(tmp_path: Path) -> None:
    with (
        virtual_bench(arm(tmp_path, 1), "ideal", seed=3, out=tmp_path / "sim") as live,
        open_bench(live) as bench,
    ):
        bench.connect()
        bench.configure()
        (board,) = bench.boards
        motion = wave(bench, way=0.3)
        first = record_wave(bench, tmp_path / "first", motion=motion)
        assert board.facts is not None
        board.write_register("current.zero", board.facts.registers["current.zero"] + 300)
        other = record_wave(bench, tmp_path / "other", motion=motion)
    models = fit(first), fit(other)
    apart = compare(*models)
    at = apart.names.index("j1.offset")
    per_count = models[0].robot.drives[0].torque_per_current * 1e-9 * board.facts.registers["current.scale"]
    assert apart.difference[at] == pytest.approx(-300 * per_count, abs=4.0 * apart.sigma[at])
    assert abs(apart.in_sigma[at]) > 10.0
    at_one_zero = compare(chips.with_zeros_of(models[0], first, other), models[1])
    assert abs(at_one_zero.in_sigma[at]) < 4.0


@pytest.mark.slow
def test_boards_of_one_kind_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(chips.KINDS, "rp2040", UNIX)
    monkeypatch.setattr(chips, "PERIOD", 3.2)
    monkeypatch.setattr(chips, "BENCH", arm(tmp_path, 2))
    result = tmp_path / "result.json"
    out = tmp_path / "demo"
    assert verb.main(["cobot6", "--bench", "rp2040", "--out", str(out), "--json", str(result)]) == 0
    said = json.loads(result.read_text(encoding="utf-8"))
    checks = {check["name"]: check for check in said["checks"]}
    assert all(check["ok"] for check in checks.values())
    assert checks["parameters_within_2_sigma"]["limit"] == 1.0
    assert checks["parameters_told_by_both"]["value"] == len(said["in_sigma"])
    assert 0.01 < said["largest_in_sigma"] <= 2.0  # their noise differs
    assert (out / "rp2040" / "excitation").is_dir()
    assert (out / "unix" / "verification").is_dir()
