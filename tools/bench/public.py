"""`./run bench public FOLDER`: models of public recordings, judged on recordings that they were not fitted to.

A method is one function: it is given a recording to train on and its robot, and returns a predictor, a function of time
and motion. The benchmark gives it the motion of the other recording, and compares the torque.

    def method(training: Run, robot: Robot) -> Predictor: ...
    def predictor(time, q, dq, ddq) -> torque  # nan in the columns of joints that the method refuses to predict

It may return Trained(predictor, refused) instead, with the names of joints whose prediction it says not to use.

Positions go through a zero-phase low-pass of the split's bandwidth and are differentiated. Measured and predicted
torque are compared after the same low-pass ("filtered"), and both without it ("as measured"), over all rows but one
period of the bandwidth at either end, and over those in which the joint is faster than 3 % of its largest speed.

A joint that is refused is scored as if its torque were predicted to be the mean of its torque in training. So refusing
a joint whose torque is noise costs about 100 %, fitting that noise costs what it costs, and refusing a joint that
others predict is dear. A method that fails on a recording refuses all its joints. The score of a split is the geometric
mean over joints of their relative error over all rows, torque filtered; the score of a method that over the splits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from jointbench.arrays import Array
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.errors import FileError, FitError, JointbenchError
from jointbench.files import foreign_code, write_file
from jointbench.identification import FitSettings, Model, fit
from jointbench.identification.observations import observe
from jointbench.model import Robot, base_parameters, inverse_dynamics, load_robot, model_columns
from jointbench.recording import Run
from jointbench.results import export
from tools.bench.public_recordings import (
    GEN3,
    SOURCES,
    SPLITS,
    Part,
    Split,
    check_digests,
    gen3_vendor_torque,
    import_part,
)
from tools.bench.public_scoring import KINDS, Entry, Predictor, Trained, geometric_mean, judge, refuse_all

Method = Callable[[Run, Robot], Predictor | Trained]
"""method(training, robot) → predictor; `training` holds the training rows only."""


def jointbench_defaults(training: Run, robot: Robot) -> Trained:
    """The product's `fit` with no options, delay and friction with memory as it finds them."""
    model = default_fit(training)
    return Trained(delayed(model, model.predict), refused_joints(model))


@lru_cache(maxsize=1)
def default_fit(training: Run) -> Model:
    """Return what `fit` makes of a run with no options."""
    return fit(training)


def refused_joints(model: Model) -> tuple[str, ...]:
    """Return the joints that a model's verdict refuses."""
    return tuple(verdict.name for verdict in model.joint_verdicts if verdict.is_refused)


def delayed(model: Model, torque_of_motion: Callable[[Array, Array, Array], Array]) -> Predictor:
    """A torque of the motion, with the delay that the model was fitted with: the motion came so much later."""
    delay = model.delay.seconds

    def predict(times: Array, q: Array, dq: Array, ddq: Array) -> Array:
        torque = np.array(torque_of_motion(q, dq, ddq))
        for joint in np.flatnonzero(delay):
            torque[:, joint] = np.interp(times + delay[joint], times, torque[:, joint])
        return torque

    return predict


def jointbench_urdf(training: Run, robot: Robot) -> Trained:
    """The bodies of the URDF that the default fit is exported as, with the drives that belong to them."""
    model = default_fit(training)
    with TemporaryDirectory() as folder:
        exported = load_robot(str(export(model, Path(folder) / "exported.urdf")))
    bodies = exported.standard_parameters
    assert bodies is not None
    physical = model.physical
    full = np.concatenate([bodies, physical.drive_parameters, physical.compensation_parameters])
    parameters = model.base.group(full)

    def torque_of_motion(q: Array, dq: Array, ddq: Array) -> Array:
        columns, _ = model_columns(robot, q, dq, ddq)
        return (model.base.project(columns) @ parameters).reshape(q.shape)

    return Trained(delayed(model, torque_of_motion), refused_joints(model))


PLAIN_CUTOFF_HZ = 20.0


def plain_wls(training: Run, robot: Robot) -> Predictor:
    """Textbook weighted least squares: Coulomb and viscous friction, 20 Hz, no delay, no prior, nothing refused."""
    side = training.provenance.get("fit", {}).get("torque", "motor")
    base = base_parameters(robot)
    rows = observe(training, robot, base, FitSettings(cutoff_Hz=PLAIN_CUTOFF_HZ, delay=0.0, torque=side))
    weights = np.ones(robot.n_joints)
    parameters = np.zeros(base.rank)
    for _ in range(2):  # ordinary first, then weighted by what that leaves of each joint
        used = rows.moving
        scale = np.where(used, weights, 0.0)
        regressor = (rows.regressor * scale[:, :, None]).reshape(-1, base.rank)
        parameters = np.linalg.lstsq(regressor, (rows.torque * scale).ravel())[0]
        residual = rows.torque - rows.regressor @ parameters
        squares = np.sum(np.where(used, residual, 0.0) ** 2, axis=0)
        weights = np.sqrt(np.maximum(used.sum(axis=0), 1) / np.maximum(squares, 1e-300))

    def predict(times: Array, q: Array, dq: Array, ddq: Array) -> Array:
        columns, _ = model_columns(robot, q, dq, ddq)
        return (base.project(columns) @ parameters).reshape(q.shape)

    return predict


