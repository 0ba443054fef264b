"""`./run bench public`: how predictions of public recordings are scored.

Benchmarks of identification: balance by an estimate, an end by its own σ, the choice of friction laws.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.arrays import Array
from jointbench.cli.console import Console
from jointbench.errors import FileError, FitError
from jointbench.identification.zero_moment_point import ReducedParameters
from jointbench.model import Robot
from jointbench.recording import Run, import_csv, save_samples
from jointbench.signals import Motion
from jointbench.tests.identification.friction.law_runs import law_run, loaded, stribeck
from jointbench.tests.identification.synthetic import arm
from jointbench.tests.identification.zero_moment_point.simulated_stance import (
    EVERY,
    TRUTH,
    biped,
    ground_forces,
    sway,
)
from tools.bench import balance, laws, public, stopping
from tools.bench.__main__ import main
from tools.bench.balance import Masses, Played, Tracking, track
from tools.bench.peers import BenchmarkFailed
from tools.bench.public_recordings import GEN3, SPLITS, check_digests
from tools.bench.public_scoring import KINDS, Entry, Trained, judge

DATA = Path(__file__).parents[3] / "shared" / "data"
MAPPING = """version = 1
robot = "modular7:2"
sample_rate_Hz = 100
[[files]]
path = "log.csv"
[position]
columns = ["p1", "p2"]
unit = "rad"
side = "joint"
[torque]
columns = ["t1", "t2"]
unit = "N·m"
side = "joint"
"""
BANDWIDTH_HZ, RATE_HZ = 5.0, 100.0
NOISE_NM = 0.5


def law(q: Array, dq: Array) -> Array:
    """The torque of the first joint; the second one's is noise about 1 N·m."""
    return 5.0 + 3.0 * np.cos(q[:, 0]) + 2.0 * dq[:, 0]


def recording(folder: Path, seed: int) -> Run:
    """Twenty seconds of two joints below 1 Hz, the first of which stands still for the last five."""
    rng = np.random.default_rng(seed)
    time = np.arange(2000) / RATE_HZ
    speed = np.where(time < 15.0, 1.0, 0.0)[:, None] * np.array([1.0, 0.0]) + np.array([0.0, 1.0])
    dq = speed * np.stack([np.cos(2.0 * time + rng.uniform(0, 6)), np.cos(3.0 * time + rng.uniform(0, 6))], axis=1)
    q = np.cumsum(dq, axis=0) / RATE_HZ
    torque = np.stack([law(q, dq), 1.0 + NOISE_NM * rng.standard_normal(len(q))], axis=1)
    folder.mkdir()
    np.savetxt(folder / "log.csv", np.hstack([q, torque]), delimiter=",", header="p1,p2,t1,t2", comments="")
    (folder / "mapping.toml").write_text(MAPPING, encoding="utf-8")
    return import_csv(folder / "mapping.toml", folder / "run")


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Run, Run]:
    return recording(tmp_path / "training", 1), recording(tmp_path / "test", 2)


def scored(trained: Trained, runs: tuple[Run, Run]) -> Entry:
    errors, refused = judge(trained, *runs, "motor", BANDWIDTH_HZ)
    return Entry("split", "method", runs[1].samples.joint_names, refused, errors, 0.0)


