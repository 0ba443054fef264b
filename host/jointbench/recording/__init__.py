"""Run directories: append-only raw frames, the reader that makes samples of them, and samples from elsewhere."""

from jointbench.recording.bag_log import is_bag
from jointbench.recording.contents import injected_faults, read_contents
from jointbench.recording.csv_log import read_csv_table
from jointbench.recording.decode import Record, RecordKind, decode_recording, read_records, scan_records
from jointbench.recording.doctor import Diagnosis, Finding, examine
from jointbench.recording.import_csv import import_csv, import_mapped, mapping_and_folder
from jointbench.recording.mapping import LogFile, Mapping, mapping_names, parse_mapping
from jointbench.recording.mapping_inference import Proposal
from jointbench.recording.parquet_log import open_parquet
from jointbench.recording.proposal import propose_mapping
from jointbench.recording.recorder import Recorder, RecordWriter, new_run_path, record
from jointbench.recording.run import Run, accept, as_run, boards_of, open_run, save_samples
from jointbench.recording.run_directory import (
    CONVERTED,
    EVENTS,
    FRAMES,
    MAPPING,
    PROVENANCE,
    RESULT,
    ROBOT,
    ROBOT_URDF,
    SCHEMA,
    create_run_directory,
    expand,
    is_pattern,
    local_directory,
    local_run,
    read_provenance,
    read_result,
    run_name,
    schema_said,
    toml_text,
)
from jointbench.recording.samples import Samples
from jointbench.recording.seal import edit_sentence, file_sha256

__all__ = [
    "CONVERTED",
    "EVENTS",
    "FRAMES",
    "MAPPING",
    "PROVENANCE",
    "RESULT",
    "ROBOT",
    "ROBOT_URDF",
    "SCHEMA",
    "Diagnosis",
    "Finding",
    "LogFile",
    "Mapping",
    "Proposal",
    "Record",
    "RecordKind",
    "RecordWriter",
    "Recorder",
    "Run",
    "Samples",
    "accept",
    "as_run",
    "boards_of",
    "create_run_directory",
    "decode_recording",
    "edit_sentence",
    "examine",
    "expand",
    "file_sha256",
    "import_csv",
    "import_mapped",
    "injected_faults",
    "is_bag",
    "is_pattern",
    "local_directory",
    "local_run",
    "mapping_and_folder",
    "mapping_names",
    "new_run_path",
    "open_parquet",
    "open_run",
    "parse_mapping",
    "propose_mapping",
    "read_contents",
    "read_csv_table",
    "read_provenance",
    "read_records",
    "read_result",
    "record",
    "run_name",
    "save_samples",
    "scan_records",
    "schema_said",
    "toml_text",
]