def robot_file(training: Run, robot: Robot) -> Predictor:
    """The bodies that the robot's file publishes, without friction and drives; nothing is fitted."""
    bodies = robot.standard_parameters
    if bodies is None:
        raise FileError(f"robot {robot.name!r} publishes no masses and inertias")
    return lambda times, q, dq, ddq: inverse_dynamics(robot, q, dq, ddq, bodies)


DEFAULTS, AS_URDF = "jointbench (defaults)", "jointbench (as URDF)"
METHODS: Mapping[str, Method] = {
    DEFAULTS: jointbench_defaults,
    AS_URDF: jointbench_urdf,
    "plain WLS": plain_wls,
    "robot's file": robot_file,
}
VENDOR = "vendor's model"
"""Published predictions of the test itself, on the Gen3 only."""


def measure(
    splits: Sequence[Split], methods: Mapping[str, Method], folder: Path, console: Console
) -> tuple[list[Entry], dict[str, dict[str, str]]]:
    """Train each method on each split, and judge it; of the Gen3 also the vendor's own predictions.

    Args:
        splits: some of `SPLITS`.
        methods: by name.
        folder: with the sets of recordings.
        console: for progress.

    Returns:
        What each came to, and the digests of the files by set.

    Raises:
        FileError: a file is missing or is another one; or a predictor returned another shape.
    """
    used = {split.test.source.folder for split in splits}
    digests = {source.folder: check_digests(source, folder) for source in SOURCES if source.folder in used}
    entries: list[Entry] = []
    with TemporaryDirectory() as scratch:
        runs = {
            part: import_part(part, folder, Path(scratch)) for split in splits for part in (split.training, split.test)
        }
        outcomes: dict[tuple[str, Part], tuple[Trained, float, str]] = {}
        for split in splits:
            training, test, side = runs[split.training], runs[split.test], split.test.source.torque
            for name, method in methods.items():
                console.progress(f"{split.name}: {name}")
                key = (name, split.training)
                if key not in outcomes:
                    outcomes[key] = train(method, training)
                trained, seconds, reason = outcomes[key]
                errors, refused = judge(trained, training, test, side, split.bandwidth_Hz)
                entries.append(Entry(split.name, name, test.robot.joint_names, refused, errors, seconds, reason))
            if split.test.source is GEN3:
                torque = gen3_vendor_torque(folder, split.test)
                vendor = Trained(lambda *_, torque=torque: torque)
                errors, refused = judge(vendor, training, test, side, split.bandwidth_Hz)
                entries.append(Entry(split.name, VENDOR, test.robot.joint_names, refused, errors, 0.0))
    return entries, digests


def train(method: Method, training: Run) -> tuple[Trained, float, str]:
    """Return what a method learned, the seconds that took, and why it refuses everything where it failed."""
    begin = time.perf_counter()
    reason = ""
    try:
        trained = method(training, training.robot)
    except JointbenchError as error:
        trained, reason = refuse_all, str(error)
    seconds = time.perf_counter() - begin
    return trained if isinstance(trained, Trained) else Trained(trained), seconds, reason


WANTED_PERCENT: Mapping[str, tuple[float, ...]] = {
    "KR300 A to B": (8.0, 10.1, 4.3, 14.1, 8.3, 15.8),
    "KR300 A to C": (6.7, 8.0, 3.7, 16.9, 9.3, 16.2),
    "TIAGo": (17.9, 15.0, 7.6, 10.0, 18.5),
}
"""Relative error of the product's defaults over the rows where a joint moves, torque filtered, first joints first."""

WANTED_REFUSED = ("arm_5_joint", "arm_6_joint", "arm_7_joint")
WANTED_GEN3_NM = (1.20, 2.89, 0.57, 0.95, 0.31, 0.41, 0.18)
"""RMS error of the sensors' torque as measured, all rows, of joints that are refused, too."""

VENDOR_NM = (1.78, 3.57, 0.68, 1.62, 0.74, 0.43, 0.22)
"""The same of the vendor's model, as published."""

ROUNDED_NM = 0.005
WANTED_URDF_RATIO = 1.1
"""Of a joint's error with the exported URDF over that with the model itself, moving rows, torque filtered."""