def with_second(values: float, spread: float = 0.0) -> Trained:
    """The first joint's law, which is true, and numbers for the second one's noise."""

    def predict(time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        noise = np.random.default_rng(3).standard_normal(len(q))
        return np.stack([law(q, dq), values + spread * noise], axis=1)

    return Trained(predict)


def test_the_true_law_errs_by_what_the_low_pass_leaves(runs: tuple[Run, Run]):
    errors = scored(with_second(1.0), runs).errors
    # Motions below 1 Hz pass a low-pass of 5 Hz to a thousandth; where the first joint stops its torque has a step.
    assert errors["moving filtered"].relative[0] < 0.01
    # White noise of 0.5 N·m; of 50 Hz a tenth passes: 0.5 √(1/10) of 1 N·m, to a fifth as 100 numbers are left of it.
    assert errors["all as measured"].rms[1] == pytest.approx(NOISE_NM, rel=0.1)
    assert errors["all filtered"].rms[1] == pytest.approx(NOISE_NM * 0.1**0.5, rel=0.2)
    assert errors["all filtered"].relative[1] == pytest.approx(0.16, rel=0.2)


def test_rows_at_rest_count_only_among_all(runs: tuple[Run, Run]):
    def no_offset(time: Array, q: Array, dq: Array, ddq: Array) -> Array:
        at_rest = np.abs(dq[:, 0]) < 0.01
        return np.stack([law(q, dq) - 4.0 * at_rest, np.ones(len(q))], axis=1)

    errors = scored(Trained(no_offset), runs).errors
    assert errors["moving as measured"].relative[0] < 0.05
    assert errors["all as measured"].relative[0] > 0.2


def test_a_refused_joint_is_scored_as_the_mean_of_its_training(runs: tuple[Run, Run]):
    training, _ = runs
    torque = training.samples.motor_torque
    assert torque is not None
    mean = float(torque[:, 1].mean())
    known, absent, named = with_second(mean), with_second(np.nan), with_second(100.0)._replace(refused=("j2",))
    for trained in (absent, named):
        entry = scored(trained, runs)
        assert entry.refused.tolist() == [False, True]
        assert entry.score == pytest.approx(scored(known, runs).score)
    assert entry.errors[KINDS[-1]].rms[1] == pytest.approx(99.0, rel=0.01)  # what it would have predicted


def test_fitting_noise_costs_and_refusing_it_pays(runs: tuple[Run, Run]):
    refused, fitted = scored(with_second(np.nan), runs), scored(with_second(1.0, spread=1.0), runs)
    assert refused.score < 0.7 * fitted.score
    # A joint that can be predicted is dear to refuse.
    all_refused = scored(Trained(public.refuse_all), runs)
    assert all_refused.score > 3.0 * refused.score


def test_a_predictor_of_another_shape_or_joint_is_refused(runs: tuple[Run, Run]):
    with pytest.raises(FileError, match=r"of shape \(\d+,\); it must be"):
        judge(Trained(lambda time, q, dq, ddq: dq[:, 0]), *runs, "motor", BANDWIDTH_HZ)
    with pytest.raises(FileError, match="refused j9: the joints are j1, j2"):
        judge(with_second(1.0)._replace(refused=("j9",)), *runs, "motor", BANDWIDTH_HZ)
    with pytest.raises(FileError, match="no torque of the joint"):
        judge(with_second(1.0), *runs, "joint", BANDWIDTH_HZ)


def test_a_method_that_fails_refuses_all_joints(runs: tuple[Run, Run]):
    def failing(training: Run, robot: Robot) -> Trained:
        raise FitError("too few rows")

    trained, _, reason = public.train(failing, runs[0])
    assert reason == "too few rows"
    assert scored(trained, runs).refused.all()


def test_a_strangers_mistakes_are_told_as_such(runs: tuple[Run, Run], tmp_path: Path):
    (tmp_path / "broken.py").write_text("def", encoding="utf-8")
    with pytest.raises(FileError, match=r"broken\.py cannot be loaded: SyntaxError"):
        public.loaded_method(f"{tmp_path / 'broken.py'}:method")
    (tmp_path / "wrong.py").write_text("def method(training, robot):\n    return 1 / 0\n", encoding="utf-8")
    with pytest.raises(FileError, match="has no function 'other'"):
        public.loaded_method(f"{tmp_path / 'wrong.py'}:other")
    _, method = public.loaded_method(f"{tmp_path / 'wrong.py'}:method")
    trained, _, reason = public.train(method, runs[0])
    assert reason.startswith("the method failed: ZeroDivisionError")
    assert scored(trained, runs).refused.all()
    with pytest.raises(FileError, match="the predictor failed: ValueError"):
        scored(Trained(lambda time, q, dq, ddq: q.reshape(7, 7)), runs)


def test_checks_are_of_the_defaults_and_can_fail(runs: tuple[Run, Run]):
    entry = replace(scored(with_second(1.0), runs), split="TX40 whole", method=public.DEFAULTS)
    other = scored(with_second(20.0), runs)
    assert [check.ok for check in public.make_checks([entry])] == [entry.errors["all filtered"].total <= 0.055]
    assert not public.make_checks([replace(entry, errors=other.errors)])[0].ok
    assert public.make_checks([replace(entry, method="plain WLS")]) == ()


def test_an_exported_urdf_is_held_against_the_model_itself(runs: tuple[Run, Run]):
    free = replace(scored(with_second(1.0), runs), split="TIAGo")
    worse = replace(scored(with_second(1.4), runs), split="TIAGo", method=public.AS_URDF)
    check = public.urdf_check(worse, free)
    assert not check.ok
    assert check.name.endswith("worst joint j2")
    assert public.urdf_check(replace(free, method=public.AS_URDF), free).ok
    assert not public.urdf_check(replace(worse, reason="no body has these parameters"), free).ok


def test_scores_are_of_methods_that_did_all_splits(runs: tuple[Run, Run]):
    entry = scored(with_second(1.0), runs)
    entries = [entry, replace(entry, split="another"), replace(entry, method="once")]
    assert public.scores(entries) == {"method": pytest.approx(entry.score)}
    assert "*" not in public.errors_table(entries)
    assert "*" in public.errors_table([scored(with_second(np.nan), runs)])


def test_results_go_between_the_marks_of_a_page(runs: tuple[Run, Run], tmp_path: Path):
    page = tmp_path / "page.md"
    entries = [
        replace(scored(with_second(np.nan), runs), method=public.DEFAULTS),
        scored(with_second(1.0), runs),
    ]
    page.write_text(f"# Page\n{public.BEGIN}old\n{public.END}\nmore\n", encoding="utf-8")
    for _ in range(2):
        public.write_page(page, entries)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Page\n")
    assert text.endswith(f"{public.END}\nmore\n")
    assert "old" not in text
    assert text.count(f"| {public.DEFAULTS} |") == text.count("| method |") == 1
    assert f"| {public.percent(entries[1].score)} |" in text
    assert "\\*" in text
    page.write_text("# Page\n", encoding="utf-8")
    with pytest.raises(FileError, match="add them where the results go"):
        public.write_page(page, entries)


def test_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["public"]) == 2
    assert "folder is missing; give the one that holds kuka_kr300, tiago" in capsys.readouterr().err
    assert main(["public", str(tmp_path), "--split", "Gen3 1 to 2"]) == 2
    assert "gen3.urdf is missing; it is published by wissem01chiha" in capsys.readouterr().err
    (tmp_path / GEN3.folder).mkdir()
    (tmp_path / GEN3.folder / "gen3.urdf").write_text("<robot/>", encoding="utf-8")
    with pytest.raises(FileError, match="and the benchmark is fixed to 798b3849"):
        check_digests(GEN3, tmp_path)
    with pytest.raises(FileError, match="is no Python file"):
        public.loaded_method("nowhere.py:method")
    with pytest.raises(SystemExit):
        main(["startup", str(tmp_path)])
    assert "FOLDER is of public, hindsight and laws, and startup takes none" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["startup", "--split", "TIAGo"])
    assert "--method and --page are of public" in capsys.readouterr().err


