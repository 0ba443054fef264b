"""Logs with one value a line, or one joint a line, as databases, buses and `melt` write them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jointbench.errors import FileError
from jointbench.recording import import_csv, propose_mapping
from jointbench.recording.csv_log import find_layout, pivot
from jointbench.recording.mapping import LongLayout
from jointbench.tests.recording.test_proposal import DQ, JOINTS, TAU, TIME, Q, write_arm

ROWS = 400
Row = tuple[object, ...]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_arm(tmp_path)


def write(folder: Path, header: str, rows: Sequence[Row]) -> Path:
    path = folder / "log.csv"
    lines = [",".join(f"{cell:.9g}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def values_a_line(start: float = 0.0) -> list[Row]:
    """All signals of one sample after the other."""
    signals = [(f"{name}/{kind}", data[:, k]) for kind, data in (("position", Q), ("velocity", DQ), ("effort", TAU))
               for k, name in enumerate(JOINTS)]  # fmt: skip
    return [(start + TIME[row], name, float(data[row])) for row in range(ROWS) for name, data in signals]


def imported(folder: Path, log: Path) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Proposed mapping, and positions and torques of the run it makes."""
    proposal = propose_mapping(folder / "arm.urdf", [log], folder)
    assert proposal.to_fill_in == ()
    (folder / "mapping.toml").write_text(proposal.text, encoding="utf-8")
    samples = import_csv(folder / "mapping.toml", folder / "run").samples
    assert samples.motor_torque is not None
    return tomllib.loads(proposal.text), np.array(samples.motor_position), np.array(samples.motor_torque)


@pytest.mark.parametrize("by_signal", [False, True])
def test_one_value_a_line(folder: Path, by_signal: bool) -> None:
    rows = values_a_line()
    if by_signal:  # as `melt` writes them: all of a signal, then all of the next one
        rows = [row for name in dict.fromkeys(row[1] for row in rows) for row in rows if row[1] == name]
    mapping, position, torque = imported(folder, write(folder, "time,signal,value", rows))
    assert mapping["files"] == [{"path": "log.csv", "names_in": ["signal"], "time_in": "time"}]
    assert mapping["position"]["columns"] == [f"{name}/position" for name in JOINTS]
    assert position == pytest.approx(Q[:ROWS], abs=1e-8)  # nine digits of the log
    assert torque == pytest.approx(TAU[:ROWS], abs=1e-6)


@pytest.mark.parametrize("names", [JOINTS, ("1", "2", "3")])
def test_one_joint_a_line(folder: Path, names: tuple[str, ...]) -> None:
    rows = [(float(TIME[row]), names[k], float(Q[row, k]), float(TAU[row, k])) for row in range(ROWS) for k in range(3)]
    mapping, position, torque = imported(folder, write(folder, "t,joint,position,effort", rows))
    assert mapping["position"]["columns"] == [f"{name}.position" for name in names]
    assert position == pytest.approx(Q[:ROWS], abs=1e-8)
    assert torque == pytest.approx(TAU[:ROWS], abs=1e-6)


def test_signals_with_times_of_their_own_are_interpolated_onto_the_first(folder: Path) -> None:
    signals = [
        (f"{name}.{kind}", data[:, k]) for kind, data in (("q", Q), ("tau", np.cos(Q))) for k, name in enumerate(JOINTS)
    ]
    delays = 1e-4 * np.arange(len(signals))
    rows = [
        (float(TIME[row] + delay), name, float(np.interp(TIME[row] + delay, TIME, data)))
        for row in range(ROWS)
        for delay, (name, data) in zip(delays, signals, strict=True)
    ]
    mapping, position, torque = imported(folder, write(folder, "stamp,name,value", rows))
    assert mapping["files"] == [{"path": "log.csv", "names_in": ["name"], "time_in": "stamp", "interpolate": True}]
    # Linear between samples 2 ms apart: (2 ms)² / 8 of 36 rad/s², and the same of the data made here.
    # The first row is from before the other signals begin.
    assert position == pytest.approx(Q[1:ROWS], abs=4e-5)
    assert torque == pytest.approx(np.cos(Q[1:ROWS]), abs=4e-5)


def write_singles(folder: Path, *, header: bool) -> list[Path]:
    """A file for each signal, and one of the times."""
    signals = {"time": TIME[:ROWS]}
    for name, data in (("q", Q), ("tau", TAU)):
        signals |= {f"{name}_{k + 1}": data[:ROWS, k] for k in range(3)}
    for name, values in signals.items():
        lines = [f"{value:.9g}" for value in values.tolist()]
        (folder / f"{name}.txt").write_text("\n".join([name] * header + lines) + "\n", encoding="utf-8")
    return [folder / f"{name}.txt" for name in signals]


