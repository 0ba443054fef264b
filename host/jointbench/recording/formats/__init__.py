"""Runs in the formats of other programs, and back: MCAP, Parquet, CSV, Rerun."""

from jointbench.recording.formats.conversion import FORMATS, convert, import_converted, is_converted

__all__ = ["FORMATS", "convert", "import_converted", "is_converted"]