METHOD = '''
import numpy as np


def means(training, robot):
    """Predict the mean torque, whatever the motion."""
    mean = np.nanmean(training.samples.motor_torque, axis=0)
    return lambda time, q, dq, ddq: np.tile(mean, (len(q), 1))
'''


def test_a_strangers_method_is_measured(tmp_path: Path):
    if not DATA.is_dir():
        reason = "the public recordings are not in ../shared/data"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    (tmp_path / "own.py").write_text(METHOD, encoding="utf-8")
    name, method = public.loaded_method(f"{tmp_path / 'own.py'}:means")
    splits = [split for split in SPLITS if split.name == "TIAGo"]
    entries, digests = public.measure(splits, {name: method, "plain WLS": public.plain_wls}, DATA, Console())
    means, plain = entries
    assert len(digests["tiago"]) == 4
    assert plain.score < 0.5 * means.score
    # The wrist's currents carry little: least squares of them is on average no better than their mean.
    assert (plain.errors["all filtered"].relative[5:] > 0.6).all()
    assert not plain.refused.any()


@pytest.mark.slow
def test_the_defaults_are_measured_on_real_recordings(tmp_path: Path):
    if not DATA.is_dir():
        reason = "the public recordings are not in ../shared/data"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    main(["public", str(DATA), "--split", "TIAGo", "--split", "Gen3 1 to 2", "--json", str(tmp_path / "out.json")])
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    checks = {check["name"]: check for check in result["checks"]}
    assert checks["Gen3 1 to 2, vendor's errors off the published ones"]["ok"]
    assert len(checks) == 5 + 2 + 7 + 1 + 2
    assert {entry["method"] for entry in result["entries"]} == {*public.METHODS, public.VENDOR}
    assert set(result["sha256"]) == {"tiago", "kinova_gen3"}


