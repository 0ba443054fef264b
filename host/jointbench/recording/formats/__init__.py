"""Runs in the formats of other programs, and back: MCAP, Parquet, CSV, Rerun."""

from jointbench.recording.formats.back import import_converted, is_converted
from jointbench.recording.formats.conversion import FORMATS, convert

__all__ = ["FORMATS", "convert", "import_converted", "is_converted"]
