"""What else a mapping may say: velocities, uneven times, what is still open, another file, a robot beside the data."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jointbench.errors import ImportedDataError, MappingError
from jointbench.recording import import_csv, open_run
from jointbench.tests.recording.test_import_csv import MAPPING, ROWS, bring, timed, write
from jointbench.tests.recording.test_run_directory import URDF

VELOCITY = '\n[velocity]\ncolumns = ["ta", "tb"]\nunit = "deg/s"\nside = "joint"\n'


@pytest.fixture
def table() -> np.ndarray:
    values = np.random.default_rng(4).standard_normal((ROWS, 5)).round(6)
    values[:, 0] = (1e-3 * np.arange(ROWS)).round(6)
    return values


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
    with pytest.raises(
        MappingError, match=r"velocity: unit = 'rad' is not known here; the units are rad/s, deg/s, rpm"
    ):
        bring(write(tmp_path, table, mapping=MAPPING + VELOCITY.replace("deg/s", "rad")))


def test_uneven_times_are_interpolated_when_asked(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    time = (1e-3 * (np.arange(ROWS) + rng.uniform(-0.3, 0.3, ROWS))).round(7)
    table = smooth(time)
    with pytest.raises(ImportedDataError, match=r"times are uneven: .* set resample = true in \[time\]"):
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
        with pytest.raises(ImportedDataError, match=message):
            bring(write(tmp_path, table, mapping=mapping))


def test_what_is_open_is_named(tmp_path: Path, table: np.ndarray) -> None:
    mapping = MAPPING.replace("sample_rate_Hz = 1000", 'sample_rate_Hz = "?"').replace('"N·m"', '"N·m"\ngain = "?"')
    with pytest.raises(
        MappingError, match=r"mapping map.toml: still to be filled in: sample_rate_Hz, torque.gain; what"
    ):
        bring(write(tmp_path, table, mapping=mapping))
    with pytest.raises(MappingError, match=r"filled in: position.columns"):
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
    with pytest.raises(MappingError, match=r"takes 2 files, torque.csv, log.csv; give the folder they are in"):
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
    with pytest.raises(MappingError, match=r"lever.urdf': there is no such file"):
        import_csv(tmp_path / "map.toml", tmp_path / "again")


@pytest.mark.parametrize("resample", [True, False])
def test_times_that_jump_by_weeks_are_named_before_a_grid_is_made(tmp_path: Path, resample: bool) -> None:
    """10⁷ s at 1 kHz would be terabytes."""
    time = 1e-3 * np.arange(ROWS) + 1e7 * (np.arange(ROWS) > 120)
    more = "sample_rate_Hz = 1000" + ("" if resample else "\nallow_gaps = true")
    mapping = timed(more).replace('unit = "s"\n', f'unit = "s"\nresample = {str(resample).lower()}\n')
    with pytest.raises(ImportedDataError, match=r"time jumps by 1e\+07 s after line 122: correct the clock, or"):
        bring(write(tmp_path, smooth(time), mapping=mapping))
