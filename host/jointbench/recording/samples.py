"""Samples of a run in SI units, their file samples.npz, and their columns in a table: name and unit of each field."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, cast
from zipfile import BadZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from jointbench.arrays import Array, chunks, map_file, read_rows
from jointbench.errors import RunError, ShapeError
from jointbench.files import regular_file, replacing
from jointbench.model import CORNERS, Robot
from jointbench.signals import BoardFilter

_ALIGNED = 64
_LOCAL_HEADER = struct.Struct("<26xHH")  # of a file in a zip archive: the lengths of its name and of what is extra
_ZIP64 = 20  # bytes that zipfile itself adds to what is extra
_PADDING = struct.Struct("<HH")  # kind and length of an extra field; 0xD935 is the kind others align by
_PADDING_KIND = 0xD935

_PER_JOINT = (
    "motor_position", "link_position", "motor_current", "motor_torque", "joint_torque", "bus_voltage", "temperature",
    "joint_velocity",
)  # fmt: skip


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez` would, uncompressed, each where a processor likes to read it.

    Arrays that lie in files themselves are copied piece by piece. The same arrays give the same bytes.

    Raises:
        FileNotWritten: it cannot be written; what was there is as it was.
    """
    with (
        replacing(path) as unfinished,
        unfinished.open("wb") as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, values in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            start = file.tell() + 30 + len(info.filename.encode()) + _ZIP64 + _PADDING.size
            padding = -start % _ALIGNED
            info.extra = _PADDING.pack(_PADDING_KIND, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                _write_array(member, values)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of an archive by name: those stored as `write_npz` does it lie in the file, compressed ones are loaded.

    Raises:
        OSError, ValueError, EOFError, zipfile.BadZipFile: it is damaged, or holds something else.
    """
    try:
        return _arrays_of(path)
    except (zlib.error, lzma.LZMAError, RuntimeError) as error:  # what stands for another compression, or a password
        raise ValueError(f"it is damaged ({error})") from error
    except MemoryError as error:  # a header may name any shape
        raise ValueError(f"it says to hold more than there is memory for ({error})") from error


def _arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(regular_file(path)) as archive:
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} in it is damaged")
        mapped = map_file(path)
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as member:
                if info.compress_type != zipfile.ZIP_STORED:
                    arrays[name] = npy.read_array(member, allow_pickle=False)
                    continue
                shape, in_columns, kind = _read_header(member)
                lengths = _LOCAL_HEADER.unpack_from(mapped, info.header_offset)
                start = info.header_offset + _LOCAL_HEADER.size + sum(lengths) + member.tell()
            count = int(np.prod(shape, dtype=np.int64))
            flat = np.frombuffer(mapped, kind, count, start) if count else np.empty(0, kind)
            arrays[name] = flat.reshape(shape, order="F" if in_columns else "C")
    return arrays


def _write_array(member: IO[bytes], values: NDArray[Any]) -> None:
    header = {"descr": npy.dtype_to_descr(values.dtype), "fortran_order": False, "shape": values.shape}
    npy.write_array_header_1_0(member, header)
    if values.ndim == 0:
        member.write(values.tobytes())
        return
    for part in chunks(len(values)):
        member.write(np.ascontiguousarray(read_rows(values, part)).data)


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, in_columns, kind = read(member)
    if kind.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    return shape, in_columns, kind


@dataclass(frozen=True, eq=False)
class Samples:
    """Measured samples, one row a sampling period, one column a joint.

    Boards that count the same ticks share the rows as they are, and nothing is interpolated. Where boards have clocks
    of their own (`Run.clocks` names them), the rows are the ticks of the first joint's board, untouched; the samples
    of the others are shifted to them by the fraction of a period that they lie apart, along the cubic through the four
    nearest samples, beside a gap along the line through two, and never over a missing one.

    Where a sample is missing its values are NaN and `valid` is False. What is sampled less often, each N-th tick, has
    values in the rows of the first board's ticks that N divides and is NaN in between, which leaves `valid` as it is.

    Attributes:
        time: [s], shape (n,), equally spaced by `sample_period`.
        joint_names: names of the columns.
        motor_position: joint position by the motor encoders, through ratio or coupling [rad or m], (n, n_joints); of a
            joint without a motor by its link encoder; its motor torque is 0, its motor current NaN.
        link_position: joint position by the link encoders [rad or m], or None where not measured.
        motor_current: as sampled and filtered on the board [A], or None.
        motor_torque: joint torque from the motors, Mᵀ (torque constant x current) [N·m or N], or None.
        joint_torque: of the joint-side torque sensors [N·m or N], or None.
        play_tick: ticks since the trajectory's first knot, over all repeats; -1 while nothing plays, (n,).
        valid: False where a joint's sample is missing, (n, n_joints).
        board_filters: what each joint's board did to its current and torque, or None where that is not known (imports).
        sample_period: [s].
        bus_voltage: supply of each drive [V], (n, n_joints), or None where no board measures it.
        temperature: of each motor [K], (n, n_joints), or None where no board measures it.
        foot_force: at the corners of each foot of `foot_names`, normal to its sole and positive when it is pressed:
            front left, front right, rear right, rear left [N], (n, n_feet, 4), or None where no foot is measured.
        joint_velocity: as the log tells it [rad/s or m/s], (n, n_joints), or None. Checks hold it against the
            positions; a fit takes it where it is better than their differences.
        foot_names: of the feet that are measured.
    """

    time: Array
    joint_names: tuple[str, ...]
    motor_position: Array
    link_position: Array | None
    motor_current: Array | None
    motor_torque: Array | None
    joint_torque: Array | None
    play_tick: NDArray[np.int64]
    valid: NDArray[np.bool_]
    board_filters: tuple[BoardFilter, ...] | None
    sample_period: float
    bus_voltage: Array | None = None
    temperature: Array | None = None
    foot_force: Array | None = None
    joint_velocity: Array | None = None
    foot_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse arrays whose shapes disagree.

        Raises:
            ShapeError: names the array, its shape and the shape it must have.
        """
        rows, joints = len(self.time), len(self.joint_names)
        expected: dict[str, tuple[int, ...]] = {"time": (rows,), "play_tick": (rows,), "valid": (rows, joints)}
        expected |= {name: (rows, joints) for name in _PER_JOINT}
        expected["foot_force"] = (rows, len(self.foot_names), len(CORNERS))
        for name, shape in expected.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ShapeError(f"samples.{name} has shape {array.shape}, must be {shape}")
        if self.board_filters is not None and len(self.board_filters) != joints:
            raise ShapeError(f"samples.board_filters has {len(self.board_filters)} entries, must have one a joint")

    @property
    def n_samples(self) -> int:
        """Rows."""
        return len(self.time)

    @property
    def n_joints(self) -> int:
        """Columns."""
        return len(self.joint_names)


def write_samples(path: Path, samples: Samples) -> None:
    """Write samples losslessly (float64, no pickle) as an .npz file; what is None is left out."""
    columns: dict[str, Any] = {field.name: getattr(samples, field.name) for field in fields(samples)}
    filters: tuple[BoardFilter, ...] | None = columns.pop("board_filters")
    columns["joint_names"] = np.array(samples.joint_names)
    columns["foot_names"] = np.array(samples.foot_names) if samples.foot_names else None
    if filters is not None:
        sections = [each.sections for each in filters]
        columns["filter_sections"] = np.concatenate([np.reshape(each, (-1, 2, 3)) for each in sections])
        columns["filter_counts"] = np.array([len(each) for each in sections])
        columns["filter_cic_order"] = np.array([each.cic_order for each in filters])
        columns["filter_window"] = np.array([each.window for each in filters])
    write_npz(path, {name: np.asarray(value) for name, value in columns.items() if value is not None})


def read_samples(path: Path) -> Samples:
    """Read what `write_samples` wrote: the arrays stay in the file, and are read where they are looked at.

    Raises:
        RunError: the file is damaged or holds something else.
    """
    try:
        columns: dict[str, Any] = {**read_npz(path)}
        joint_names = tuple(str(name) for name in columns.pop("joint_names"))
        columns["foot_names"] = tuple(str(name) for name in columns.pop("foot_names", ()))
        sample_period = float(columns.pop("sample_period"))
        filters = _take_filters(columns, sample_period)
        columns.pop("adc_window", None)  # of imports before there were filters of more than one section: always 0
        absent = {name: None for name in (*_PER_JOINT, "foot_force") if name not in columns}
        arrays = cast(dict[str, Any], columns | absent)
        return Samples(joint_names=joint_names, board_filters=filters, sample_period=sample_period, **arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        raise RunError(f"{path} holds no samples: {error}; import the recording again") from error


def _take_filters(columns: dict[str, Any], sample_period: float) -> tuple[BoardFilter, ...] | None:
    if "filter_sections" not in columns:
        return None
    rows, counts, orders, windows = (
        columns.pop(f"filter_{name}").tolist() for name in ("sections", "counts", "cic_order", "window")
    )
    filters: list[BoardFilter] = []
    for count, order, window in zip(counts, orders, windows, strict=True):
        sections, rows = tuple((tuple(b), tuple(a)) for b, a in rows[:count]), rows[count:]
        filters.append(BoardFilter(sections=sections, cic_order=order, window=window, sample_period=sample_period))
    return tuple(filters)


_REVOLUTE = {
    "motor_position": "rad", "link_position": "rad", "joint_velocity": "rad/s", "motor_current": "A",
    "motor_torque": "N·m", "joint_torque": "N·m", "bus_voltage": "V", "temperature": "K",
}  # fmt: skip
_PRISMATIC = _REVOLUTE | {
    "motor_position": "m", "link_position": "m", "joint_velocity": "m/s", "motor_torque": "N", "joint_torque": "N",
}  # fmt: skip
QUANTITIES = tuple(_REVOLUTE)
"""Fields of `Samples` that have a column for each joint."""


@dataclass(frozen=True)
class Column:
    """One column of a run's table.

    Attributes:
        name: what it holds and its unit, such as "j1.motor_position_rad".
        unit: as written in texts, "" for none.
        field: of `Samples`.
        place: in the rows of that field: none, (joint,) or (foot, corner).
        kind: of its values: "float64", "int64" or "bool".
    """

    name: str
    unit: str
    field: str
    place: tuple[int, ...]
    kind: str

    def of(self, rows: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Its values in some rows of the fields."""
        return rows[self.field][(slice(None), *self.place)]


def columns_of(samples: Samples, robot: Robot) -> tuple[Column, ...]:
    """The columns of a run that have values: time, what is played, then joint by joint, then foot by foot."""
    columns = [_column("time", "s", "time"), Column("play_tick", "", "play_tick", (), "int64")]
    for place, joint in enumerate(samples.joint_names):
        columns.append(Column(f"{joint}.valid", "", "valid", (place,), "bool"))
        columns += [
            _column(f"{joint}.{field}", joint_unit(robot, joint, field), field, place)
            for field in QUANTITIES
            if getattr(samples, field) is not None
        ]
    if samples.foot_force is not None:
        columns += [
            _column(f"{foot}.{name.replace(' ', '_')}_force", "N", "foot_force", place, corner)
            for place, foot in enumerate(samples.foot_names)
            for corner, name in enumerate(CORNERS)
        ]
    return tuple(columns)


def joint_unit(robot: Robot, joint: str, field: str) -> str:
    """Return the unit of one of `QUANTITIES` of a joint."""
    kind = robot.independent_joints[robot.joint_index(joint)].kind
    return (_REVOLUTE if kind == "revolute" else _PRISMATIC)[field]


def _column(name: str, unit: str, field: str, *place: int) -> Column:
    return Column(f"{name}_{''.join(_spelled(unit))}", unit, field, place, "float64")


def _spelled(unit: str) -> Iterator[str]:
    """A unit in letters that any program takes in a column's name."""
    yield from unit.replace("·", "").replace("/", "_")
