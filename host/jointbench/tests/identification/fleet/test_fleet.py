"""Many runs: none is lost for another, and what differs between units is told apart from noise."""

import dataclasses
import itertools
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FleetError, MissingExtra, RunError
from jointbench.identification import Model, fit, load_model
from jointbench.identification.fleet import Fleet, Member, fit_fleet
from jointbench.identification.fleet import fleet as room
from jointbench.recording import open_run
from jointbench.tests.identification.fleets import ARM, NAMES, SPREADS, make_fleet

UNITS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def parameters(folder: Path) -> Array:
    return make_fleet(folder, UNITS)


@pytest.fixture(scope="module")
def fleet(folder: Path, parameters: Array, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return fit_fleet([f"{folder}/unit*"], ARM, out=tmp_path_factory.mktemp("models"))


def models(fleet: Fleet) -> list[Model]:
    return [member.model for member in fleet.fitted if member.model is not None]


@pytest.mark.parametrize("name", SPREADS)
def test_the_known_spread_is_found_within_its_standard_error(fleet: Fleet, parameters: Array, name: str):
    (family,) = fleet.families
    spread = next(each for each in family.spreads if each.name == name)
    drawn = np.std(parameters[:, NAMES.index(name)], ddof=1)
    # What σ of single estimates costs in knowing the deviation of these twelve units, were all of them alike.
    standard_error = np.hypot(spread.sigma**2, np.sqrt(2.0) * spread.sigma * drawn) / (
        drawn * np.sqrt(2.0 * (UNITS - 1))
    )
    assert spread.spread == pytest.approx(drawn, abs=2.0 * standard_error + 0.002 * drawn)
    assert spread.lowest <= SPREADS[name] <= spread.highest
    mean = parameters[:, NAMES.index(name)].mean()
    assert spread.mean == pytest.approx(mean, abs=3.0 * spread.sigma / np.sqrt(UNITS))


def test_what_differs_far_beyond_its_error_is_called_different(fleet: Fleet):
    (family,) = fleet.families
    found = {spread.name: spread for spread in family.spreads}
    for name in ("j1.coulomb", "j2.viscous"):  # their spreads are fifty times the σ of one estimate and more
        assert found[name].p_value < 1e-6
        assert found[name].inconsistency > 0.99


def test_what_does_not_differ_is_not_called_different(fleet: Fleet):
    (family,) = fleet.families
    alike = [spread for spread in family.spreads if spread.name not in SPREADS]
    # 22 parameters, correlated: 5 % of them is one; more than four are seen once in a hundred times.
    assert sum(spread.p_value < 0.05 for spread in alike) <= 4
    assert np.median([spread.spread / spread.sigma for spread in alike]) < 0.5
    assert not family.outliers


def test_the_unit_that_is_not_like_the_others_is_named(fleet: Fleet):
    odd = models(fleet)[5]
    changed = odd.parameters.copy()
    changed[odd.names.index("j3.viscous")] *= 1.2
    members = list(fleet.members)
    members[5] = dataclasses.replace(members[5], model=dataclasses.replace(odd, parameters=changed))
    outliers = Fleet(tuple(members)).families[0].outliers
    assert [(each.unit, each.parameter) for each in outliers] == [("unit05", "j3.viscous")]
    assert str(outliers[0]).startswith("unit05: j3.viscous = ")


def test_each_model_is_that_of_its_run_alone(fleet: Fleet, folder: Path):
    member = fleet.members[3]
    assert member.name == "unit03"
    assert member.path is not None
    assert member.path.parts[-2:] == ("unit03", "model.json")
    alone = fit(open_run(folder / "unit03"), ARM)
    np.testing.assert_array_equal(load_model(member.path).parameters, alone.parameters)


def test_failures_are_named_and_stop_no_other(folder: Path, parameters: Array, tmp_path: Path):
    torn = tmp_path / "torn"
    shutil.copytree(folder / "unit00", torn)
    (torn / "samples.npz").write_bytes((torn / "samples.npz").read_bytes()[:1000])
    told: list[tuple[str, int, int]] = []

    fleet = fit_fleet(
        [torn, tmp_path / "missing", folder / "unit01"], ARM, out=tmp_path / "models",
        told=lambda member, done, of: told.append((member.name, done, of)),
    )  # fmt: skip

    assert [member.name for member in fleet.fitted] == ["unit01"]
    failures = {member.name: member.failure for member in fleet.failed}
    assert "samples" in failures["torn"]
    assert failures["missing"].endswith("there is no such directory; runs are directories that hold a run.toml")
    assert told == [("torn", 1, 3), ("missing", 2, 3), ("unit01", 3, 3)]


def test_a_fault_of_ours_is_told_with_its_kind(folder: Path, parameters: Array, tmp_path: Path):
    fleet = fit_fleet([folder / "unit00"], ARM, out=tmp_path, nonsense=True)
    assert fleet.members[0].failure.startswith("unexpected TypeError: ")


def test_a_model_that_cannot_be_written_is_kept_and_told(folder: Path, parameters: Array, tmp_path: Path):
    (tmp_path / "unit00").write_text("in the way")
    member = fit_fleet([folder / "unit00"], ARM, out=tmp_path).members[0]
    assert member.model is not None
    assert "its model cannot be written to" in member.failure


def test_without_a_folder_for_models_each_goes_beside_its_run(folder: Path, parameters: Array, tmp_path: Path):
    shutil.copytree(folder / "unit00", tmp_path / "run")
    member = fit_fleet([f"file://{tmp_path}/run"], ARM).members[0]
    assert member.path == tmp_path / "run" / "model.json"
    assert (tmp_path / "run" / "model.json").is_file()


def test_zipped_runs(folder: Path, parameters: Array, fleet: Fleet, tmp_path: Path):
    shutil.make_archive(str(tmp_path / "unit02"), "zip", root_dir=folder, base_dir="unit02")
    member = fit_fleet([tmp_path / "unit02.zip"], ARM, out=tmp_path / "models").members[0]
    assert member.name == "unit02"
    assert member.model is not None
    assert str(member.model.provenance["run"]) == f"{tmp_path}/unit02.zip"
    np.testing.assert_array_equal(member.model.parameters, models(fleet)[2].parameters)
    with pytest.raises(FleetError, match=r"unit02.zip cannot be put beside its run; name a folder for the models"):
        fit_fleet([tmp_path / "unit02.zip"], ARM)


def test_stopped_by_ctrl_c_what_is_fitted_stays(folder: Path, parameters: Array, tmp_path: Path):
    def told(member: Member, done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    fleet = fit_fleet([f"{folder}/unit0[0-4]"], ARM, out=tmp_path, told=told)

    assert fleet.interrupted
    assert [member.name for member in fleet.fitted] == ["unit00", "unit01"]
    assert {member.failure for member in fleet.failed} == {"not fitted: stopped before its turn"}
    assert sorted(path.parent.name for path in tmp_path.glob("*/model.json")) == ["unit00", "unit01"]


def test_robots_of_different_kinds_are_families_of_their_own(fleet: Fleet):
    longer = [
        dataclasses.replace(model, base=dataclasses.replace(model.base, grouping=1.1 * model.base.grouping))
        for model in models(fleet)[:2]
    ]
    others = tuple(Member(f"long{k}", "", model) for k, model in enumerate(longer))
    families = Fleet((*fleet.members[:3], *others)).families
    assert [family.units for family in families] == [("unit00", "unit01", "unit02"), ("long0", "long1")]


def test_runs_of_one_name_get_names_of_their_own(folder: Path, parameters: Array, tmp_path: Path):
    for place in ("monday", "tuesday"):
        shutil.copytree(folder / "unit00", tmp_path / place / "run")
    fleet = fit_fleet([f"{tmp_path}/*/run"], ARM, out=tmp_path / "models")
    assert [member.name for member in fleet.members] == ["monday-run-1", "tuesday-run-2"]


def test_bad_wishes_are_named(folder: Path, parameters: Array, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(FleetError, match="a fleet needs at least one run"):
        fit_fleet([])
    with pytest.raises(FleetError, match="workers = 0 must be at least 1"):
        fit_fleet([folder / "unit00"], ARM, workers=0)
    with pytest.raises(RunError, match=r"nothing\* stands for no run"):
        fit_fleet([f"{folder}/nothing*"], ARM)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'jointbench\[dask\]'"):
        fit_fleet([folder / "unit00"], ARM, scheduler="tcp://127.0.0.1:8786")


@pytest.mark.slow  # two processes start, and load the kernels
def test_processes_find_the_same(folder: Path, parameters: Array, fleet: Fleet, tmp_path: Path):
    there = fit_fleet([f"{folder}/unit0[0-3]", f"{folder}/none"], ARM, workers=2, out=tmp_path)
    for mine, theirs in zip(models(fleet), models(there), strict=False):
        np.testing.assert_array_equal(mine.parameters, theirs.parameters)
    assert [member.name for member in there.failed] == ["none"]
    assert len(there.fitted) == 4


@pytest.mark.slow  # a cluster starts
def test_a_cluster_finds_the_same(folder: Path, parameters: Array, fleet: Fleet, tmp_path: Path):
    distributed = pytest.importorskip("distributed", reason="Dask, an optional extra, is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        there = fit_fleet([f"{folder}/unit0[0-3]", f"{folder}/none"], ARM, scheduler=address, out=tmp_path)
    for mine, theirs in zip(models(fleet), models(there), strict=False):
        np.testing.assert_array_equal(mine.parameters, theirs.parameters)
    assert [member.name for member in there.failed] == ["none"]
    assert len(there.fitted) == 4


def test_workers_that_are_lost_take_no_model_with_them(
    folder: Path, parameters: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As for want of memory: what they were to fit is named, what came before stays."""
    usual = room._results

    def lost_after_two(*given: Any) -> Iterator[Any]:
        yield from itertools.islice(usual(*given), 2)
        raise BrokenProcessPool("a worker was terminated")

    monkeypatch.setattr(room, "_results", lost_after_two)
    fleet = fit_fleet([f"{folder}/unit0[0-3]"], ARM, out=tmp_path)
    assert not fleet.interrupted
    assert [member.name for member in fleet.fitted] == ["unit00", "unit01"]
    lost = "not fitted: the workers were lost (BrokenProcessPool: a worker was terminated)"
    assert {member.failure for member in fleet.failed} == {lost}
