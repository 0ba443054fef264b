"""A whole file of each kind that users give, what reads it, and mutations of its bytes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy

import jointbench as jb
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchError
from jointbench.bench.flash.slots import given_config
from jointbench.cli.main import main
from jointbench.errors import JointbenchError
from jointbench.excitation import read_workspace
from jointbench.files import sealed_json
from jointbench.recording import Samples, save_samples
from jointbench.results import convert
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.recording.simulated_run import record

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_]{3,}")
NUMBERS = (
    b"0", b"-1", b"1e300", b"-1e300", b"1e-300", b"1e999", b"nan", b"inf", b"-inf", b"99999999", b"9" * 23, b"9" * 5000,
    b"0x7f", b"1_0", b"\xd9\xa3", b"1,5", b"", b"true", b'"1"', b"[1]", b"{}", b"null", b"-0.0",
)  # fmt: skip
PIECES = (
    b"\0", b'"', b"'", b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"[[", b"]]", b"{" * 200, b"[" * 3000,
    b"a." * 3000, b"../" * 8, b"=", b"#", b",", b";", b"<!--", b"]]>", b"&lt;", b"\\u0000", b"/dev/zero", b"$(true)",
    b"%s%n", b"\x1b[2J",
)  # fmt: skip


def mutated(data: bytes, rng: Random) -> tuple[bytes, str]:
    """Return the bytes after one to three mutations, and their names."""
    names: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(_MUTATIONS))
        names.append(name)
        data = _MUTATIONS[name](data, rng)
    return data, " + ".join(names)


def displaced(path: Path, rng: Random) -> str:
    """Put something that is no such file in a file's place; return what."""
    what = rng.choice(("nothing", "a folder", "a pipe", "a device", "a link to itself"))
    path.unlink()
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a device":
        path.symlink_to("/dev/zero")
    elif what == "a link to itself":
        path.symlink_to(path)
    return what


def _flip(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 32))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _leave_out(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 8, 64, 512)) :]


def _repeat(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 16, 256, 4096))]
    return data[:start] + piece * rng.choice((2, 3, 20)) + data[start:]


