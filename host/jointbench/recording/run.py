"""Runs: one recorded motion, read back with everything needed to judge it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jointbench.errors import RunError
from jointbench.link.ledger import Ledger
from jointbench.recording.decode import Recording, decode_recording
from jointbench.recording.run_directory import create_run_directory, read_provenance, read_robot
from jointbench.recording.samples import Samples, read_samples, write_samples
from jointbench.recording.timeline import BoardFacts, assemble
from jointbench.robot import Robot

if TYPE_CHECKING:
    from jointbench.excitation import FourierExcitation


@dataclass(frozen=True, eq=False)
class Run:
    """One recorded or imported motion.

    Attributes:
        path: its directory.
        robot: from the run's own copy of the robot file.
        samples: all joints on one timeline, SI.
        ledger: of the recording, None for an import.
        excitation: what was played, or None.
        repeats: how often it was played, 0 for an import.
        provenance: what run.toml says.
        sha256: of frames.bin, or of samples.npz for an import.
        warnings: what a careful reader must know, such as a torn end or an unfinished run.
    """

    path: Path
    robot: Robot
    samples: Samples
    ledger: Ledger | None
    excitation: FourierExcitation | None
    repeats: int
    provenance: dict[str, Any]
    sha256: str
    warnings: tuple[str, ...]

    @property
    def is_valid(self) -> bool:
        """Whether its samples may be used: an import, or a recording whose ledger closes within the limit."""
        return self.ledger is None or self.ledger.is_valid


def open_run(path: str | Path) -> Run:
    """Open a run's directory, whether it was recorded, interrupted or imported.

    Args:
        path: the directory that holds run.toml.

    Returns:
        The run; look at its `ledger.verdict` and `warnings` before using its samples.

    Raises:
        RunError: no run, one of another version, or one without a single sample.
    """
    directory = Path(path)
    provenance = read_provenance(directory)
    robot = read_robot(directory)
    if (directory / "samples.npz").is_file():
        data, ledger = directory / "samples.npz", None
        samples, warnings = read_samples(data), ()
    elif (directory / "frames.bin").is_file():
        data = directory / "frames.bin"
        samples, ledger, warnings = _read_recording(directory, robot, provenance)
    else:
        raise RunError(f"run {directory} holds neither frames.bin nor samples.npz: nothing was recorded in it")
    return Run(
        path=directory,
        robot=robot,
        samples=samples,
        ledger=ledger,
        excitation=_excitation(provenance),
        repeats=int(provenance.get("repeats", 0)),
        provenance=provenance,
        sha256=hashlib.sha256(data.read_bytes()).hexdigest(),
        warnings=warnings,
    )


def save_samples(directory: str | Path, samples: Samples, provenance: Mapping[str, Any]) -> Path:
    """Make a run of samples that came from elsewhere; `open_run` opens it like any other.

    Args:
        directory: to create; an existing one is never written to.
        samples: what was measured.
        provenance: for run.toml; `robot` (a library name or a path) is needed.

    Returns:
        The directory's path.

    Raises:
        RunError: the directory exists, or the provenance cannot be written.
    """
    path = create_run_directory(directory, provenance)
    unfinished = path / "samples.npz.new"
    write_samples(unfinished, samples)
    os.replace(unfinished, path / "samples.npz")
    return path


def _excitation(provenance: dict[str, Any]) -> FourierExcitation | None:
    if "excitation" not in provenance:
        return None
    from jointbench.excitation import FourierExcitation  # the optimiser behind it is slow to import, and not needed

    return FourierExcitation.from_dict(provenance["excitation"])


def _read_recording(
    directory: Path, robot: Robot, provenance: dict[str, Any]
) -> tuple[Samples, Ledger, tuple[str, ...]]:
    try:
        boards = {int(board["node"]): BoardFacts(board["registers"], board["joint"]) for board in provenance["board"]}
        clock = str(provenance["clock"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{directory / 'run.toml'} lacks {error}: boards and clock are needed to read frames") from error
    joints = {node: fact.joint for node, fact in boards.items()}
    recording = decode_recording(directory / "frames.bin", joints)
    pairs = [(fact, recording.boards[node]) for node, fact in boards.items()]
    try:
        samples, alignment = assemble(robot, pairs, clock)
    except RunError as error:
        raise RunError(f"run {directory}: {error}") from error
    invalid = () if recording.ledger.is_valid else (recording.ledger.verdict,)
    warnings = (*invalid, *recording.warnings, *_check_result(directory, recording), *alignment)
    return samples, recording.ledger, warnings


def _check_result(directory: Path, recording: Recording) -> list[str]:
    """Compare the frames with what result.json promised of them."""
    try:
        result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ["unfinished run: there is no result.json; recording was cut off or is still going on"]
    except (OSError, ValueError) as error:
        return [f"result.json cannot be read: {error}"]
    warnings: list[str] = []
    if result["outcome"] != "finished":
        warnings.append(f"the run was {result['outcome']}")
    digest = hashlib.sha256((directory / "frames.bin").read_bytes()).hexdigest()
    if result["frames_sha256"] != digest:
        warnings.append(
            f"frames.bin has changed since it was recorded: {recording.n_records} of {result['records']} records are "
            f"readable, SHA-256 is {digest[:12]}… and was {result['frames_sha256'][:12]}…"
        )
    return warnings