ROBOT = biped()
TRUE = Masses(ReducedParameters(ROBOT).standard(TRUTH))

OUTCOME: dict[str, Any] = {
    "seconds": 2.0, "cpu_seconds": 2.0, "estimator": "wls", "laws": ["stribeck", "makkar"],
    "moving": [0.01, 0.02], "all": [0.1, 0.2],
}  # fmt: skip


def test_of_a_perfect_robot_only_wrong_masses_make_an_error() -> None:
    """A robot on rigid ground that is exactly where it was planned to be."""
    slow = sway(ROBOT, 3, 6.0)
    assert TRUE.parameters is not None
    support = ground_forces(ROBOT, ROBOT.foot("r_foot"), slow, TRUE.parameters)
    # A tick is an eighth of what boards send; what happens between two samples is not looked at.
    force = np.repeat(np.stack([support, np.zeros_like(support)], axis=1), EVERY, axis=0)
    motion = Motion(*(np.repeat(values, EVERY, axis=0) for values in (slow.q, slow.dq, slow.ddq)))
    by_file, by_truth = (track(ROBOT, motion, Played(force, motion.q), way) for way in (None, TRUE))
    # The masses were chosen for a zero-moment point that is some 35 mm off.
    assert 0.02 < by_file.error < 0.05
    # What the low-pass takes off a movement of at most 0.6 Hz, and its square.
    assert by_truth.error < 1e-3
    assert by_truth.planned_distance == pytest.approx(by_truth.distance, abs=3e-3)


def test_figures_are_of_the_distance_between_points() -> None:
    planned = np.array([[0.0, 0.0], [0.03, 0.0]])
    played = planned + np.array([[0.003, 0.004], [0.0, 0.0]])
    figures = balance.tracking(ROBOT.foot("r_foot"), planned, played)
    # The sole is 220 by 120 mm.
    assert figures.error == pytest.approx(0.0025)
    assert figures.worst == pytest.approx(0.005)
    assert figures.planned_distance == pytest.approx(0.06)
    assert figures.distance == pytest.approx(0.056)


def test_checks_can_be_red() -> None:
    before = Tracking(error=0.03, worst=0.05, planned_distance=0.05, distance=0.03)
    good = replace(before, error=0.014, distance=0.04)
    assert [check.ok for check in balance.checks([before], [good])] == [True, True]
    assert [check.ok for check in balance.checks([before], [replace(good, error=0.016)])] == [False, True]
    assert [check.ok for check in balance.checks([before], [replace(good, distance=0.02)])] == [True, False]


