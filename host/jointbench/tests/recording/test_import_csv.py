"""What else a mapping may say: velocities, uneven times, what is still open, another file, a robot beside the data."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.cli.main import main
from jointbench.errors import FileError, RunError
from jointbench.identification import fit
from jointbench.model import load_robot
from jointbench.recording import import_csv, mapping_names, open_run
from jointbench.tests.recording.test_run_directory import URDF

ROWS = 200
ROBOT = """
version = 1
name = "two"
description = "Two joints that share motors."
source = "made up"

[[couplings]]
name = "wrist"
joints = ["a", "b"]
matrix = [[50, 0], [20, 40]]
"""
JOINT = """
[[joints]]
name = "{name}"
alpha_deg = 0
a_mm = 100
d_mm = 0
position_deg = [-170, 170]
velocity_deg_s = 100
acceleration_deg_s2 = 1000
torque_Nm = 10
[joints.drive]
kind = "direct"
ratio = {ratio}
torque_constant_Nm_A = 0.1
current_limit_A = 10
"""
MAPPING = """
version = 1
robot = "two.toml"
sample_rate_Hz = 1000

[[files]]
path = "log.csv"

[position]
columns = ["pa", "pb"]
unit = "rad"
side = "joint"

[torque]
columns = ["ta", "tb"]
unit = "N·m"
side = "joint"
"""
HEADER = ["t", "pa", "pb", "ta", "tb"]


@pytest.fixture
def table() -> np.ndarray:
    values = np.random.default_rng(4).standard_normal((ROWS, 5)).round(6)
    values[:, 0] = (1e-3 * np.arange(ROWS)).round(6)
    return values


def write(
    folder: Path, table, *, mapping: str = MAPPING, header: bool = True, delimiter: str = ",", lines=None
) -> Path:
    robot = ROBOT + JOINT.format(name="a", ratio=50) + JOINT.format(name="b", ratio=40)
    (folder / "two.toml").write_text(robot, encoding="utf-8")
    text = [delimiter.join(map(repr, map(float, row))) for row in table] if lines is None else lines
    top = [delimiter.join(HEADER)] if header else []
    (folder / "log.csv").write_text("\n".join(top + text) + "\n", encoding="utf-8")
    (folder / "map.toml").write_text(mapping, encoding="utf-8")
    return folder / "map.toml"


def cells(table) -> list[str]:
    return [",".join(map(repr, map(float, row))) for row in table]


def bring(mapping: Path, **more):
    return import_csv(mapping, mapping.parent / "run", **more)


def test_numbers_come_through_unchanged(tmp_path: Path, table):
    run = bring(write(tmp_path, table))
    samples = run.samples
    assert np.array_equal(samples.motor_position, table[:, 1:3])
    assert samples.motor_torque is not None
    assert np.array_equal(samples.motor_torque, table[:, 3:])
    assert samples.motor_position.dtype == np.float64
    assert np.array_equal(samples.time, 1e-3 * np.arange(ROWS))
    assert samples.valid.all()
    assert (samples.play_tick == -1).all()
    assert samples.board_filters is None
    assert run.robot.name == "two"


def test_the_run_keeps_where_it_came_from(tmp_path: Path, table):
    run = bring(write(tmp_path, table))
    log = (tmp_path / "log.csv").read_bytes()
    assert run.provenance["files"] == [{"path": "log.csv", "rows": ROWS, "sha256": hashlib.sha256(log).hexdigest()}]
    assert (run.path / "mapping.toml").read_text(encoding="utf-8") == MAPPING
    assert str(tmp_path) not in (run.path / "run.toml").read_text(encoding="utf-8")
    again = open_run(run.path)
    assert again.sha256 == run.sha256
    assert again.samples.motor_torque is not None
    assert np.array_equal(again.samples.motor_torque, table[:, 3:])
    with pytest.raises(RunError, match="exists; a run is never overwritten"):
        bring(tmp_path / "map.toml")


def test_another_programs_metadata_makes_no_bag_of_a_folder(tmp_path: Path, table):
    mapping = write(tmp_path, table)
    (tmp_path / "metadata.yaml").write_text("camera: front\n", encoding="utf-8")
    assert bring(mapping).samples.n_samples == ROWS
    assert import_csv(mapping, tmp_path / "again", data=tmp_path).samples.n_samples == ROWS
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("log.csv", "metadata.yaml", "two.toml"):
        (tmp_path / name).rename(elsewhere / name)
    assert main(["import", str(mapping), "--data", str(elsewhere), "--out", str(tmp_path / "third")]) in (0, 1)
    assert open_run(tmp_path / "third").samples.n_samples == ROWS


def test_motor_side_goes_through_the_coupling(tmp_path: Path, table):
    run = bring(write(tmp_path, table, mapping=MAPPING.replace('side = "joint"', 'side = "motor"')))
    coupling = np.array([[50.0, 0.0], [20.0, 40.0]])
    assert run.samples.motor_position @ coupling.T == pytest.approx(table[:, 1:3], rel=1e-12)
    assert run.samples.motor_torque == pytest.approx(table[:, 3:] @ coupling, rel=1e-12)


def test_units_gains_and_offsets(tmp_path: Path, table):
    mapping = MAPPING.replace('unit = "rad"', 'unit = ["deg", "counts"]\ncounts_per_turn = 4096\noffset = [5, 0]')
    mapping = mapping.replace('unit = "N·m"\nside = "joint"', 'unit = "mA"\nside = "motor"\ngain = -2\noffset = 3')
    samples = bring(write(tmp_path, table, mapping=mapping)).samples
    assert samples.motor_position[:, 0] == pytest.approx(np.deg2rad(table[:, 1] + 5.0))
    assert samples.motor_position[:, 1] == pytest.approx(table[:, 2] * 2.0 * np.pi / 4096)
    current = 1e-3 * (-2.0 * table[:, 3:] + 3.0)
    assert samples.motor_current == pytest.approx(current)
    assert samples.motor_torque == pytest.approx(0.1 * current @ np.array([[50.0, 0.0], [20.0, 40.0]]))


def test_torque_sensors(tmp_path: Path, table):
    mapping = MAPPING.replace("[torque]", "[joint_torque]").replace('"N·m"', '"mNm"')
    samples = bring(write(tmp_path, table, mapping=mapping)).samples
    assert samples.motor_torque is None
    assert samples.joint_torque == pytest.approx(1e-3 * table[:, 3:])


def test_without_header_columns_are_numbered(tmp_path: Path, table):
    mapping = MAPPING.replace('"log.csv"', '"log.csv"\nheader = false\ndelimiter = ";"')
    for number, name in enumerate(HEADER, start=1):
        mapping = mapping.replace(f'"{name}"', f'"{number}"')
    run = bring(write(tmp_path, table, mapping=mapping, header=False, delimiter=";"))
    assert np.array_equal(run.samples.motor_position, table[:, 1:3])
    assert len(run.samples.time) == ROWS


def test_several_files_in_a_data_folder(tmp_path: Path, table):
    data = tmp_path / "data"
    data.mkdir()
    mapping = MAPPING.replace("[[files]]", '[[files]]\npath = "torque.csv"\n\n[[files]]')
    mapping = mapping.replace("[position]", '[position]\nfile = "log.csv"')
    mapping = mapping.replace("[torque]", '[torque]\nfile = "torque.csv"')
    path = write(tmp_path, table, mapping=mapping)
    (tmp_path / "log.csv").rename(data / "log.csv")
    (data / "torque.csv").write_text("tb,ta\n" + "\n".join(f"{b!r},{a!r}" for a, b in table[:, 3:].tolist()) + "\n")
    run = bring(path, data=data)
    assert run.samples.motor_torque is not None
    assert np.array_equal(run.samples.motor_torque, table[:, 3:])
    (data / "torque.csv").write_text("tb,ta\n" + "1,2\n" * (ROWS - 1))
    with pytest.raises(FileError, match=r"torque.csv has 199 rows and log.csv 200; rows of all files"):
        import_csv(path, tmp_path / "again", data=data)


def test_row_range_and_rows_known_to_be_wrong(tmp_path: Path, table):
    table[60, 3] = np.nan
    mapping = MAPPING.replace("sample_rate", "first_row = 20\nend_row = 180\ninvalid_rows = [[60, 62]]\nsample_rate")
    samples = bring(write(tmp_path, table, mapping=mapping)).samples
    assert len(samples.time) == 160
    assert samples.time[0] == pytest.approx(0.020)
    assert np.flatnonzero(~samples.valid.all(axis=1)).tolist() == [40, 41]
    assert np.array_equal(samples.motor_position, table[20:180, 1:3])


def timed(more: str = "") -> str:
    return MAPPING.replace("sample_rate_Hz = 1000", more) + '\n[time]\ncolumn = "t"\nunit = "s"\n'


def test_a_time_column_gives_the_sample_period(tmp_path: Path, table):
    table[:, 0] = (5.0 + 0.0025 * np.arange(ROWS)).round(4)
    samples = bring(write(tmp_path, table, mapping=timed())).samples
    assert samples.sample_period == pytest.approx(0.0025, rel=1e-9)
    assert samples.time == pytest.approx(table[:, 0])


def test_time_units(tmp_path: Path, table):
    table[:, 0] = 4.0 * np.arange(ROWS)
    samples = bring(write(tmp_path, table, mapping=timed().replace('"s"', '"ms"'))).samples
    assert samples.sample_period == pytest.approx(0.004, rel=1e-9)


def test_a_gap_says_where_and_how_long(tmp_path: Path, table):
    gap = np.delete(table, slice(100, 130), axis=0)
    with pytest.raises(
        FileError,
        match=r"log.csv: 30 rows are missing in 1 gap; the longest lasts 0.031 s from 0.099 s \(line 101\) .*"
        r"allow_gaps = true",
    ):
        bring(write(tmp_path, gap, mapping=timed()))
    assert not (tmp_path / "run").exists()
    run = bring(write(tmp_path, gap, mapping=timed("allow_gaps = true")))
    assert len(run.samples.time) == ROWS
    missing = ~run.samples.valid.all(axis=1)
    assert np.flatnonzero(missing).tolist() == list(range(100, 130))
    assert np.isnan(run.samples.motor_position[missing]).all()
    assert run.samples.motor_torque is not None
    assert np.array_equal(run.samples.motor_torque[~missing], gap[:, 3:])


def test_jitter_is_refused_beyond_the_tolerance(tmp_path: Path, table):
    table[50, 0] += 0.0004
    message = r"times are uneven: 2 of 199 steps are off a sample period of 0.001 s .* line 5[23] .*40%"
    with pytest.raises(FileError, match=message):
        bring(write(tmp_path, table, mapping=timed()))
    assert bring(write(tmp_path, table, mapping=timed("time_tolerance = 0.45"))).samples.valid.all()


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [(80, 0.079, r"line 82: time 0.079 s is there twice"), (80, 0.010, r"line 82: time 0.01 s comes after 0.079 s")],
)
def test_time_must_rise(tmp_path: Path, table, row: int, value: float, message: str):
    table[row, 0] = value
    with pytest.raises(FileError, match=message):
        bring(write(tmp_path, table, mapping=timed()))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(tmp_path: Path, table, bad: float):
    table[33, 4] = bad
    message = r"log.csv, line 35, column 'tb': -?(nan|inf) is not a measurement .*row 33"
    with pytest.raises(FileError, match=message):
        bring(write(tmp_path, table))
    assert not (tmp_path / "run").exists()


def test_what_nobody_measures_is_named(tmp_path: Path, table):
    """Its square is no number."""
    table[60, 3] = 1e300
    with pytest.raises(FileError, match=r"line 62, column 'ta': 1e\+300 is beyond all that is measured"):
        bring(write(tmp_path, table))


@pytest.mark.parametrize("cell", ['"1', "\0", "1_0", "\u0661"])
def test_a_stray_quote_a_nul_and_other_digits_are_named(tmp_path: Path, table, cell: str):
    """Of a quote the cell goes on to the end of the file, where it is missed."""
    mapping = write(tmp_path, table)
    log = next(tmp_path.glob("*.csv"))
    lines = log.read_text(encoding="utf-8").splitlines()
    lines[60] = ",".join([*lines[60].split(",")[:1], cell, *lines[60].split(",")[2:]])
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"line (61|201)[:,]"):
        bring(mapping)


def test_a_nan_in_a_column_that_is_not_used_does_not_matter(tmp_path: Path, table):
    table[33, 0] = np.nan
    assert bring(write(tmp_path, table)).samples.valid.all()


def test_an_unknown_time_cannot_be_declared_invalid(tmp_path: Path, table):
    table[33, 0] = np.nan
    with pytest.raises(FileError, match=r"line 35, column 't': nan"):
        bring(write(tmp_path, table, mapping=timed("invalid_rows = [[33, 34]]")))


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (10, "0.01,1,2,3", r"log.csv, line 12: 4 cells where the first line has 5"),
        (10, "", r"log.csv, line 12: 0 cells where the first line has 5"),
        (10, "0.01,1,2,x,4", r"log.csv, line 12, column 'ta': 'x' is not a number; only numbers can be imported"),
        (10, '0.01,1,2,"3,5",4', r"line 12, column 'ta': '3,5' is not a number; numbers need a decimal point"),
        (10, "0.01,1,2,,4", r"line 12, column 'ta': '' is not a number"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, table, line: int, text: str, message: str):
    lines = cells(table)
    lines[line] = text
    with pytest.raises(FileError, match=message):
        bring(write(tmp_path, table, lines=lines))


def test_too_few_rows(tmp_path: Path, table):
    # 10 parameters a link, 4 a drive, and 3 for the motor that both joints turn.
    with pytest.raises(FileError, match=r"log.csv gives 12 rows, and at least 31 are needed"):
        bring(write(tmp_path, table[:12]))
    with pytest.raises(FileError, match=r"gives 30 rows, and at least 31"):
        bring(write(tmp_path, table, mapping=MAPPING.replace("sample_rate", "first_row = 170\nsample_rate")))


def test_a_row_range_beyond_the_file(tmp_path: Path, table):
    with pytest.raises(FileError, match=r"log.csv has 200 rows; first_row = 0 and end_row = 300 ask for more"):
        bring(write(tmp_path, table, mapping=MAPPING.replace("sample_rate", "end_row = 300\nsample_rate")))


def test_missing_things_are_named(tmp_path: Path, table):
    path = write(tmp_path, table)
    with pytest.raises(FileError, match=r"nowhere: there is no such file or folder; give the folder"):
        import_csv(path, tmp_path / "run", data=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"log.csv cannot be read in .*: there is no such file"):
        import_csv(path, tmp_path / "run", data=tmp_path / "empty")
    (tmp_path / "log.csv").write_text("")
    with pytest.raises(FileError, match=r"log.csv is empty"):
        bring(path)
    (tmp_path / "log.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"log.csv is not UTF-8 text \(byte 0\)"):
        bring(path)
    with pytest.raises(FileError, match=r"log.csv has no column 'tc'; its columns are t, pa, pb, ta, tb"):
        bring(write(tmp_path, table, mapping=MAPPING.replace('"tb"', '"tc"')))
    with pytest.raises(FileError, match=r"mapping 'nothing.toml' cannot be read .* with the package: .*tx40"):
        import_csv("nothing.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", r"version = 2 is not known; this release reads version 1"),
        ("version = 1", "version = 1\nspeed = 3", r"unknown key 'speed'"),
        ("version = 1\n", "", r"'version' is missing"),
        ("version = 1", "version =", r"mapping map.toml is not TOML"),
        ('unit = "rad"', 'unit = "degrees"', r"unit = 'degrees' is not known here; the units are rad, deg, m, mm"),
        ('unit = "N·m"', 'unit = "kg"', r"unit = 'kg' is not known here; the units are N·m, .*, A, mA"),
        ('unit = "N·m"', 'unit = ["A", "Nm"]', r"unit mixes currents and torques"),
        ('unit = "N·m"', 'unit = "A"', r"unit = 'A' with side = \"joint\": a current is measured at the motor"),
        ('unit = "rad"', 'unit = "counts"', r"'counts_per_turn' is missing"),
        ('unit = "rad"', 'unit = "rad"\ngain = [1, 2, 3]', r"gain = \[1, 2, 3\] must be a list of 2 numbers"),
        ('side = "joint"', 'side = "left"', r"side = 'left' must be one of 'motor', 'joint'"),
        ('["pa", "pb"]', '["pa"]', r"columns has 1 entries; robot 'two' has 2 joints: a, b"),
        ("sample_rate_Hz = 1000", "", r"neither sample_rate_Hz nor a table \[time\]"),
        ("sample_rate_Hz = 1000", "sample_rate_Hz = 0", r"sample_rate_Hz = 0 must be above 0"),
        ("sample_rate_Hz = 1000", "sample_rate_Hz = 1000\nend_row = 2.5", r"end_row = 2.5 must be a whole number"),
        ("sample_rate_Hz = 1000", "sample_rate_Hz = 1000\nfirst_row = 9\nend_row = 9", r"end_row = 9 must be above"),
        ("sample_rate_Hz = 1000", "sample_rate_Hz = 1000\ninvalid_rows = [3, 4]", r"invalid_rows = \[3, 4\] must be"),
        ('"two.toml"', '"three.toml"', r"three.toml': there is no such file"),
        ('"log.csv"', '"log.csv"\ndelimiter = ", "', r"delimiter = ', ' must be one character"),
        ("[torque]", "[joint_position]", r"neither \[torque\] of the motors nor \[joint_torque\]"),
    ],
)  # fmt: skip
def test_bad_mappings_are_named(tmp_path: Path, table, old: str, new: str, message: str):
    with pytest.raises(FileError, match=message):
        bring(write(tmp_path, table, mapping=MAPPING.replace(old, new, 1 if "side" not in old else -1)))


def test_torque_sensors_sit_at_the_joint(tmp_path: Path, table):
    mapping = MAPPING.replace("[torque]", "[joint_torque]").replace('side = "joint"', 'side = "motor"')
    with pytest.raises(FileError, match=r"use \[torque\] for motor torque"):
        bring(write(tmp_path, table, mapping=mapping))


def test_a_channel_must_name_one_of_several_files(tmp_path: Path, table):
    mapping = MAPPING.replace("[[files]]", '[[files]]\npath = "other.csv"\n\n[[files]]')
    with pytest.raises(FileError, match="'file' is missing"):
        bring(write(tmp_path, table, mapping=mapping))


def test_a_column_named_twice(tmp_path: Path, table):
    path = write(tmp_path, table)
    log = tmp_path / "log.csv"
    log.write_text(log.read_text().replace("t,pa", "tb,pa", 1))
    with pytest.raises(FileError, match="has 2 columns named 'tb'"):
        bring(path)


# The public recording of a real robot, where it is at hand.
TX40 = Path(__file__).parents[5] / "shared" / "data" / "staubli_tx40"


@pytest.fixture(scope="module")
def tx40(tmp_path_factory: pytest.TempPathFactory):
    if not TX40.is_dir():
        reason = "the public TX40 recording is not in ../shared/data/staubli_tx40"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return import_csv("tx40", tmp_path_factory.mktemp("tx40") / "run", data=TX40)


def test_the_shipped_mapping_reads_the_real_recording(tx40):
    assert "tx40" in mapping_names()
    assert tx40.samples.motor_position.shape == (45_000, 6)
    assert tx40.samples.sample_period == pytest.approx(2e-4)
    # Upright at first, as the recording's geometry has it: motors at 50.265 rad and -70.685 rad over ratios 32 and 45.
    assert tx40.samples.motor_position[0] == pytest.approx([0.0, np.pi / 2, -np.pi / 2, 0.0, 0.0, 0.0], abs=1e-4)
    assert tx40.robot == load_robot("tx40")


def test_a_real_robots_model(tx40):
    model = fit(tx40, friction="coulomb_viscous")
    published = {"j1.viscous": 8.05, "j3.coulomb": 6.34, "wrist.viscous": 0.616, "wrist.coulomb": 1.95}
    for name, value in published.items():
        assert model.value(name) == pytest.approx(value, rel=0.1), name
    assert model.error.total_relative <= 0.079
    # Below what it is where the joints move would be strange: friction near rest is not the model's.
    assert model.error_all.total_relative > model.error.total_relative


VELOCITY = '\n[velocity]\ncolumns = ["ta", "tb"]\nunit = "deg/s"\nside = "joint"\n'


def smooth(time: np.ndarray) -> np.ndarray:
    """Columns that a spline follows: below a tenth of the sample rate."""
    angular = 2.0 * np.pi * time[:, None] * np.array([10.0, 20.0, 30.0, 40.0])
    return np.column_stack([time, np.sin(angular)])


def test_velocities_come_along(tmp_path: Path, table: np.ndarray) -> None:
    run = bring(write(tmp_path, table, mapping=MAPPING + VELOCITY))
    assert run.samples.joint_velocity == pytest.approx(np.deg2rad(table[:, 3:]))
    again = open_run(run.path).samples.joint_velocity
    assert again is not None
    assert np.array_equal(again, np.asarray(run.samples.joint_velocity))


def test_velocities_of_motors_go_through_the_coupling(tmp_path: Path, table: np.ndarray) -> None:
    mapping = MAPPING + VELOCITY.replace("joint", "motor").replace("deg/s", "rpm")
    velocity = bring(write(tmp_path, table, mapping=mapping)).samples.joint_velocity
    assert velocity is not None
    coupling = np.array([[50.0, 0.0], [20.0, 40.0]])
    assert velocity @ coupling.T == pytest.approx(table[:, 3:] * 2.0 * np.pi / 60.0)


def test_velocities_have_units_of_their_own(tmp_path: Path, table: np.ndarray) -> None:
    with pytest.raises(FileError, match=r"velocity: unit = 'rad' is not known here; the units are rad/s, deg/s, rpm"):
        bring(write(tmp_path, table, mapping=MAPPING + VELOCITY.replace("deg/s", "rad")))


def test_uneven_times_are_interpolated_when_asked(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    time = (1e-3 * (np.arange(ROWS) + rng.uniform(-0.3, 0.3, ROWS))).round(7)
    table = smooth(time)
    with pytest.raises(FileError, match=r"times are uneven: .* set resample = true in \[time\]"):
        bring(write(tmp_path, table, mapping=timed()))
    mapping = timed("").replace('unit = "s"\n', 'unit = "s"\nresample = true\n')
    run = bring(write(tmp_path, table, mapping=mapping.replace("version", "sample_rate_Hz = 1000\nversion")))
    samples = run.samples
    assert samples.sample_period == 1e-3
    assert np.diff(samples.time) == pytest.approx(1e-3)
    assert samples.valid.all()
    true = smooth(np.asarray(samples.time))
    # Cubic splines at a 25th of the sample rate: (2 pi / 25)^4 / 384 of the amplitude for even steps, 1.6^4 for these.
    assert samples.motor_position[20:-20] == pytest.approx(true[20:-20, 1:3], abs=1e-3)
    assert run.provenance["resampled"]["gaps"] == 0
    assert 0.1e-3 < run.provenance["resampled"]["jitter_s"] < 0.4e-3


def test_nothing_is_interpolated_over_gaps(tmp_path: Path) -> None:
    time = 1e-3 * np.delete(np.arange(ROWS), slice(100, 120)) + 2e-4 * np.sin(np.arange(ROWS - 20))
    mapping = timed("sample_rate_Hz = 1000").replace('unit = "s"\n', 'unit = "s"\nresample = true\n')
    run = bring(write(tmp_path, smooth(time), mapping=mapping))
    missing = np.flatnonzero(~np.asarray(run.samples.valid).all(axis=1))
    assert set(range(101, 119)) <= set(missing.tolist()) <= set(range(98, 122))
    assert np.isnan(run.samples.motor_position[missing]).all()
    assert run.provenance["resampled"]["gaps"] == 1


def test_rows_known_to_be_wrong_are_not_interpolated_from(tmp_path: Path) -> None:
    table = smooth(1e-3 * np.arange(ROWS) + 2e-4 * np.sin(np.arange(ROWS)))
    table[50:60, 1] = 1e6
    mapping = timed("sample_rate_Hz = 1000\ninvalid_rows = [[50, 60]]").replace(
        'unit = "s"\n', 'unit = "s"\nresample = true\n'
    )
    samples = bring(write(tmp_path, table, mapping=mapping)).samples
    known: NDArray[np.bool_] = np.asarray(samples.valid.all(axis=1))
    assert not known[51:59].any()
    assert np.abs(samples.motor_position[known]).max() < 1.1


def test_repeated_times_are_counted(tmp_path: Path, table: np.ndarray) -> None:
    table[:, 0] = np.repeat(table[::2, 0], 2)
    message = r"line 3: time 0 s is there twice; 100 of 200 rows repeat the time before; .* sample_rate_Hz instead of"
    for mapping in (timed(), timed().replace('unit = "s"\n', 'unit = "s"\nresample = true\n')):
        with pytest.raises(FileError, match=message):
            bring(write(tmp_path, table, mapping=mapping))


def test_what_is_open_is_named(tmp_path: Path, table: np.ndarray) -> None:
    mapping = MAPPING.replace("sample_rate_Hz = 1000", 'sample_rate_Hz = "?"').replace('"N·m"', '"N·m"\ngain = "?"')
    with pytest.raises(FileError, match=r"mapping map.toml: still to be filled in: sample_rate_Hz, torque.gain; what"):
        bring(write(tmp_path, table, mapping=mapping))
    with pytest.raises(FileError, match=r"filled in: position.columns"):
        bring(write(tmp_path, table, mapping=MAPPING.replace('"pb"', '"?"')))


def test_another_file_of_the_same_columns(tmp_path: Path, table: np.ndarray) -> None:
    mapping = write(tmp_path, table)
    other = tmp_path / "more" / "second.csv"
    other.parent.mkdir()
    other.write_text((tmp_path / "log.csv").read_text().replace("t,pa,pb,ta,tb", "t,pb,pa,ta,tb"), encoding="utf-8")
    run = import_csv(mapping, tmp_path / "run", data=other)
    assert np.array_equal(run.samples.motor_position, table[:, [2, 1]])
    assert run.provenance["files"][0]["path"] == "second.csv"
    both = MAPPING.replace("[[files]]", '[[files]]\npath = "torque.csv"\n\n[[files]]')
    (tmp_path / "map.toml").write_text(both.replace("columns", 'file = "log.csv"\ncolumns'), encoding="utf-8")
    with pytest.raises(FileError, match=r"takes 2 files, torque.csv, log.csv; give the folder they are in"):
        import_csv(mapping, tmp_path / "again", data=other)


def test_the_robot_may_lie_with_the_data(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "lever.urdf").write_text(URDF, encoding="utf-8")
    time = 1e-3 * np.arange(100)
    rows = np.column_stack([np.sin(time), np.cos(time)])
    (data / "log.csv").write_text("q,tau\n" + "\n".join(f"{a!r},{b!r}" for a, b in rows.tolist()), encoding="utf-8")
    mapping = (
        MAPPING.replace("two.toml", "lever.urdf").replace('["pa", "pb"]', '["q"]').replace('["ta", "tb"]', '["tau"]')
    )
    (tmp_path / "map.toml").write_text(mapping, encoding="utf-8")
    run = import_csv(tmp_path / "map.toml", tmp_path / "run", data=data)
    assert run.robot.joint_names == ("hinge",)
    assert open_run(run.path).robot.joints[0].link.mass == 2.0
    with pytest.raises(FileError, match=r"lever.urdf': there is no such file"):
        import_csv(tmp_path / "map.toml", tmp_path / "again")


@pytest.mark.parametrize("resample", [True, False])
def test_times_that_jump_by_weeks_are_named_before_a_grid_is_made(tmp_path: Path, resample: bool) -> None:
    """10⁷ s at 1 kHz would be terabytes."""
    time = 1e-3 * np.arange(ROWS) + 1e7 * (np.arange(ROWS) > 120)
    more = "sample_rate_Hz = 1000" + ("" if resample else "\nallow_gaps = true")
    mapping = timed(more).replace('unit = "s"\n', f'unit = "s"\nresample = {str(resample).lower()}\n')
    with pytest.raises(FileError, match=r"time jumps by 1e\+07 s after line 122: correct the clock, or"):
        bring(write(tmp_path, smooth(time), mapping=mapping))
