"""Somebody's log, by what kind of file it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jointbench.recording.formats.bag_table import read_bag_table
from jointbench.recording.formats.parquet_table import read_parquet_table
from jointbench.recording.log_table import LogTable, read_csv_table
from jointbench.recording.mapping import LogFile

BAGS = (".mcap", ".db3", ".bag")
PARQUET = (".parquet", ".pq")
_BAG_FOLDER = "metadata.yaml"


def is_bag(path: Path) -> bool:
    """Whether it is a bag: a file of one, or the folder of a rosbag2."""
    return path.suffix.lower() in BAGS or (path / _BAG_FOLDER).is_file()


def is_log(path: Path) -> bool:
    """Whether it is one log rather than a folder of them."""
    return path.is_file() or is_bag(path)


def read_log(path: Path, file: LogFile, wanted: Sequence[str]) -> LogTable:
    """Read some columns of a log.

    Args:
        path: of the file, or of a rosbag2's folder.
        file: how it is written.
        wanted: names of the columns.

    Raises:
        ImportedDataError: it is missing or damaged, lacks the topic or a column, or a value is no number.
        MissingExtra: its format needs a package that is not installed.
    """
    if is_bag(path):
        return read_bag_table(path, file, wanted)
    read = read_parquet_table if path.suffix.lower() in PARQUET else read_csv_table
    return read(path, file, wanted)