FROM_URDF = ("TIAGo", "Gen3 1 to 2")
WANTED_TX40_PERCENT = {"TX40 whole": 5.5, "TX40 5.2 s to 8 s": 8.4}
"""‖error‖ / ‖torque‖ of all joints together over all rows, torque filtered."""


def make_checks(entries: Sequence[Entry]) -> tuple[Check, ...]:
    """Figures that the product's default options must reach on the splits, and the vendor's, which are known."""
    checks: list[Check] = []
    ours = {entry.split: entry for entry in entries if entry.method == DEFAULTS}
    for entry in entries:
        where, joints = entry.split, entry.joints
        if entry.method == AS_URDF and where in FROM_URDF and where in ours:
            checks.append(urdf_check(entry, ours[where]))
        if entry.method == VENDOR:
            off = float(np.max(np.abs(entry.errors["all as measured"].rms - VENDOR_NM)))
            checks.append(Check("Gen3 1 to 2, vendor's errors off the published ones", off, "<=", ROUNDED_NM, "N·m"))
        if entry.method != DEFAULTS:
            continue
        percent = 100.0 * entry.errors["moving filtered"].relative
        for name, value, limit in zip(joints, percent, WANTED_PERCENT.get(where, ()), strict=False):
            checks.append(Check(f"{where}, {name}, moving", float(value), "<=", limit, "%"))
        if where == "TIAGo":
            missed = sum(not entry.refused[joints.index(name)] for name in WANTED_REFUSED)
            others = int(entry.refused.sum()) - len(WANTED_REFUSED) + missed
            checks.append(Check("TIAGo, joints without information that are not refused", missed, "==", 0))
            checks.append(Check("TIAGo, other joints that are refused", others, "==", 0))
        if where == "Gen3 1 to 2":
            for name, value, limit in zip(joints, entry.errors[KINDS[-1]].rms, WANTED_GEN3_NM, strict=True):
                checks.append(Check(f"{where}, {name}, sensor", float(value), "<=", limit, "N·m"))
        if where in WANTED_TX40_PERCENT:
            total = 100.0 * entry.errors["all filtered"].total
            checks.append(Check(f"{where}, all joints, all rows", total, "<=", WANTED_TX40_PERCENT[where], "%"))
    return tuple(checks)


def urdf_check(exported: Entry, free: Entry) -> Check:
    """The exported URDF beside the model itself, at the joint where it is worst; or that none could be exported."""
    kind = "moving filtered"
    if exported.reason:
        return Check(f"{exported.split}, models that cannot be exported as URDF", 1, "==", 0)
    ratios = np.where(exported.refused, 0.0, exported.errors[kind].relative / free.errors[kind].relative)
    worst = int(np.argmax(ratios))
    name = f"{exported.split}, as URDF over itself, worst joint {exported.joints[worst]}"
    return Check(name, float(ratios[worst]), "<=", WANTED_URDF_RATIO)


def scores(entries: Sequence[Entry]) -> dict[str, float]:
    """Score of each method that was measured on every split: the geometric mean over the splits."""
    names, splits = dict.fromkeys(entry.method for entry in entries), {entry.split for entry in entries}
    of = {name: [entry.score for entry in entries if entry.method == name] for name in names}
    return {name: geometric_mean(values) for name, values in of.items() if len(values) == len(splits)}


def percent(value: float) -> str:
    """A share in percent, three digits of it.

    >>> percent(0.0801), percent(0.1234), percent(2.4), percent(86.6)
    ('8.0', '12.3', '240', '8660')
    """
    return f"{100.0 * value:.1f}" if value < 1.0 else f"{100.0 * value:.0f}"


def errors_table(entries: Sequence[Entry]) -> str:
    """Errors joint by joint [%]: torque filtered | as measured, where the joints move and over all rows."""
    most = max(len(entry.joints) for entry in entries)
    rows: list[list[str]] = []
    for entry in entries:
        for kind in ("moving", "all"):
            smooth, raw = entry.errors[f"{kind} filtered"], entry.errors[f"{kind} as measured"]
            cells = [
                f"{percent(a)}|{percent(b)}" + "*" * bool(no)
                for a, b, no in zip(smooth.relative, raw.relative, entry.refused, strict=True)
            ]
            first = kind == "moving"
            head = f"{entry.split}, {entry.method}" if first else f"  trained in {entry.seconds:.1f} s"
            cells += [""] * (most - len(cells)) + [f"{percent(smooth.total)}|{percent(raw.total)}"]
            rows.append([head, kind, *cells, "" if first else percent(entry.score)])
    return table(
        ("error [%], torque filtered|as measured", "rows", *map(str, range(1, most + 1)), "together", "score"), rows
    )


BEGIN, END = (
    "<!-- results: ./run bench public FOLDER --page FILE writes what is between -->\n",
    "<!-- end of results -->",
)


