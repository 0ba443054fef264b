"""Models of many runs, and the variance between units."""

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
from scipy import optimize

from jointbench.arrays import Array
from jointbench.errors import FitError, MissingExtra, RunError
from jointbench.identification import Model, fit, load_model
from jointbench.identification import fleet as room
from jointbench.identification.fleet import Fleet, FleetMember, fit_fleet
from jointbench.identification.random_effects import deleted_residuals, pool
from jointbench.model import model_parameter_names
from jointbench.recording import open_run, save_samples
from jointbench.tests.identification.synthetic import arm, synthetic_run, truth

ARM = arm(3)
NAMES = model_parameter_names(ARM)

SPREADS = {"j1.coulomb": 0.3, "j2.viscous": 0.2, "j3.rotor_inertia": 0.003}
"""The last is twice the σ of one unit's estimate."""


def true_parameters(n_units: int, seed: int = 0) -> Array:
    """Full parameters of each unit, shape (n_units, n_full)."""
    parameters = np.tile(truth(ARM), (n_units, 1))
    rng = np.random.default_rng(seed)
    for name, spread in SPREADS.items():
        parameters[:, NAMES.index(name)] += spread * rng.standard_normal(n_units)
    return parameters


def make_run(directory: Path, parameters: Array, seed: int) -> Path:
    """A run of one unit, all of them on the same motion."""
    run = synthetic_run(ARM, motion_seed=1, noise_seed=seed, full_parameters=parameters, repeats=1)
    return save_samples(directory, run.samples, {"robot": "cobot6"})


def make_fleet(folder: Path, n_units: int) -> Array:
    """Runs unit00, unit01, … in a folder, and their true parameters."""
    parameters = true_parameters(n_units)
    for k, parameter in enumerate(parameters):
        make_run(folder / f"unit{k:02d}", parameter, k)
    return parameters


MEAN, SPREAD, UNITS = 5.0, 1.5, 20


def units(seed: int, spread: float = SPREAD, n: int = UNITS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sigmas = rng.uniform(0.5, 2.0, n)
    return MEAN + spread * rng.standard_normal(n) + sigmas * rng.standard_normal(n), sigmas


def test_a_known_spread_is_recovered():
    found = pool(*(np.array(each) for each in zip(*map(units, range(400)), strict=True)))
    # 400 fleets: the mean's standard error is 2 % of the spread; a square root of an unbiased variance is biased by
    # 1 / (4 n) and more, some 4 % with errors as large as the spread.
    assert np.mean(found.spread) == pytest.approx(SPREAD, rel=0.08)
    assert np.mean(found.spread**2) == pytest.approx(SPREAD**2, rel=0.08)
    # 95 % with a standard error of 1.1 %.
    assert np.mean((found.lowest <= SPREAD) & (found.highest >= SPREAD)) == pytest.approx(0.95, abs=0.035)
    # The mean's σ is itself known to 16 %, which is what Student's t has over the normal distribution.
    assert np.mean(np.abs(found.mean - MEAN) < 2.0 * found.mean_sigma) == pytest.approx(0.94, abs=0.03)


def test_equal_units_are_called_different_as_often_as_it_says():
    found = pool(*(np.array(each) for each in zip(*(units(seed, 0.0) for seed in range(400)), strict=True)))
    assert np.mean(found.p_value < 0.05) == pytest.approx(0.05, abs=0.035)
    assert np.median(found.spread) < 0.3
    assert np.mean(found.inconsistency == 0.0) > 0.4


def test_root_is_that_of_a_bracketing_search():
    """However far the spread is from the σ: from nothing to a thousand times as large."""
    for spread in (0.0, 0.1, 1.0, 30.0, 1000.0):
        values, sigmas = units(1, spread)

        def excess(t: float, values: np.ndarray = values, sigmas: np.ndarray = sigmas) -> float:
            weight = 1.0 / (sigmas**2 + t)
            mean = np.sum(weight * values) / np.sum(weight)
            return float(np.sum(weight * (values - mean) ** 2) - (UNITS - 1))

        expected = np.sqrt(optimize.brentq(excess, 0.0, 1e8, xtol=1e-14)) if excess(0.0) > 0.0 else 0.0
        assert pool(values, sigmas).spread == pytest.approx(expected, rel=1e-6)


def test_exact_values_have_the_usual_deviation():
    values = np.random.default_rng(0).standard_normal(9)
    found = pool(values, np.full(9, 1e-9))
    assert found.spread == pytest.approx(np.std(values, ddof=1))
    assert found.mean_sigma == pytest.approx(np.std(values, ddof=1) / 3.0)


def test_units_without_an_estimate_take_no_part():
    values, sigmas = units(2)
    missing = sigmas.copy()
    missing[3] = np.inf
    whole, without = pool(np.delete(values, 3), np.delete(sigmas, 3)), pool(values, missing)
    assert without.count == UNITS - 1
    for name in ("mean", "mean_sigma", "spread", "lowest", "highest", "p_value", "inconsistency"):
        assert getattr(without, name) == pytest.approx(getattr(whole, name))


def test_one_unit_has_no_spread():
    one = pool(np.array([3.0, 7.0]), np.array([0.1, np.inf]))
    assert (one.mean, one.mean_sigma) == (3.0, pytest.approx(0.1))
    assert np.isnan([one.spread, one.lowest, one.highest, one.p_value, one.inconsistency]).all()
    none = pool(np.array([3.0, 7.0]), np.array([np.inf, np.inf]))
    assert np.isnan(none.mean)


def test_like_units_are_called_outliers_as_often_as_it_says():
    values = np.random.default_rng(0).standard_normal((1000, 8))
    _, p_values = deleted_residuals(values, np.full(values.shape, 0.3))
    # 8000 of which a thousand are independent: 5 % with a standard error below 0.7 %.
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.02)