@pytest.mark.slow
def test_a_plant_follows_the_plan_of_its_own_masses() -> None:
    truth = read_plant_file(balance.PLANT, ROBOT)
    assert truth.base_link is not None
    links = [link.standard_parameters for link in (truth.base_link, *(joint.link for joint in truth.joints))]
    masses = Masses(np.concatenate([link for link in links if link is not None]))
    tracked = []
    for way in (None, masses):
        planned = balance.plan(ROBOT, 9.6, 5, way)
        tracked.append(track(ROBOT, planned, balance.play(ROBOT, truth, planned), way))
    assert all(check.ok for check in balance.checks(tracked[:1], tracked[1:]))
    # Servos lag and gears bend by about a millimetre of the point; cables pull it by half of one.
    assert tracked[1].error < 3e-3


@pytest.mark.slow
def test_one_identification_ends_and_is_held_against_the_truth() -> None:
    identification = stopping.identified(3)
    outcome = stopping.outcome(identification)
    assert outcome.motion <= stopping.MOST_S
    assert len(outcome.deviations) == identification.model.base.rank
    # Five standard deviations: one in two million of so many draws.
    assert np.max(np.abs(outcome.deviations)) < 5.0
    assert stopping.default_motion(identification, Console()) >= stopping.LEAST_RATIO


def test_a_worse_or_slower_choice_fails() -> None:
    def kept(**changes: Any) -> list[bool]:
        checks = laws.make_checks({"demo": {"before": OUTCOME, "now": OUTCOME | changes}})
        return [check.ok for check in checks]

    assert kept(cpu_seconds=1.0) == [True, True, True]
    assert kept(cpu_seconds=3.0) == [True, False, True]
    assert kept(cpu_seconds=6.0) == [False, False, True]
    assert kept(moving=[0.011, 0.022]) == [True, True, False]


def test_the_table_has_both_versions() -> None:
    text = laws.outcome_table({"demo": {"before": OUTCOME, "now": OUTCOME}})
    assert text.count("demo, before") == text.count("demo, now") >= 1
    assert text.count("stribeck makkar") == 2


def test_a_folder_without_recordings_and_a_commit_that_is_none_are_named(tmp_path: Path, capsys) -> None:
    with pytest.raises(FileError, match="has neither the runs excitation and verification"):
        laws.recordings(tmp_path, tmp_path)
    with pytest.raises(BenchmarkFailed, match="fetch all of it"), laws.checked_out("0" * 40, tmp_path / "before"):
        pass
    assert main(["laws"]) == 2
    assert "laws needs FOLDER" in capsys.readouterr().err


@pytest.mark.slow
def test_both_versions_are_measured_on_the_same_runs(tmp_path: Path, monkeypatch) -> None:
    """The committed version stands for the one before: it must come out with the laws of the recording."""
    robot, joints = arm(2), {"j1": stribeck(6.0, 4.0, 9.0, 0.2), "j2": loaded(5.0, 8.0, 0.08)}
    for name, seed in (("excitation", 1), ("verification", 7)):
        run = law_run(robot, joints, motion_seed=seed, noise_seed=seed, repeats=1)
        save_samples(tmp_path / name, run.samples, {"robot": "cobot6:2"})
    monkeypatch.setattr(laws, "BEFORE", "HEAD")
    options = argparse.Namespace(folder=str(tmp_path), seed=0)
    result = laws.bench(options, Console())
    assert len(result.checks) == 3
    both = result.fields["recordings"]["demo"]
    assert both["before"]["laws"] == both["now"]["laws"] == ["stribeck", "coulomb_viscous+load"]
    assert both["before"]["host"] != both["now"]["host"]
    assert not Path(both["before"]["host"]).exists()  # the work tree is gone
