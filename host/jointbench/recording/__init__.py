"""Run directories: append-only raw frames, the reader that makes samples of them, and samples from elsewhere."""

from jointbench.recording.doctor import Diagnosis, Finding, examine
from jointbench.recording.import_csv import import_csv
from jointbench.recording.mapping import mapping_names
from jointbench.recording.recorder import Recorder, new_run_path, record
from jointbench.recording.run import Run, accept, open_run, save_samples
from jointbench.recording.samples import Samples

__all__ = [
    "Diagnosis",
    "Finding",
    "Recorder",
    "Run",
    "Samples",
    "accept",
    "examine",
    "import_csv",
    "mapping_names",
    "new_run_path",
    "open_run",
    "record",
    "save_samples",
]
