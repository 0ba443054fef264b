"""MATLAB files of both kinds: what SciPy writes, MATLAB's own layout in HDF5, and the public recording of a KR300.

LeRobot datasets in the layout of version 3.0, and Parquet files with columns of vectors.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
import scipy
from pyarrow import parquet

from jointbench.cli.main import main
from jointbench.errors import FileError, MissingExtra
from jointbench.model import load_robot
from jointbench.recording import import_csv, propose_mapping
from jointbench.recording.mapping import LogFile
from jointbench.recording.matlab_log import first_samples, read_matlab_table
from jointbench.recording.parquet_log import read_dataset_table, read_parquet_table
from jointbench.tests.identification.log_check.logs import data_folder

ROWS = 400
TIME = 0.005 * np.arange(ROWS)


@pytest.fixture(scope="module")
def signals() -> dict[str, np.ndarray]:
    """A motion of the cobot in degrees, and torques of half their limits at the joints."""
    robot = load_robot("cobot6")
    low, high = robot.position_limits.T
    rate = 2.0 * np.pi * (0.5 + 0.1 * np.arange(6))
    phase = np.outer(TIME, rate)
    reach = 0.2 * (high - low)
    return {
        "act_pos_deg": np.rad2deg((low + high) / 2.0 + reach * np.sin(phase)),
        "act_vel_deg_per_s": np.rad2deg(reach * rate * np.cos(phase)),
        "act_torque_nm": 0.5 * robot.torque_limits * np.cos(phase),
    }


def write_version_5(path: Path, variables: dict[str, Any]) -> Path:
    scipy.io.savemat(path, variables)
    return path


class Hdf5Writer:
    """Writes variables as MATLAB 7.3 lays them out."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._references = file.create_group("#refs#")

    def write(self, parent: h5py.Group, name: str, value: Any) -> h5py.Group | h5py.Dataset:
        if isinstance(value, dict):
            node: h5py.Group | h5py.Dataset = parent.create_group(name)
            for field, inner in value.items():
                self.write(node, field, inner)
            node.attrs["MATLAB_class"] = np.bytes_("struct")
        elif isinstance(value, list) and value and isinstance(value[0], dict):  # an array of structs
            node = parent.create_group(name)
            for field in value[0]:
                node.create_dataset(field, data=self._refer([element[field] for element in value]))
            node.attrs["MATLAB_class"] = np.bytes_("struct")
        elif isinstance(value, list):
            node = parent.create_dataset(name, data=self._refer(value))
            node.attrs["MATLAB_class"] = np.bytes_("cell")
        elif isinstance(value, str):
            node = parent.create_dataset(name, data=np.array([[ord(c)] for c in value], dtype=np.uint16))
            node.attrs["MATLAB_class"], node.attrs["MATLAB_int_decode"] = np.bytes_("char"), np.int32(2)
        elif not np.size(value):
            node = parent.create_dataset(name, data=np.array(np.shape(value), dtype=np.uint64))
            node.attrs["MATLAB_class"], node.attrs["MATLAB_empty"] = np.bytes_("double"), np.uint8(1)
        else:
            node = parent.create_dataset(name, data=np.atleast_2d(value).T)
            node.attrs["MATLAB_class"] = np.bytes_(np.asarray(value).dtype.name.replace("float64", "double"))
        return node

    def _refer(self, values: list[Any]) -> np.ndarray:
        names = [f"r{len(self._references) + k}" for k in range(len(values))]
        nodes = [self.write(self._references, name, value) for name, value in zip(names, values, strict=True)]
        return np.array([[node.ref] for node in nodes], dtype=h5py.ref_dtype)


def write_version_7_3(path: Path, variables: dict[str, Any]) -> Path:
    with h5py.File(path, "w", userblock_size=512) as file:
        writer = Hdf5Writer(file)
        for name, value in variables.items():
            writer.write(file, name, value)
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 .".ljust(124) + b"\x00\x02IM")
    return path


WRITERS = pytest.mark.parametrize("write", [write_version_5, write_version_7_3])


