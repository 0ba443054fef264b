"""LeRobot datasets in the layout of version 3.0, and Parquet files with columns of vectors."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from jointbench.errors import FileError
from jointbench.model import load_robot
from jointbench.recording import import_csv, propose_mapping
from jointbench.recording.mapping import LogFile
from jointbench.recording.parquet_log import read_dataset_table, read_parquet_table

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
