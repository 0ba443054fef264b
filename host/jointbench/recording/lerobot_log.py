"""Logs in LeRobot datasets: a folder of Parquet files with columns of vectors, and of their names in meta/info.json.

Frames of all episodes follow one another, a second apart: "timestamp", which each episode begins anew, rises over all
of them, and what lies between two is a gap.

Source: huggingface/lerobot, lerobot/datasets/utils.py, datasets of versions 3.0 (data/chunk-000/file-000.parquet) and 2
(data/chunk-000/episode_000000.parquet).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.files import json_values, text_of
from jointbench.recording.log_table import LogTable, file_sha256, missing_column
from jointbench.recording.mapping import LogFile
from jointbench.recording.parquet_log import column_values, first_rows, open_parquet, parquet_columns

_INFO = Path("meta") / "info.json"
_TIME, _EPISODE = "timestamp", "episode_index"

_BETWEEN_S = 1.0
"""Time from the end of an episode to the beginning of the next one."""


def is_dataset(path: Path) -> bool:
    """Return whether it is the folder of a LeRobot dataset."""
    return (path / _INFO).is_file()


def read_dataset_table(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a dataset, one row a frame: "observation.state.elbow.pos", or "observation.state[0]".

    Raises:
        MissingExtra: pyarrow is not installed.
        FileError: it has no frames or not those episodes, a file of it is damaged, or it lacks a column.
    """
    columns = tuple(dict.fromkeys(wanted))
    info, names, files = _contents(path)
    blocks: list[Array] = []
    for part in files:
        with open_parquet(part) as opened:
            places = parquet_columns(opened, names)
            for name in (*columns, _EPISODE):
                if name not in places:
                    raise missing_column(str(Path(file.path) / part.relative_to(path)), name, list(places))
            blocks.append(column_values(opened, [places[name] for name in (*columns, _EPISODE)], file.path))
    values = np.concatenate(blocks)
    lines = np.arange(len(values))
    if file.episodes is not None:
        there = np.unique(values[:, -1]).astype(int).tolist()
        if missing := [episode for episode in file.episodes if episode not in there]:
            raise FileError(
                f"{file.path} has no episode {missing[0]}; it has {there[0]} to {there[-1]}: correct episodes = … in "
                f"[[files]]"
            )
        chosen = np.isin(values[:, -1], file.episodes)
        values, lines = values[chosen], lines[chosen]
    if _TIME in columns:
        k = columns.index(_TIME)
        values[:, k] = _continued(values[:, k], values[:, -1], info)
    return LogTable(file.path, columns, values[:, :-1], lines, file_sha256(path / _INFO, *files), "frame")


def first_frames(path: Path, count: int) -> tuple[tuple[str, ...], Array]:
    """Names and first values of all columns of numbers.

    Raises:
        MissingExtra, FileError: as of `read_dataset_table`.
    """
    info, names, files = _contents(path)
    columns: tuple[str, ...] = ()
    blocks: list[Array] = []
    for part in files:
        columns, values, _ = first_rows(part, count, names)
        blocks.append(values)
        if sum(map(len, blocks)) >= count:
            break
    if len({block.shape[1] for block in blocks}) > 1:
        raise FileError(f"{path}: its Parquet files have not all the same columns; write the dataset anew")
    values = np.concatenate(blocks)[:count]
    if _TIME in columns and _EPISODE in columns:
        k = columns.index(_TIME)
        values[:, k] = _continued(values[:, k], values[:, columns.index(_EPISODE)], info)
    return columns, values


def _contents(path: Path) -> tuple[dict[str, Any], dict[str, list[str]], list[Path]]:
    """What meta/info.json says, the names of the elements of each feature, and the Parquet files in order."""
    try:
        info = json_values(text_of(path / _INFO))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileError(f"{path / _INFO} cannot be read: {error}; copy the dataset anew") from error
    features = cast(dict[str, Any], info).get("features") if isinstance(info, dict) else None
    if not isinstance(features, dict):
        raise FileError(f"{path / _INFO} has no table of features; is it that of a LeRobot dataset?")
    files = sorted(path.glob("data/*/*.parquet"))
    if not files:
        raise FileError(
            f"{path} holds no frames: there is no file like data/chunk-000/file-000.parquet in it; download the folder "
            f"data, too"
        )
    named = {name: _names(feature) for name, feature in cast(dict[str, Any], features).items()}
    return cast(dict[str, Any], info), named, files


def _names(feature: Any) -> list[str]:
    """Names of a feature's elements: a list, or a table of lists, by what they are names of."""
    names: Any = cast(dict[str, Any], feature).get("names") if isinstance(feature, dict) else None
    lists = list(cast(dict[str, Any], names).values()) if isinstance(names, dict) else [names]
    return [str(name) for group in lists if isinstance(group, list) for name in cast(list[Any], group)]


def _continued(time: Array, episode: Array, info: dict[str, Any]) -> Array:
    """Return times that rise over all episodes [s], from those that each begins anew."""
    time = time.copy()
    starts = (np.flatnonzero(np.diff(episode)) + 1).tolist()
    rate = info.get("fps")
    between = round(_BETWEEN_S * rate) / rate if isinstance(rate, int | float) and rate > 0.0 else _BETWEEN_S
    for start, end in pairwise([*starts, len(time)]):
        time[start:end] += time[start - 1] + between - time[start]
    return time
