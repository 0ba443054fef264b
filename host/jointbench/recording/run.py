"""Runs: one recorded motion, read back with everything needed to judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jointbench.bench import BoardClock, Ledger
from jointbench.errors import ExcitationError, RunError
from jointbench.files import text_of
from jointbench.model import Robot
from jointbench.notebook import card, data_frame, need_figures
from jointbench.recording.decode import Recording, decode_recording
from jointbench.recording.run_directory import (
    FRAMES,
    IMPORTED,
    PROVENANCE,
    RESULT,
    SAMPLES,
    SCHEMA,
    common_ticks,
    create_run_directory,
    read_converted,
    read_provenance,
    read_result,
    read_robot,
)
from jointbench.recording.samples import Column, Samples, columns_of, joint_unit, read_samples, write_samples
from jointbench.recording.seal import (
    MEASURED,
    Change,
    Seal,
    advice,
    check_seal,
    edit_sentence,
    file_sha256,
    refuse_changes,
    write_result,
)
from jointbench.recording.timeline import BoardFacts, Timeline, assemble
from jointwire import Schema, SchemaError, own_schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jointbench.excitation import Excitation


# What must be the same for frames of another schema to be read by this one; a register's scale, too.
_MOTOR_SCALES = ("current.scale", "encoder.motor_counts", "drive.ratio")
_NEEDED = (
    "header", "message DATA", "message STATUS", "message PONG", "message SYNC", "channel ", "State", "ChannelKind",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Run:
    """One recorded or imported motion.

    Attributes:
        path: its directory.
        robot: from the run's own copy of the robot file.
        samples: all joints on one timeline, SI.
        ledger: of the recording, None for an import that was none of a converted run.
        excitation: what was played, or None.
        repeats: how often it was played, 0 for an import.
        provenance: what run.toml says.
        sha256: of frames.bin, or of samples.npz for an import; a run back from another program's format has that of
            the run it was, so that both count as the same recording.
        warnings: what a careful reader must know, such as a torn end or an unfinished run.
        clocks: of each joint's board, by joint: how well it is known where its ticks lie on the common timeline. Empty
            for an import, and where all boards count the same ticks.
        edits: changes of its files that somebody accepted (`jointbench accept`): date, reason, files. They are among
            the warnings, too.
        starts: how much later than the first knot on the common timeline each joint's board began to play, by joint
            [samples]. Empty for an import; joints without a motor play nothing.

    >>> run = jb.open_run("runs/recorded")
    >>> run.ledger.verdict
    'valid: 0 of 1314 samples lost'
    >>> run.samples.joint_names, run.samples.motor_position.shape
    (('j1', 'j2'), (657, 2))
    """

    path: Path
    robot: Robot
    samples: Samples
    ledger: Ledger | None
    excitation: Excitation | None
    repeats: int
    provenance: dict[str, Any]
    sha256: str
    warnings: tuple[str, ...]
    clocks: Mapping[str, BoardClock] = field(default_factory=dict[str, BoardClock])
    starts: Mapping[str, float] = field(default_factory=dict[str, float])
    edits: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_valid(self) -> bool:
        """True if its samples may be used: an import, or a recording whose ledger closes within the limit."""
        return self.ledger is None or self.ledger.is_valid

    @property
    def start_skew(self) -> float:
        """Time between the first and the last board that began to play [samples], 0 where none did."""
        return max(self.starts.values(), default=0.0) - min(self.starts.values(), default=0.0)

    def __repr__(self) -> str:
        """Return one line: where it is, of which robot, how long, and whether it is valid."""
        samples = self.samples
        joints, seconds = len(samples.joint_names), len(samples.time) * samples.sample_period
        ledger = "imported" if self.ledger is None else self.ledger.verdict
        return f"<Run {self.path}: {self.robot.name}, {joints} joints, {seconds:.4g} s at {self._rate}; {ledger}>"

    @property
    def _rate(self) -> str:
        return f"{1.0 / self.samples.sample_period:.4g} Hz"

    def _repr_html_(self) -> str:
        samples = self.samples
        facts = [
            ("robot", f"{self.robot.name}, joints {', '.join(samples.joint_names)}"),
            ("samples", f"{len(samples.time)} at {self._rate}, {len(samples.time) * samples.sample_period:.4g} s"),
            ("ledger", "none: imported" if self.ledger is None else self.ledger.verdict),
            *(("warning", warning) for warning in self.warnings),
        ]
        return card(f"Run {self.path}", facts, self.plot)

    def plot(self) -> Figure:
        """Draw position and torque of each joint over time, of a run without torques the currents.

        Returns:
            The figure; a notebook shows it, `savefig` writes it.

        Raises:
            MissingExtra: matplotlib is not installed; names the extra.
        """
        need_figures("the picture of a run")
        from jointbench.drawing import Curves, joint_figure

        samples = self.samples
        fields = [
            ("motor_position", "position"), ("motor_torque", "torque at motors"), ("joint_torque", "torque at sensors"),
            ("motor_current", "motor current"),
        ]  # fmt: skip
        present = [(field, name) for field, name in fields if getattr(samples, field) is not None][:2]
        quantities = [
            Curves(
                name,
                [joint_unit(self.robot, joint, field) for joint in samples.joint_names],
                [np.where(samples.valid, getattr(samples, field), np.nan)],
            )
            for field, name in present
        ]
        return joint_figure(f"{self.path}: {self.robot.name}", samples.time, samples.joint_names, quantities)

    def to_pandas(self) -> Any:
        """Return all samples as a table of pandas (a DataFrame), indexed by time [s].

        Returns:
            A row for each sample, and the columns that `jointbench convert` writes, with units in their names: for
            "j1" it has j1.valid, j1.motor_position_rad, j1.motor_torque_Nm and whatever else was measured.

        Raises:
            MissingExtra: pandas is not installed; names the extra.
        """
        rows = {column.field: np.asarray(getattr(self.samples, column.field)) for column in self._columns}
        columns = {column.name: column.of(rows) for column in self._columns}
        return data_frame(columns, "time_s", "the table of a run")

    @property
    def _columns(self) -> tuple[Column, ...]:
        return columns_of(self.samples, self.robot)


def open_run(path: str | Path) -> Run:
    """Open a run's directory, whether it was recorded, interrupted or imported.

    Args:
        path: the directory that holds run.toml.

    Returns:
        The run; look at its `ledger.verdict` and `warnings` before using its samples.

    Raises:
        RunError: no run, one of another version, one without a single sample, or one whose excitation is damaged; or
            its files are not as they were recorded or imported: says which, and what to do.

    >>> run = jb.open_run("runs/arm")
    >>> run.robot.name, run.samples.motor_torque.shape, run.is_valid, run.warnings
    ('cobot6:2', (10000, 2), True, ())
    """
    directory = Path(path)
    seal = check_seal(directory)
    if seal is not None:
        refuse_changes(directory, seal)
    return read_run(directory, seal)


def as_run(run: Run | str | Path) -> Run:
    """Return a run as it is, or open the one whose directory is given.

    Raises:
        RunError: as `open_run`; or it is neither a run nor a path.
    """
    if isinstance(run, Run):
        return run
    if not isinstance(run, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise RunError(f"{type(run).__name__} is given as a run; give one that open_run returned, or its directory")
    return open_run(run)


def read_run(directory: Path, seal: Seal | None) -> Run:
    """Read a run's files as they are, changed or not.

    Args:
        directory: of the run.
        seal: as `check_seal` gives it.

    Raises:
        RunError: as `open_run`, or it is of an import whose result.json is gone.
    """
    provenance = read_provenance(directory)
    if seal is None and provenance.get("sealed"):
        raise RunError(f"run {directory}: the {RESULT} that vouches for its files is gone; take it from a copy")
    robot = read_robot(directory, str(provenance.get("robot", "")))
    clocks: Mapping[str, BoardClock] = {}
    starts: Mapping[str, float] = {}
    origin: str | None = None
    data = next((path for name in (SAMPLES, FRAMES) if (path := directory / name).is_file()), None)
    if data is None:
        raise RunError(f"run {directory} holds neither frames.bin nor samples.npz: nothing was recorded in it")
    sha256 = seal.sha256[data.name] if seal else file_sha256(data)
    if data.name == SAMPLES:
        samples, (ledger, warnings, origin) = read_samples(data), read_converted(directory)
    else:
        timeline, ledger, warnings = _read_recording(directory, robot, provenance, sha256)
        samples, clocks, starts = timeline.samples, timeline.clocks, timeline.starts
    edits = seal.edits if seal else ()
    return Run(
        path=directory,
        robot=robot,
        samples=samples,
        ledger=ledger,
        excitation=_excitation(directory, provenance),
        repeats=int(provenance.get("repeats", 0)),
        provenance=provenance,
        sha256=origin or sha256,
        warnings=(*warnings, *map(edit_sentence, edits)),
        clocks=clocks,
        starts=starts,
        edits=edits,
    )


def save_samples(
    directory: str | Path, samples: Samples, provenance: Mapping[str, Any], files: Mapping[str, bytes] | None = None
) -> Path:
    """Make a run of samples that came from elsewhere; `open_run` opens it like any other.

    Args:
        directory: to create; an existing one is never written to.
        samples: what was measured.
        provenance: for run.toml; `robot` (a library name or a path) is needed.
        files: content of further files by name, such as mapping.toml.

    Returns:
        The directory's path.

    Raises:
        RunError: the directory exists, or the provenance cannot be written.
    """

    def fill(folder: Path) -> None:
        write_samples(folder / SAMPLES, samples)
        write_result(folder, {"outcome": IMPORTED})

    return create_run_directory(directory, {**provenance, "sealed": True}, files, fill)


def _excitation(directory: Path, provenance: dict[str, Any]) -> Excitation | None:
    if "excitation" not in provenance:
        return None
    from jointbench.excitation import Excitation  # the optimiser behind it is slow to import, and not needed

    try:
        return Excitation.from_dict(provenance["excitation"])
    except ExcitationError as error:
        raise RunError(f"{directory / PROVENANCE}: {error}") from error


def boards_of(directory: Path, provenance: Mapping[str, Any]) -> tuple[dict[int, BoardFacts], bool]:
    """Boards of a recorded run by node, in joint order, then those of feet, and whether they all count the same ticks.

    Raises:
        RunError: run.toml does not say it.
    """
    try:
        boards = {
            int(board["node"]): BoardFacts(
                {str(k): int(raw) for k, raw in board["registers"].items()},
                board["joint"],
                on_foot=board.get("on_foot", False),
            )
            for board in provenance["board"]
        }
        for facts in boards.values():
            encoders = (f"encoder.{side}_counts" for side in ("motor", "link") if facts.has(f"{side}_position"))
            scales = ("board.tick_period", *encoders, *(_MOTOR_SCALES if facts.has_motor else ()))
            if naught := next((name for name in scales if facts.registers.get(name) == 0), None):
                raise ValueError(f"{naught} of {facts.joint} is 0, so that nothing could be scaled by it")
        return boards, common_ticks(provenance)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        missing = f"lacks {error}" if isinstance(error, KeyError) else f"cannot be used ({error})"
        raise RunError(f"{directory / PROVENANCE} {missing}: boards and clock are needed to read frames") from error


def _read_recording(
    directory: Path, robot: Robot, provenance: dict[str, Any], sha256: str
) -> tuple[Timeline, Ledger, tuple[str, ...]]:
    boards, same_ticks = boards_of(directory, provenance)
    schema = _schema(directory)
    joints = {node: fact.joint for node, fact in boards.items()}
    recording = decode_recording(directory / FRAMES, joints, schema.hash if schema else None)
    try:
        if recording.undecoded and not any(len(board.ticks) for board in recording.boards.values()):
            raise RunError(_other_schema(directory, provenance, schema, recording))
        timeline = assemble(robot, [(fact, recording.boards[node]) for node, fact in boards.items()], same_ticks)
    except RunError as error:
        raise RunError(f"run {directory}: {error}") from error
    except KeyError as error:
        text = f"{directory / PROVENANCE}: the registers of a board lack {error}; without it its samples have no unit"
        raise RunError(text) from error
    invalid = () if recording.ledger.is_valid else (recording.ledger.verdict,)
    warnings = (*invalid, *recording.warnings, *_check_result(directory, recording, sha256), *timeline.warnings)
    return timeline, recording.ledger, warnings


def _schema(directory: Path) -> Schema | None:
    """Return what schema.json says the frames were made with, None where there is none.

    Raises:
        RunError: this release would read those frames wrongly, or not at all.
    """
    path, own = directory / SCHEMA, own_schema()
    try:
        schema = Schema.from_text(text_of(path))
        differences = [line for line in own.differences(schema) if line.startswith(_NEEDED)] if schema != own else []
        scales = {register.name: register.scale for register in schema.registers}
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, SchemaError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    differences += [
        f"register {register.name}: scale is {scales.get(register.name)} there, {register.scale:g} here"
        for register in own.registers
        if scales.get(register.name, register.scale) != register.scale
    ]
    if differences:
        raise RunError(
            f"run {directory} was recorded with schema {schema.hash:08x}, this release has {own.hash:08x} and would "
            f"read its frames otherwise: {'; '.join(differences)}. Open it with jointbench of the version in its "
            "run.toml"
        )
    return schema


def _other_schema(directory: Path, provenance: dict[str, Any], schema: Schema | None, recording: Recording) -> str:
    there = provenance.get("schema_hash", "unknown" if schema is None else f"{schema.hash:08x}")
    return (
        f"none of its {recording.undecoded} frames can be decoded: they were recorded with schema {there}, this "
        f"release has {own_schema().hash:08x}"
        + ("" if schema else f", and there is no {directory / SCHEMA} that tells how the two differ")
        + "; open it with jointbench of the version in its run.toml"
    )


def _check_result(directory: Path, recording: Recording, sha256: str) -> list[str]:
    """Compare the frames with what result.json promised of them."""
    result = read_result(directory)
    if result is None:
        return ["unfinished run: there is no result.json; recording was cut off or is still going on"]
    warnings: list[str] = []
    if result["outcome"] != "finished":
        warnings.append(f"the run was {result['outcome']}")
    promised = result["frames_sha256"]
    if promised != sha256:
        warnings.append(
            f"frames.bin has changed since it was recorded: {recording.n_records} of {result['records']} records are "
            f"readable, SHA-256 is {sha256[:12]}… and was {promised[:12]}…"
        )
    return warnings


def accept(run: str | Path, reason: str = "") -> tuple[Change, ...]:
    """Accept what was changed in a run since it was recorded, imported or last accepted.

    The change is noted in its result.json, file by file; whatever is made of the run says from then on that it was
    edited. What was measured cannot be accepted.

    Args:
        run: its directory.
        reason: for the edit, in a few words.

    Returns:
        What was accepted; nothing where nothing was changed.

    Raises:
        RunError: a file of what was measured, or result.json, was changed, nothing vouches for its files as they were,
            or it cannot be read as it is now; nothing is accepted.

    >>> jb.recording.accept("runs/arm")
    ()
    """
    path = Path(run)
    seal, result = check_seal(path), read_result(path)
    if result is None or seal is None:
        why = f"it has no {RESULT}" if result is None else "it was made before runs had a seal"
        raise RunError(f"run {path}: {why}, so that nothing tells what was changed; there is nothing to accept")
    if not seal.changes:
        return ()
    measured = [change for change in seal.changes if change.file in MEASURED]
    if measured:
        what = "; ".join(change.sentence(seal.made) for change in measured)
        raise RunError(f"run {path}: {what}; nothing is accepted: {advice(path, measured)}")
    read_run(path, seal)  # what cannot be opened is not accepted
    edit = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "reason": reason,
        "files": [{**change.to_dict(), "what": change.what} for change in seal.changes],
    }
    kept = {name: value for name, value in result.items() if name not in ("files", "digests", "digest")}
    write_result(path, {**kept, "edits": [*seal.edits, edit]}, seal.sha256)
    return seal.changes
