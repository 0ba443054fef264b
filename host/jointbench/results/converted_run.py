"""A converted run: samples as columns of a table with their units, and all that makes the same run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import chunks, read_rows, scratch_array
from jointbench.errors import FileError
from jointbench.files import json_values, text_of
from jointbench.recording import EVENTS, MAPPING, PROVENANCE, RESULT, ROBOT, ROBOT_URDF, SCHEMA, Run, Samples
from jointbench.recording.samples import Column, columns_of
from jointbench.signals import BoardFilter

FORMAT = "jointbench run"
VERSION = 1
KEPT = (PROVENANCE, ROBOT, ROBOT_URDF, SCHEMA, EVENTS, RESULT, MAPPING)
"""Files of a run directory that go with its samples; frames.bin stays behind, its hash goes."""


def rows_of(samples: Samples, columns: tuple[Column, ...], part: slice) -> dict[str, NDArray[Any]]:
    """The fields that these columns are of, in some rows."""
    return {name: read_rows(getattr(samples, name), part) for name in {column.field for column in columns}}


def empty_fields(columns: tuple[Column, ...], rows: int) -> dict[str, NDArray[Any]]:
    """Arrays for the values of all columns, by field; a long run's lie in files."""
    shapes: dict[str, tuple[int, ...]] = {}
    for column in columns:
        own = tuple(k + 1 for k in column.place)
        shapes[column.field] = tuple(np.maximum(shapes.get(column.field, own), own).tolist())
    kinds = {column.field: column.kind for column in columns}
    return {name: scratch_array((rows, *shape), np.dtype(kinds[name])) for name, shape in shapes.items()}


@dataclass(frozen=True)
class About:
    """A run but for its samples.

    Attributes:
        run: name of its directory.
        sha256: as of `Run`.
        samples_sha256: of the values of the columns, whatever the format: see `samples_sha256`.
        rows: how many samples there are.
        sample_period: [s].
        joint_names, foot_names: as of `Samples`.
        columns: of the table.
        board_filters: as of `Samples`.
        ledger: as plain values, None for an import.
        warnings: what a careful reader must know.
        files: text of the files in `KEPT` that the run has.
    """

    run: str
    sha256: str
    samples_sha256: str
    rows: int
    sample_period: float
    joint_names: tuple[str, ...]
    foot_names: tuple[str, ...]
    columns: tuple[Column, ...]
    board_filters: tuple[BoardFilter, ...] | None
    ledger: Mapping[str, Any] | None
    warnings: tuple[str, ...]
    files: Mapping[str, str]

    def samples(self, fields: Mapping[str, NDArray[Any]]) -> Samples:
        """The samples of which the columns' values are given, by field."""
        values: dict[str, Any] = {"link_position": None, "motor_current": None, "motor_torque": None}
        values |= {"joint_torque": None, **fields}
        return Samples(
            joint_names=self.joint_names,
            foot_names=self.foot_names,
            board_filters=self.board_filters,
            sample_period=self.sample_period,
            **values,
        )

    def without_files(self) -> About:
        """Return the description for a format that keeps the files itself."""
        return replace(self, files={})


def about_run(run: Run) -> About:
    """All of a run that is no sample."""
    samples = run.samples
    columns = columns_of(samples, run.robot)
    paths = [run.path / name for name in KEPT]
    return About(
        run=run.path.name,
        sha256=run.sha256,
        samples_sha256=samples_sha256(samples, columns),
        rows=samples.n_samples,
        sample_period=samples.sample_period,
        joint_names=samples.joint_names,
        foot_names=samples.foot_names,
        columns=columns,
        board_filters=samples.board_filters,
        ledger=None if run.ledger is None else run.ledger.to_dict(),
        warnings=run.warnings,
        files={path.name: text_of(path) for path in paths if path.is_file()},
    )


def samples_sha256(samples: Samples, columns: tuple[Column, ...]) -> str:
    """SHA-256 of the columns' values, row by row as little-endian float64; a value that is missing is one NaN."""
    whole = hashlib.sha256()
    for part in chunks(samples.n_samples, 4096):
        rows = rows_of(samples, columns, part)
        values = np.column_stack([column.of(rows).astype("<f8") for column in columns])
        values[np.isnan(values)] = np.nan  # formats do not keep the bits of a NaN
        whole.update(values.tobytes())
    return whole.hexdigest()


def about_text(about: About) -> str:
    """The run's description as JSON, every number exactly."""
    columns = [vars(column) for column in about.columns]
    filters = about.board_filters
    plain = vars(about) | {
        "columns": columns,
        "board_filters": None if filters is None else [vars(item) for item in filters],
    }
    return json.dumps({"format": FORMAT, "version": VERSION, **plain}, ensure_ascii=False)


def read_about(text: str | bytes, name: str) -> About:
    """Read what `about_text` wrote.

    Args:
        text: JSON.
        name: of the file it was found in, for messages.

    Raises:
        FileError: it is of another version, or damaged.
    """
    try:
        values: dict[str, Any] = json_values(text)
        kind, version = values.pop("format"), values.pop("version")
        if (kind, version) != (FORMAT, VERSION):
            raise FileError(
                f"{name} holds a {kind} of version {version}; this release reads version {VERSION}: import it with the "
                "release that wrote it"
            )
        filters = values.pop("board_filters")
        columns = [Column(**(column | {"place": tuple(column["place"])})) for column in values.pop("columns")]
        names = {key: tuple(values.pop(key)) for key in ("joint_names", "foot_names", "warnings")}
        return About(
            columns=tuple(columns),
            board_filters=None if filters is None else tuple(map(_filter, filters)),
            **names,
            **values,
        )
    except FileError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{name}: what it says of its run is damaged ({error}); convert the run again") from error


def _filter(values: dict[str, Any]) -> BoardFilter:
    sections = tuple((tuple(b), tuple(a)) for b, a in values["sections"])
    if any((len(b), len(a)) != (3, 3) for b, a in sections):
        raise ValueError("a section of a filter has not three coefficients on either side")
    return BoardFilter(
        sections=sections,
        cic_order=values["cic_order"],
        window=values["window"],
        sample_period=values["sample_period"],
    )