@pytest.mark.parametrize("header", [True, False])
def test_a_file_for_each_signal(folder: Path, header: bool) -> None:
    paths = write_singles(folder, header=header)
    proposal = propose_mapping(folder / "arm.urdf", paths, folder)
    assert "from time.txt … tau_3.txt (400 rows, 7 columns)" in proposal.text
    (folder / "mapping.toml").write_text(proposal.text, encoding="utf-8")
    samples = import_csv(folder / "mapping.toml", folder / "run").samples
    assert samples.motor_position == pytest.approx(Q[:ROWS], abs=1e-8)
    assert samples.motor_torque == pytest.approx(TAU[:ROWS], abs=1e-6)
    assert samples.time == pytest.approx(TIME[:ROWS], abs=1e-9)


def test_files_of_signals_must_belong_together(folder: Path) -> None:
    paths = write_singles(folder, header=False)
    text = propose_mapping(folder / "arm.urdf", paths, folder).text
    (folder / "mapping.toml").write_text(text, encoding="utf-8")
    (folder / "mapping.toml").write_text(text.replace('"q_3"', '"q_4"'), encoding="utf-8")
    with pytest.raises(FileError, match=r"has no column 'q_4'; .*, the files' names without their endings"):
        import_csv(folder / "mapping.toml")
    (folder / "mapping.toml").write_text(text, encoding="utf-8")
    paths[1].write_text("1.0\n" * 30 + "x\n" + "1.0\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"q_1\.txt, line 31: 'x' is not a number; one value a line is expected"):
        import_csv(folder / "mapping.toml")
    paths[1].write_text("1.0\n" * 30, encoding="utf-8")
    with pytest.raises(FileError, match=r"time\.txt has 400 values and .*q_1\.txt 30; files of one value a line are"):
        propose_mapping(folder / "arm.urdf", paths, folder)
    with pytest.raises(FileError, match=r"q_1\.txt has 30 values and q_2\.txt 400; values of all files must"):
        import_csv(folder / "mapping.toml")


def test_nothing_is_interpolated_across_a_gap(folder: Path) -> None:
    time = np.arange(100) * 0.01
    rows: list[Row] = [(float(t), "a", 1.0) for t in time]
    rows += [(float(t + 0.003), "b", 2.0) for k, t in enumerate(time) if not 40 <= k < 50]
    names, cells = ["t", "name", "value"], [[str(cell) for cell in row] for row in rows]
    layout = find_layout(names, cells)
    assert layout is not None
    assert layout == LongLayout("t", ("name",), interpolate=True)
    pivoted = pivot(names, cells, layout, "log.csv", ["t", "a", "b"])
    assert pivoted.values[:, 0] == pytest.approx(time[1:])
    assert np.flatnonzero(np.isnan(pivoted.values[:, 2])).tolist() == list(range(39, 50))


def test_a_column_of_modes_makes_no_long_table(folder: Path) -> None:
    header = ",".join(["t", *(f"q{k}" for k in (1, 2, 3)), *(f"tau{k}" for k in (1, 2, 3)), "mode"])
    rows = [(float(TIME[k]), *Q[k].tolist(), *TAU[k].tolist(), "run" if k > 100 else "hold") for k in range(ROWS)]
    mapping, position, _ = imported(folder, write(folder, header, rows))
    assert mapping["files"] == [{"path": "log.csv"}]
    assert position == pytest.approx(Q[:ROWS], abs=1e-8)


def test_what_is_missing_is_named(folder: Path) -> None:
    log = write(folder, "time,signal,value", values_a_line())
    text = propose_mapping(folder / "arm.urdf", [log], folder).text
    for before, after, message in (
        (
            f'"{JOINTS[0]}/position"',
            '"elbow/q"',
            rf"has no column 'elbow/q'; its columns are time, {JOINTS[0]}/position",
        ),
        ('names_in = ["signal"]', 'names_in = ["name"]', r"has no column 'name'; its columns are time, signal, value"),
    ):
        (folder / "mapping.toml").write_text(text.replace(before, after), encoding="utf-8")
        with pytest.raises(FileError, match=message):
            import_csv(folder / "mapping.toml")
    log.write_text(log.read_text().replace("\n0.002,", "\nsoon,", 1), encoding="utf-8")
    (folder / "mapping.toml").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=r"log\.csv, data row 9, column 'time': 'soon' is no time; mend that line"):
        import_csv(folder / "mapping.toml")
