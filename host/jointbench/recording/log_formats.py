"""Formats of logs: which reader reads what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jointbench.errors import FileError
from jointbench.recording.bag_log import first_messages, is_bag, read_bag_table
from jointbench.recording.csv_log import look_at_csv, read_csv_table
from jointbench.recording.log_table import LOOKED_AT, FirstRows, LogTable, whole_rows
from jointbench.recording.mapping import LogFile
from jointbench.recording.matlab_log import MATLAB, first_samples, read_matlab_table
from jointbench.recording.parquet_log import (
    PARQUET,
    first_frames,
    first_rows,
    is_dataset,
    read_dataset_table,
    read_parquet_table,
)


def is_log(path: Path) -> bool:
    """Return whether it is one log rather than a folder of them."""
    return path.is_file() or is_bag(path) or is_dataset(path)


def read_log(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a log.

    Args:
        path: of the file, or of the folder of a rosbag2 or a LeRobot dataset.
        file: how it is written.
        wanted: names of the columns.

    Raises:
        FileError: it is missing or damaged, lacks the topic or a column, or a value is no number.
        MissingExtra: its format needs a package that is not installed.
    """
    if is_bag(path):
        return read_bag_table(path, file, wanted)
    if is_dataset(path):
        return read_dataset_table(path, file, wanted)
    suffix = path.suffix.lower()
    read = read_matlab_table if suffix in MATLAB else read_parquet_table if suffix in PARQUET else read_csv_table
    return read(path, file, wanted)


def look_at_log(path: Path) -> FirstRows:
    """Look at the first rows of a log, whatever its format.

    Raises:
        FileError: as `look_at_csv`, `first_rows`, `first_samples` and `first_messages` raise it.
        MissingExtra: its format needs a package that is not installed.
    """
    if is_bag(path):
        topic, names, values = first_messages(path, LOOKED_AT)
        return FirstRows(path, ",", True, names, whole_rows(path, values), topic=topic)
    if is_dataset(path):
        names, values = first_frames(path, LOOKED_AT)
        return FirstRows(path, ",", True, names, whole_rows(path, values))
    if path.suffix.lower() in PARQUET:
        names, values, moments = first_rows(path, LOOKED_AT)
        return FirstRows(path, ",", True, names, whole_rows(path, values), moments=moments)
    if path.suffix.lower() in MATLAB:
        names, values, left_out = first_samples(path, LOOKED_AT)
        return FirstRows(path, ",", True, names, whole_rows(path, values), left_out=left_out)
    if path.is_dir():
        raise FileError(
            f"{path} is a folder, and neither of a rosbag2 (metadata.yaml) nor of a LeRobot dataset (meta/info.json); "
            f"name the log's files in it"
        )
    return look_at_csv(path)