def write_page(path: Path, entries: Sequence[Entry]) -> None:
    """Write the results into a page, between its two marks.

    Raises:
        FileError: the page cannot be read, or lacks the marks.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"--page {path} cannot be read: {error}") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise FileError(f"--page {path} has no lines {BEGIN.strip()!r} and {END!r}; add them where the results go")
    write_file(path, f"{before}{begin}\n{page_tables(entries)}\n{end}{after}")


def page_tables(entries: Sequence[Entry]) -> str:
    """Scores of all methods by split, and the errors of the defaults joint by joint, in Markdown."""
    splits, methods = (dict.fromkeys(names) for names in zip(*((e.split, e.method) for e in entries), strict=True))
    score, whole = {(entry.method, entry.split): percent(entry.score) for entry in entries}, scores(entries)
    lines = [f"| score [%] | {' | '.join(splits)} | all |", f"| --- {'| --- ' * len(splits)}| --- |"]
    for name in methods:
        cells = [score.get((name, split), "") for split in splits]
        lines.append(f"| {name} | {' | '.join(cells)} | {percent(whole[name]) if name in whole else ''} |")
    lines += ["", f"| {DEFAULTS}, torque filtered [%] | moving | all rows |", "| --- | --- | --- |"]
    for entry in entries:
        if entry.method == DEFAULTS:
            moving, everywhere = (
                " ".join(
                    percent(value) + "\\*" * bool(no)
                    for value, no in zip(entry.errors[kind].relative, entry.refused, strict=True)
                )
                for kind in ("moving filtered", "all filtered")
            )
            lines.append(f"| {entry.split} | {moving} | {everywhere} |")
    return "\n".join([*lines, "", "\\* refused, and scored as the mean of its torque in training.", ""])


def loaded_method(place: str) -> tuple[str, Method]:
    """Return a method by "FILE.py:FUNCTION", and its name.

    What it raises in training is a FitError, by which it refuses all joints.

    Raises:
        FileError: there is no such file or function in it, or the file cannot be loaded.
    """
    name, _, function = place.rpartition(":")
    path = Path(name)
    spec = spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise FileError(f"--method {place}: {name or place!r} is no Python file; give FILE.py:FUNCTION")
    module = module_from_spec(spec)
    with foreign_code(FileError, f"--method {place}: {path} cannot be loaded", "mend it"):
        spec.loader.exec_module(module)
    method = getattr(module, function, None)
    if not callable(method):
        raise FileError(f"--method {place}: {path} has no function {function!r}; give FILE.py:FUNCTION")

    def guarded(training: Run, robot: Robot) -> Predictor | Trained:
        with foreign_code(FitError, "the method failed", "mend it, or let it refuse joints by nan"):
            return cast(Predictor | Trained, method(training, robot))

    return place, guarded


def recordings_folder(options: argparse.Namespace) -> Path:
    """Return the folder of the recordings.

    Raises:
        FileError: there is none.
    """
    if options.folder is None or not Path(options.folder).is_dir():
        given = f"{options.folder} is no folder" if options.folder else "the recordings' folder is missing"
        listed = ", ".join(source.folder for source in SOURCES)
        raise FileError(
            f"{given}; give the one that holds {listed} (docs/public_benchmark.md says where each is had): "
            f"./run bench {options.what} FOLDER"
        )
    return Path(options.folder)


def bench(options: argparse.Namespace, console: Console) -> Result:
    """Measure all methods on all splits, or on those asked for."""
    folder = recordings_folder(options)
    splits = [split for split in SPLITS if not options.split or split.name in options.split]
    methods = {**METHODS, **dict(map(loaded_method, options.method))}
    if options.page and (options.split or options.method):
        raise FileError("--page is of all splits and our methods; leave --split and --method out")
    entries, digests = measure(splits, methods, folder, console)
    console.say(errors_table(entries))
    console.say("  * refused, and scored as the mean of its torque in training")
    for entry in entries:
        if entry.reason:
            console.say(f"  {entry.split}, {entry.method} failed: {entry.reason}")
    for name, score in scores(entries).items():
        console.say(f"score of {name}: {100.0 * score:.1f} % over {len(splits)} splits")
    if options.page:
        write_page(Path(options.page), entries)
    fields: dict[str, Any] = {
        "entries": [entry.to_dict() for entry in entries],
        "scores": scores(entries),
        "splits": {
            split.name: {
                "bandwidth_Hz": split.bandwidth_Hz,
                "training": {"log": split.training.log, "rows": split.training.rows},
                "test": {"log": split.test.log, "rows": split.test.rows},
                "origin": split.test.source.origin,
            }
            for split in splits
        },
        "sha256": digests,
    }
    return Result("bench public", None, make_checks(entries), fields)