def _exchange_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _drop_line(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _insert(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(PIECES) + data[start:]


def _number(data: bytes, rng: Random) -> bytes:
    return _replace(data, _NUMBER, rng.choice(NUMBERS), rng)


def _word(data: bytes, rng: Random) -> bytes:
    words = [match[0] for match in _WORD.finditer(data)]
    return _replace(data, _WORD, rng.choice([*words, b"x", b"../../escaped", b"a" * 300]), rng) if words else data


def _replace(data: bytes, pattern: re.Pattern[bytes], by: bytes, rng: Random) -> bytes:
    places = list(pattern.finditer(data))
    if not places:
        return data
    place = rng.choice(places)
    return data[: place.start()] + by + data[place.end() :]


_MUTATIONS = {
    "flipped bits": _flip,
    "cut": _cut,
    "left out": _leave_out,
    "repeated": _repeat,
    "lines exchanged": _exchange_lines,
    "line dropped": _drop_line,
    "inserted": _insert,
    "number": _number,
    "word": _word,
}


ROOT = Path(__file__).resolve().parents[2]
_ROWS = 300  # of a log: enough for all that is looked at, and read in milliseconds


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: such as "URDF".
        files: paths within the kind's folder of what is mutated, one at a time.
        commands: that read it, of `jointbench` or of `READERS`; "{out}" is a name that is free, "{file}" the mutated
            one.
    """

    name: str
    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]


READERS: dict[str, Callable[[Path], object]] = {
    "sim": read_bench_file,  # without starting its boards
    "configuration": lambda path: given_config(path, 1),
    "workspace": read_workspace,
}
"""Readers that no command reaches without boards or a long search, by the word that stands for them in a command."""


def read(command: list[str]) -> int:
    """Carry out a command; return its exit code."""
    if command[0] not in READERS:
        return main(command)
    try:
        READERS[command[0]](Path(command[1]))
    except (JointbenchError, BenchError):
        return 2
    return 0


BENCH = """version = 1
name = "lab"
robot = "cobot6:2"
clock = "wall"
[limits]
velocity_rad_s = 1.5
[[board]]
node = 1
joint = "j1"
url = "serial:nowhere1"
[[board]]
node = 2
joint = "j2"
url = "serial:nowhere2"
"""
MAPPING = """version = 1
robot = "cobot6:2"
[[files]]
path = "{path}"
[time]
column = "{time}"
unit = "s"
[position]
columns = {positions}
unit = "rad"
side = "joint"
[torque]
columns = {torques}
unit = "N·m"
side = "joint"
"""
WORKSPACE = """version = 1
table_mm = 0
clearance_mm = 20
[[points]]
link = "flange_and_tool"
offset_mm = [0, 0, 80]
lowest_mm = { x = -500, z = 100 }
highest_mm = { x = 500 }
[[excepted]]
links = ["wrist_1", "flange_and_tool"]
"""
CONFIGURATION = {"version": 1, "node": 1, "facts": {"encoder.motor_counts": 4096}, "partner": {"node": 2, "facts": {}}}


def make_corpus(folder: Path) -> tuple[Kind, ...]:
    """Write a whole file of each kind, each kind into a folder of its own, and `kinds.json` beside them."""
    kinds = tuple(Kind(name, *make(_made(folder / name))) for name, make in _KINDS.items())
    text = json.dumps([[kind.name, kind.files, kind.commands] for kind in kinds])
    (folder / "kinds.json").write_text(text, encoding="utf-8")
    return kinds


def read_corpus(folder: Path) -> tuple[Kind, ...]:
    """Return the kinds that `make_corpus` wrote there."""
    return tuple(
        Kind(name, tuple(files), tuple(map(tuple, commands)))
        for name, files, commands in json.loads((folder / "kinds.json").read_text(encoding="utf-8"))
    )


def _mapping(folder: Path, path: str, time: str = "t", first: str = "q{}", second: str = "tau{}") -> None:
    columns = {
        name: json.dumps([form.format(k) for k in (1, 2)]) for name, form in (("positions", first), ("torques", second))
    }
    (folder / "log.toml").write_text(MAPPING.format(path=path, time=time, **columns), encoding="utf-8")


_Made = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _robot(folder: Path) -> _Made:
    text = (resources.files("jointbench.model") / "library" / "modular7.toml").read_text(encoding="utf-8")
    (folder / "robot.toml").write_text(text, encoding="utf-8")
    return ("robot.toml",), (("info", "robot.toml"),)


def _urdf(folder: Path) -> _Made:
    jb.export(jb.load_robot("modular7:2"), folder / "arm.urdf")
    return ("arm.urdf",), (("info", "arm.urdf"),)


def _bench(folder: Path) -> _Made:
    (folder / "bench.toml").write_text(BENCH, encoding="utf-8")
    return ("bench.toml",), (("list", "bench.toml"),)


def _plant(folder: Path) -> _Made:
    plant = ROOT / "hil_tests" / "virtual_bench" / "plants" / "cobot6.toml"
    (folder / "plant.toml").write_text(plant.read_text(encoding="utf-8"), encoding="utf-8")
    bench = (ROOT / "hil_tests" / "benches" / "cobot6.toml").read_text(encoding="utf-8")
    (folder / "bench.toml").write_text(bench.replace("../virtual_bench/plants/cobot6.toml", "plant.toml"), "utf-8")
    return ("plant.toml", "bench.toml"), (("sim", "bench.toml"),)


def _configuration(folder: Path) -> _Made:
    (folder / "config.json").write_text(json.dumps(CONFIGURATION, indent=1), encoding="utf-8")
    return ("config.json",), (("configuration", "config.json"),)


def _workspace(folder: Path) -> _Made:
    (folder / "workspace.toml").write_text(WORKSPACE, encoding="utf-8")
    return ("workspace.toml",), (("workspace", "workspace.toml"),)


def _model(folder: Path) -> _Made:
    jb.fit(synthetic_run(arm(2), motion_seed=1, noise_seed=1)).save(folder / "model.json")
    values = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    bare = {name: value for name, value in values.items() if name not in ("digests", "digest")} | {"version": 3}
    (folder / "bare.json").write_text(json.dumps(bare, indent=1), encoding="utf-8")
    commands = (("export", "{file}", "--out", "{out}.h"), ("export", "{file}", "--out", "{out}.urdf"))
    return ("model.json", "bare.json", "bare.json"), commands


def _plan(folder: Path) -> _Made:
    motion = jb.random_excitation(jb.load_robot("cobot6:2"), period=3.2)
    (folder / "plan.json").write_text(sealed_json(motion.to_dict()), encoding="utf-8")
    (folder / "bare.json").write_text(json.dumps(motion.to_dict(), indent=1), encoding="utf-8")
    (folder / "bench.toml").write_text(BENCH, encoding="utf-8")
    return ("plan.json", "bare.json", "bare.json"), (("run", "bench.toml", "--plan", "{file}"),)


def _columns() -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    k = np.arange(_ROWS, dtype=np.float64)
    return {"t": 0.01 * k, "q1": 0.1 * np.sin(0.1 * k), "q2": -0.1 * np.cos(0.1 * k), "tau1": k % 7, "tau2": k % 5}


def _csv(folder: Path) -> _Made:
    columns = _columns()
    rows = [",".join(f"{cell:.4f}" for cell in row) for row in zip(*columns.values(), strict=True)]
    (folder / "log.csv").write_text("\n".join([",".join(columns), *rows, ""]), encoding="utf-8")
    _mapping(folder, "log.csv")
    return ("log.csv", "log.toml"), (
        ("import", "log.toml", "--out", "{out}"),
        ("import", "--robot", "cobot6:2", "--log", "log.csv", "--propose", "{out}.toml"),
    )


def _friction(folder: Path) -> _Made:
    rows = [f"{0.02 * k},{1 + 0.02 * k}\n" for k in range(-20, 21) if k]
    (folder / "friction.csv").write_text("velocity_rad_s,torque_Nm\n" + "".join(rows), encoding="utf-8")
    quick = ("friction", "friction.csv", "--law", "coulomb_viscous")
    return ("friction.csv",), (quick, quick, quick, ("friction", "friction.csv", "--law", "stribeck"))


def _parquet(folder: Path) -> _Made:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(dict(_columns())), folder / "log.parquet")
    _mapping(folder, "log.parquet")
    return ("log.parquet",), (("import", "log.toml", "--out", "{out}"),)


def _matlab(folder: Path) -> _Made:
    columns = _columns()
    rec = {"t": columns["t"], "q": np.stack([columns["q1"], columns["q2"]], axis=1)}
    scipy.io.savemat(folder / "log.mat", {"rec": rec | {"tau": np.stack([columns["tau1"], columns["tau2"]])}})
    _mapping(folder, "log.mat", "rec.t", "rec.q[{}]", "rec.tau[{}]")
    return ("log.mat",), (
        ("import", "log.toml", "--out", "{out}"),
        ("import", "--robot", "cobot6:2", "log.mat", "--out", "{out}", *_ANSWERS),
    )


def _matlab_7_3(folder: Path) -> _Made:
    """A struct with a matrix, and a cell of two vectors, as MATLAB lays them out in HDF5."""
    import h5py

    columns = _columns()
    with h5py.File(folder / "log.mat", "w", userblock_size=512) as file:
        rec, kept = file.create_group("rec"), file.create_group("#refs#")
        rec.attrs["MATLAB_class"] = np.bytes_("struct")
        rec["t"] = columns["t"][None, :]
        rec["q"] = np.stack([columns["q1"], columns["q2"]])
        for k in (1, 2):
            kept[f"tau{k}"] = columns[f"tau{k}"][None, :]
        rec["tau"] = np.array([[kept["tau1"].ref], [kept["tau2"].ref]], dtype=h5py.ref_dtype)
        for name, kind in (("t", "double"), ("q", "double"), ("tau", "cell")):
            rec[name].attrs["MATLAB_class"] = np.bytes_(kind)
    _mapping(folder, "log.mat", "rec.t", "rec.q[{}]", "rec.tau({})")
    return ("log.mat",), (
        ("import", "log.toml", "--out", "{out}"),
        ("import", "--robot", "cobot6:2", "log.mat", "--out", "{out}", *_ANSWERS),
    )


def _lerobot(folder: Path) -> _Made:
    import pyarrow as pa
    from pyarrow import parquet

    columns = _columns()
    vectors = {
        f"observation.{name}": pa.array(
            list(np.stack([columns[f"{of}1"], columns[f"{of}2"]], axis=1)), type=pa.list_(pa.float64(), 2)
        )
        for name, of in (("state", "q"), ("effort", "tau"))
    }
    data, meta = folder / "log" / "data" / "chunk-000", folder / "log" / "meta"
    data.mkdir(parents=True)
    meta.mkdir()
    episode = np.arange(_ROWS) * 2 // _ROWS
    table = pa.table({**vectors, "timestamp": columns["t"], "episode_index": episode})
    parquet.write_table(table, data / "file-000.parquet")
    features = {name: {"dtype": "float64", "shape": [2], "names": ["j1", "j2"]} for name in vectors}
    (meta / "info.json").write_text(json.dumps({"fps": 100, "features": features}), encoding="utf-8")
    _mapping(folder, "log", "timestamp", "observation.state.j{}", "observation.effort.j{}")
    mapping = folder / "log.toml"
    mapping.write_text(f"allow_gaps = true\n{mapping.read_text(encoding='utf-8')}", encoding="utf-8")
    return ("log/data/chunk-000/file-000.parquet", "log/meta/info.json"), (
        ("import", "log.toml", "--out", "{out}"),
        ("import", "--robot", "cobot6:2", "log", "--out", "{out}", *_ANSWERS),
    )


_ANSWERS = ("--set", "position.unit=rad", "position.side=joint")
"""To what an import asks of logs without a mapping."""


def _long_csv(folder: Path) -> _Made:
    columns = _columns()
    rows = [f"{columns['t'][k]:.4f},{name},{columns[name][k]:.4f}" for k in range(_ROWS) for name in list(columns)[1:]]
    (folder / "log.csv").write_text("\n".join(["t,signal,value", *rows, ""]), encoding="utf-8")
    return ("log.csv",), (("import", "--robot", "cobot6:2", "log.csv", "--out", "{out}", *_ANSWERS),)


def _bag(folder: Path, plugin: str) -> _Made:
    """A rosbag2 in either of its storages, or a bag of ROS 1, of joint states."""
    from rosbags import rosbag1, rosbag2
    from rosbags.typesys import Stores, get_typestore

    kind, second = "sensor_msgs/msg/JointState", 1_000_000_000
    store = get_typestore(Stores.ROS1_NOETIC if plugin == "ROS1" else Stores.ROS2_HUMBLE)
    columns = _columns()
    first = {"seq": 0} if plugin == "ROS1" else {}
    with (
        rosbag1.Writer(folder / "log.bag")
        if plugin == "ROS1"
        else rosbag2.Writer(folder / "log", version=9, storage_plugin=rosbag2.StoragePlugin[plugin]) as writer
    ):
        connection = writer.add_connection("/joint_states", kind, typestore=store)
        for row in range(_ROWS):
            at = second * 1_700_000_000 + round(second * columns["t"][row])
            stamp = store.types["builtin_interfaces/msg/Time"](sec=at // second, nanosec=at % second)
            message = store.types[kind](
                header=store.types["std_msgs/msg/Header"](stamp=stamp, frame_id="", **first),
                name=["j1", "j2"],
                position=np.array([columns["q1"][row], columns["q2"][row]]),
                velocity=np.zeros(2),
                effort=np.array([columns["tau1"][row], columns["tau2"][row]]),
            )
            data = store.serialize_ros1(message, kind) if plugin == "ROS1" else store.serialize_cdr(message, kind)
            writer.write(connection, at, data)
    _mapping(folder, "log.bag" if plugin == "ROS1" else "log", "stamp", "j{}.position", "j{}.effort")
    files = ("log.bag",) if plugin == "ROS1" else _files(folder, "log")
    return files, (("import", "log.toml", "--out", "{out}"),)


def _run(folder: Path) -> _Made:
    record(folder / "run")
    return _files(folder, "run"), (("doctor", "run"), ("info", "run"))


def _unfinished_run(folder: Path) -> _Made:
    """A run whose program was killed: it has no digests yet."""
    record(folder / "run")
    (folder / "run" / "result.json").unlink()
    return _run_files(folder)


def _run_files(folder: Path) -> _Made:
    return _files(folder, "run"), (("doctor", "run"), ("info", "run"), ("fit", "run", "--out", "{out}.json"))


def _imported(folder: Path) -> _Made:
    _save_short(folder / "run")
    return _run_files(folder)


def _converted(folder: Path, ending: str) -> _Made:
    _save_short(folder / "run")
    written = convert(jb.open_run(folder / "run"), folder / f"back.{ending}", ending)
    return tuple(path.name for path in written), (("import", f"back.{ending}", "--out", "{out}"),)


def _save_short(directory: Path) -> None:
    samples = synthetic_run(arm(2), motion_seed=1, noise_seed=1).samples
    save_samples(directory, _first(samples), {"robot": "cobot6:2"})


def _first(samples: Samples) -> Samples:
    arrays = {name: value[:_ROWS] for name, value in vars(samples).items() if isinstance(value, np.ndarray)}
    return replace(samples, **arrays)


def _files(folder: Path, name: str) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(folder)) for path in (folder / name).iterdir()))


_KINDS: dict[str, Callable[[Path], _Made]] = {
    "robot TOML": _robot,
    "URDF": _urdf,
    "bench TOML": _bench,
    "plant TOML": _plant,
    "workspace TOML": _workspace,
    "configuration": _configuration,
    "model": _model,
    "plan": _plan,
    "CSV log": _csv,
    "CSV log of one value a line": _long_csv,
    "MATLAB log": _matlab,
    "friction CSV": _friction,
    "run": _run,
    "unfinished run": _unfinished_run,
    "imported run": _imported,
}
if all(map(find_spec, ("pyarrow", "mcap", "rosbags", "h5py"))):
    _KINDS.update(
        {
            "Parquet log": _parquet,
            "MATLAB 7.3 log": _matlab_7_3,
            "LeRobot dataset": _lerobot,
            "rosbag2 (SQLite)": lambda folder: _bag(folder, "SQLITE3"),
            "rosbag2 (MCAP)": lambda folder: _bag(folder, "MCAP"),
            "rosbag1": lambda folder: _bag(folder, "ROS1"),
            "CSV of a run": lambda folder: _converted(folder, "csv"),
            "Parquet of a run": lambda folder: _converted(folder, "parquet"),
            "MCAP of a run": lambda folder: _converted(folder, "mcap"),
        }
    )