@WRITERS
def test_a_struct_of_matrices_is_proposed_without_a_question_and_imported(
    write: Callable[..., Path], signals: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = {name: values.T for name, values in signals.items()}  # one column a sample, as some programs keep it
    rec = {"time": TIME[:, None], **wide, "who": "somebody", "nothing": np.empty((0, 0))}
    write(tmp_path / "log.mat", {"rec": rec, "fs": 200.0, "spectrum": np.ones((60, 2))})
    mapping = tmp_path / "m.toml"
    arguments = ["import", "--robot", "cobot6", "--log", str(tmp_path / "log.mat"), "--propose", str(mapping)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "left out spectrum: 60 rows, others have 400" in said
    assert "to fill in" not in said
    values = tomllib.loads(mapping.read_text(encoding="utf-8"))
    assert values["time"] == {"column": "rec.time", "unit": "s"}
    assert values["position"]["columns"] == [f"rec.act_pos_deg[{k}]" for k in range(1, 7)]
    assert (values["velocity"]["unit"], values["torque"]["unit"], values["torque"]["side"]) == ("deg/s", "N·m", "joint")
    samples = import_csv(mapping, tmp_path / "run").samples
    # A conversion of degrees, and its rounding.
    assert samples.motor_position == pytest.approx(np.deg2rad(signals["act_pos_deg"]), rel=1e-14)
    assert samples.sample_period == pytest.approx(0.005, rel=1e-12)


@WRITERS
def test_cells_and_arrays_of_structs_are_named_as_in_matlab(write: Callable[..., Path], tmp_path: Path) -> None:
    ramp, matrix = np.arange(30.0)[:, None], np.arange(60.0).reshape(30, 2)
    cell: Any = [ramp, matrix]
    if write is write_version_5:
        cell = np.empty((1, 2), dtype=object)
        cell[0, :] = [ramp, matrix]
    runs = [{"q": matrix}, {"q": -matrix}]
    path = write(tmp_path / "log.mat", {"c": cell, "runs": runs, "flags": np.ones((30, 1), dtype=np.uint8)})
    wanted = ["c(1)", "c(2)[2]", "runs(2).q[1]", "flags"]
    table = read_matlab_table(path, LogFile("log.mat"), wanted)
    expected = np.column_stack([ramp, matrix[:, 1], -matrix[:, 0], np.ones(30)])
    assert table.values.tolist() == expected.tolist()
    assert (table.counted, table.lines[0]) == ("row", 1)


@WRITERS
def test_what_is_wrong_is_said_with_what_there_is(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(tmp_path / "log.mat", {"a": np.ones((30, 1)), "rec": {"b": np.ones((40, 2))}})
    with pytest.raises(
        FileError, match=r"log\.mat has no column 'rec\.c'; its columns are a, rec\.b\[1\], rec\.b\[2\]"
    ):
        read_matlab_table(path, LogFile("log.mat"), ["rec.c"])
    with pytest.raises(FileError, match=r"'a' has 30 rows and 'rec\.b\[2\]' 40; .* in MATLAB \(interp1\)"):
        read_matlab_table(path, LogFile("log.mat"), ["a", "rec.b[2]"])
    short = write(tmp_path / "short.mat", {"a": np.ones((3, 2)), "cube": np.ones((30, 4, 5))})
    with pytest.raises(
        FileError, match=r"holds no signals: none .* has 20 rows .*a \(3 x 2\).*cube: it is an array of"
    ):
        first_samples(short, 100)


def test_objects_of_matlab_are_named_with_what_to_do(tmp_path: Path) -> None:
    path = write_version_7_3(tmp_path / "log.mat", {"a": np.ones((30, 1))})
    with h5py.File(path, "r+") as file:
        table = file.create_dataset("tab", data=np.zeros((1, 6), dtype=np.uint32))
        table.attrs["MATLAB_class"], table.attrs["MATLAB_object_decode"] = np.bytes_("table"), np.int32(3)
    with pytest.raises(FileError, match=r"variable 'tab' is a table, an object of MATLAB; save .*table2struct"):
        read_matlab_table(path, LogFile("log.mat"), ["tab[1]"])


def test_what_is_no_matlab_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.mat"
    for content in (b"", b"hello" * 100, b"MATLAB 7.3".ljust(512) + b"\x89HDF\r\n\x1a\n" + 200 * b"x"):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"log\.mat is no MATLAB file, or damaged"):
            read_matlab_table(path, LogFile("log.mat"), ["a"])
    with pytest.raises(FileError, match=r"nowhere\.mat cannot be read"):
        read_matlab_table(tmp_path / "nowhere.mat", LogFile("nowhere.mat"), ["a"])


def test_a_missing_extra_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jointbench.extras as extras

    path = write_version_7_3(tmp_path / "log.mat", {"a": np.ones((30, 1))})
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"a MATLAB 7\.3 file needs h5py, .*pip install 'jointbench\[convert\]'"):
        read_matlab_table(path, LogFile("log.mat"), ["a"])


def test_the_kr300_recording_asks_nothing(tmp_path: Path) -> None:
    data = data_folder("kuka_kr300")
    proposal = propose_mapping(data / "kr300.toml", [data / "A.mat"], tmp_path)
    mapping = tomllib.loads(proposal.text)
    assert proposal.to_fill_in == ()
    # The encoders of the motors count all six axes, those of the links three; both are in degrees of the joints.
    assert mapping["position"]["columns"] == [f"rec.act_pos_mot_deg[{k}]" for k in range(1, 7)]
    assert (mapping["position"]["unit"], mapping["position"]["side"]) == ("deg", "joint")
    assert mapping["velocity"]["columns"][0] == "rec.act_vel_mot_deg_per_s[1]"
    assert mapping["torque"]["columns"][0] == "rec.act_torque_abs_nm[1]"
    assert (mapping["torque"]["unit"], mapping["torque"]["side"]) == ("N·m", "motor")  # 20 N·m of 5000 at the joint
    assert mapping["time"]["unit"] == "s"
    (tmp_path / "m.toml").write_text(proposal.text, encoding="utf-8")
    samples = import_csv(tmp_path / "m.toml", tmp_path / "run").samples
    assert (samples.n_samples, samples.n_joints) == (2501, 6)
    assert samples.sample_period == pytest.approx(0.004, rel=1e-9)


def test_the_kr300_recording_is_the_same_in_both_versions(tmp_path: Path) -> None:
    path = data_folder("kuka_kr300") / "A.mat"
    record = scipy.io.loadmat(path, simplify_cells=True)["rec"]
    again = write_version_7_3(tmp_path / "A.mat", {"rec": record})
    names, values, _ = first_samples(path, 5000)
    names_again, values_again, left_out = first_samples(again, 5000)
    chosen = [k for k, name in enumerate(names) if name.startswith("rec.")]
    assert left_out == ()
    assert sorted(names_again) == sorted(names[k] for k in chosen)  # HDF5 keeps fields by the alphabet
    order = [names_again.index(names[k]) for k in chosen]
    np.testing.assert_array_equal(values_again[:, order], values[:, chosen])


FPS, FRAMES, EPISODES = 50, 90, 3
JOINTS = load_robot("cobot6").joint_names


def motion() -> dict[str, np.ndarray]:
    """Positions, velocities and torques of all frames, the next episode somewhere else."""
    robot = load_robot("cobot6")
    low, high = robot.position_limits.T
    t = np.tile(np.arange(FRAMES) / FPS, EPISODES)
    phase = np.outer(t, 2.0 * np.pi * (0.5 + 0.1 * np.arange(6))) + np.repeat(np.arange(EPISODES), FRAMES)[:, None]
    reach = 0.2 * (high - low)
    rate = 2.0 * np.pi * (0.5 + 0.1 * np.arange(6))
    return {
        "observation.state": (low + high) / 2.0 + reach * np.sin(phase),
        "observation.velocity": reach * rate * np.cos(phase),
        "observation.effort": 0.4 * robot.torque_limits * np.cos(phase),
        "action": (low + high) / 2.0 + reach * np.sin(phase + 0.1),
    }


def write_dataset(folder: Path, names: Any = None, *, fixed: bool = True) -> Path:
    """A dataset in two Parquet files, with a picture's feature that no file of it holds, as of videos."""
    values = motion()
    vector = pa.list_(pa.float32(), 6) if fixed else pa.list_(pa.float32())
    episode = np.repeat(np.arange(EPISODES), FRAMES)
    columns: dict[str, Any] = {
        name: pa.array(list(data.astype(np.float32)), type=vector) for name, data in values.items()
    }
    columns |= {
        "timestamp": pa.array(np.tile(np.arange(FRAMES) / FPS, EPISODES).astype(np.float32)),
        "frame_index": pa.array(np.tile(np.arange(FRAMES), EPISODES)),
        "episode_index": pa.array(episode),
        "index": pa.array(np.arange(len(episode))),
        "task_index": pa.array(np.zeros(len(episode), dtype=np.int64)),
    }
    table = pa.table(columns)
    for file, rows in enumerate((slice(0, 2 * FRAMES), slice(2 * FRAMES, None))):
        path = folder / "data" / "chunk-000" / f"file-{file:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        start, stop, _ = rows.indices(len(episode))
        parquet.write_table(table.slice(start, stop - start), path)
    features: dict[str, Any] = {
        name: {"dtype": "float32", "shape": [6], "names": None if names is None else names(name)} for name in values
    }
    features["observation.images.top"] = {"dtype": "video", "shape": [3, 480, 640], "names": ["channels", "height"]}
    features |= {
        name: {"dtype": "int64", "shape": [1], "names": None} for name in ("frame_index", "episode_index", "index")
    }
    info = {
        "codebase_version": "v3.0",
        "robot_type": "cobot6",
        "total_episodes": EPISODES,
        "total_frames": len(episode),
        "chunks_size": 1000,
        "fps": FPS,
        "splits": {"train": f"0:{EPISODES}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
    }
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps(info, indent=4), encoding="utf-8")
    return folder


def motor_names(feature: str) -> dict[str, list[str]]:
    return {"motors": [f"{name}.{'pos' if feature in ('observation.state', 'action') else 'x'}" for name in JOINTS]}


def test_a_dataset_is_imported_without_a_question(tmp_path: Path) -> None:
    path = write_dataset(tmp_path / "set", motor_names)
    proposal = propose_mapping("cobot6", [path], tmp_path)
    said = "\n".join(proposal.lines())
    assert "position.columns = observation.state.j1.pos … observation.state.j6.pos: joints by their numbers" in said
    assert "torque.columns = observation.effort.j1.x … observation.effort.j6.x" in said
    assert "left out action.j1.pos … action.j6.pos: commanded" in said
    (tmp_path / "m.toml").write_text(proposal.text, encoding="utf-8")
    samples = import_csv(tmp_path / "m.toml", tmp_path / "run").samples
    episode = np.flatnonzero(samples.valid.all(axis=1))
    assert len(episode) == EPISODES * FRAMES
    # Between episodes there is a second without valid rows, so that no filter runs across.
    assert np.flatnonzero(np.diff(episode) > 1).tolist() == [FRAMES - 1, 2 * FRAMES - 1]
    assert np.diff(samples.time[episode])[FRAMES - 1] == pytest.approx(1.0, abs=1e-4)  # time in single precision
    assert samples.motor_position[episode] == pytest.approx(motion()["observation.state"], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("fixed", [True, False])
def test_vectors_without_names_count_from_0(tmp_path: Path, fixed: bool) -> None:
    path = write_dataset(tmp_path / "set", fixed=fixed)
    proposal = propose_mapping("cobot6", [path], tmp_path)
    mapping = tomllib.loads(proposal.text)
    assert mapping["files"] == [{"path": "set"}]
    assert mapping["position"]["columns"] == [f"observation.state[{k}]" for k in range(6)]
    assert mapping["velocity"]["columns"][5] == "observation.velocity[5]"
    assert mapping["torque"]["columns"][0] == "observation.effort[0]"
    assert mapping["time"] == {"column": "timestamp", "unit": "s"}
    assert mapping["allow_gaps"] is True
    assert proposal.to_fill_in == ()


def test_episodes_can_be_chosen(tmp_path: Path) -> None:
    path = write_dataset(tmp_path / "set")
    text = propose_mapping("cobot6", [path], tmp_path).text
    mapping = tmp_path / "m.toml"
    mapping.write_text(text.replace('path = "set"\n', 'path = "set"\nepisodes = [1]\n'), encoding="utf-8")
    samples = import_csv(mapping, tmp_path / "run").samples
    assert samples.n_samples == FRAMES
    expected = motion()["observation.state"][FRAMES : 2 * FRAMES]
    assert samples.motor_position == pytest.approx(expected, rel=1e-6, abs=1e-6)
    mapping.write_text(text.replace('path = "set"\n', 'path = "set"\nepisodes = [7]\n'), encoding="utf-8")
    with pytest.raises(FileError, match=r"set has no episode 7; it has 0 to 2: correct episodes"):
        import_csv(mapping)
    mapping.write_text(text.replace('path = "set"\n', 'path = "set"\nepisodes = [-1]\n'), encoding="utf-8")
    with pytest.raises(FileError, match=r"episodes = \[-1\] must be a list of whole numbers from 0 on"):
        import_csv(mapping)


def test_what_is_wrong_with_a_dataset_is_said(tmp_path: Path) -> None:
    path = write_dataset(tmp_path / "set")
    with pytest.raises(FileError, match=r"file-000\.parquet has no column 'observation\.state\[6\]'; its columns are"):
        read_dataset_table(path, LogFile("set"), ["observation.state[6]"])
    for file in (path / "data" / "chunk-000").iterdir():
        file.unlink()
    with pytest.raises(FileError, match=r"holds no frames: there is no file like data/chunk-000/file-000\.parquet"):
        read_dataset_table(path, LogFile("set"), ["timestamp"])
    for text, message in (("{", "cannot be read"), ("{}", "has no table of features")):
        (path / "meta" / "info.json").write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match=message):
            read_dataset_table(path, LogFile("set"), ["timestamp"])


def test_a_parquet_file_of_vectors_of_two_lengths_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"q": [[1.0, 2.0], [3.0]], "t": [0.0, 0.1]}), path)
    assert read_parquet_table(path, LogFile("log.parquet"), ["t"]).values.tolist() == [[0.0], [0.1]]
    with pytest.raises(FileError, match=r"log\.parquet, column 'q' holds vectors of several lengths"):
        read_parquet_table(path, LogFile("log.parquet"), ["q[0]"])
    parquet.write_table(pa.table({"q": [[1.0, 2.0], [3.0, 4.0]], "t": [0.0, 0.1]}), path)
    assert read_parquet_table(path, LogFile("log.parquet"), ["q[1]", "t"]).values.tolist() == [[2.0, 0.0], [4.0, 0.1]]