def test_an_outlier_does_not_hide_behind_its_own_spread():
    values, sigmas = units(3)
    values[7] += 20.0
    residuals, p_values = deleted_residuals(values[None], sigmas[None])
    assert int(np.argmin(p_values)) == 7
    assert residuals[0, 7] > 5.0
    assert p_values[0, 7] < 1e-4
    with_all = (values[7] - values.mean()) / values.std(ddof=1)
    assert with_all < 4.5


def test_two_units_have_no_outlier():
    _, p_values = deleted_residuals(np.array([[0.0, 100.0]]), np.array([[1.0, 1.0]]))
    assert np.isnan(p_values).all()


FLEET_UNITS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet")


@pytest.fixture(scope="module")
def parameters(folder: Path) -> Array:
    return make_fleet(folder, FLEET_UNITS)


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
        drawn * np.sqrt(2.0 * (FLEET_UNITS - 1))
    )
    assert spread.spread == pytest.approx(drawn, abs=2.0 * standard_error + 0.002 * drawn)
    assert spread.lowest <= SPREADS[name] <= spread.highest
    mean = parameters[:, NAMES.index(name)].mean()
    assert spread.mean == pytest.approx(mean, abs=3.0 * spread.sigma / np.sqrt(FLEET_UNITS))


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
    assert [(outlier.unit, outlier.parameter) for outlier in outliers] == [("unit05", "j3.viscous")]
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
    with pytest.raises(FitError, match=r"unit02.zip cannot be put beside its run; name a folder for the models"):
        fit_fleet([tmp_path / "unit02.zip"], ARM)


def test_stopped_by_ctrl_c_what_is_fitted_stays(folder: Path, parameters: Array, tmp_path: Path):
    def told(member: FleetMember, done: int, of: int) -> None:
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
    others = tuple(FleetMember(f"long{k}", "", model) for k, model in enumerate(longer))
    families = Fleet((*fleet.members[:3], *others)).families
    assert [family.units for family in families] == [("unit00", "unit01", "unit02"), ("long0", "long1")]


def test_runs_of_one_name_get_names_of_their_own(folder: Path, parameters: Array, tmp_path: Path):
    for place in ("monday", "tuesday"):
        shutil.copytree(folder / "unit00", tmp_path / place / "run")
    fleet = fit_fleet([f"{tmp_path}/*/run"], ARM, out=tmp_path / "models")
    assert [member.name for member in fleet.members] == ["monday-run-1", "tuesday-run-2"]


def test_bad_wishes_are_named(folder: Path, parameters: Array, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(FitError, match="a fleet needs at least one run"):
        fit_fleet([])
    with pytest.raises(FitError, match="workers = 0 must be at least 1"):
        fit_fleet([folder / "unit00"], ARM, workers=0)
    with pytest.raises(RunError, match=r"nothing\* matches no run"):
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
