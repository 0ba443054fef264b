"""What is written as TOML reads back as what it was, and runs are read from wherever they are.

Archives of arrays: what was written comes back, lies in the file, and damage is seen.
"""

import errno
import mmap
import os
import shutil
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointbench.arrays import AppendBuffer, chunks, read_rows, scratch_array
from jointbench.errors import MissingExtra, RobotError, RunError
from jointbench.recording import Samples, examine, open_run, save_samples
from jointbench.recording.run_directory import expand, local_directory, local_run, run_name, toml_text
from jointbench.recording.samples import read_npz, write_npz
from jointbench.tests.identification.test_fleet import make_run, true_parameters
from jointbench.tests.recording.simulated_run import without_seal

# TOML has no characters of UTF-16's surrogate range, and its integers have 64 bits.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALAR = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))

fsspec = pytest.importorskip("fsspec")


def _plain(value: object) -> bool:
    """Whether TOML can hold it as written here: no tables inside lists that hold other things, too."""
    if isinstance(value, dict):
        return all(_plain(item) for item in value.values())
    if isinstance(value, list):
        tables = [isinstance(item, dict) for item in value]
        return all(_plain(item) for item in value) and (not any(tables) or all(tables))
    return True


def _no_nested_tables(value: object, inside: bool = False) -> bool:
    """Tables in lists in lists have no form here; nothing in a run has them."""
    if isinstance(value, dict):
        return not inside and all(_no_nested_tables(item) for item in value.values())
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value) and not inside:
            return all(_no_nested_tables(item) for item in value)
        return all(_no_nested_tables(item, True) for item in value)
    return True


@given(st.dictionaries(TEXT, VALUE.filter(_plain).filter(_no_nested_tables), max_size=4))
def test_everything_comes_back(values: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(values)) == values


def test_numbers_of_numpy_are_numbers() -> None:
    values = {"a": np.float64(0.5), "b": np.array([[1, 2], [3, 4]]), "c": np.bool_(True), "d": None}
    assert tomllib.loads(toml_text(values)) == {"a": 0.5, "b": [[1, 2], [3, 4]], "c": True}


def test_what_has_no_form_is_named() -> None:
    with pytest.raises(RunError, match=r"bench\.port = .* cannot be written to run\.toml"):
        toml_text({"bench": {"port": Path("x")}})


URDF = """<?xml version="1.0"?>
<robot name="lever">
  <link name="base"/>
  <link name="arm">
    <inertial>
      <origin xyz="0 0 0.25"/>
      <mass value="2"/>
      <inertia ixx="0.05" ixy="0" ixz="0" iyy="0.05" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="base"/>
    <child link="arm"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="20"/>
  </joint>
</robot>
"""


def lever_run(folder: Path, text: str = URDF) -> Path:
    robot = folder / "lever.urdf"
    robot.write_text(text, encoding="utf-8")
    still = np.zeros((4, 1))
    samples = Samples(
        time=np.arange(4.0), joint_names=("hinge",), motor_position=still, link_position=None, motor_current=None,
        motor_torque=still, joint_torque=None, play_tick=np.full(4, -1), valid=np.ones((4, 1), dtype=np.bool_),
        board_filters=None, sample_period=1.0,
    )  # fmt: skip
    path = save_samples(folder / "run", samples, {"robot": str(robot)})
    robot.unlink()
    return path


def test_a_urdf_stays_a_urdf(tmp_path: Path) -> None:
    path = lever_run(tmp_path)
    assert (path / "robot.urdf").read_text(encoding="utf-8") == URDF
    assert not (path / "robot.toml").exists()
    robot = open_run(path).robot
    assert robot.name == "lever"
    assert robot.joints[0].link.mass == 2.0
    assert "robot.urdf" in [finding.name for finding in examine(path).findings if finding.ok]


@pytest.mark.parametrize("text", [URDF, "\ufeff" + URDF, "\n" + URDF.partition("\n")[2]])
def test_runs_whose_urdf_was_saved_as_robot_toml_still_open(tmp_path: Path, text: str) -> None:
    path = lever_run(tmp_path)
    (path / "robot.urdf").unlink()
    (path / "robot.toml").write_text(text, encoding="utf-8")
    without_seal(path)
    assert open_run(path).robot.joint_names == ("hinge",)


def test_a_copy_that_is_gone_is_named(tmp_path: Path) -> None:
    path = lever_run(tmp_path)
    (path / "robot.urdf").unlink()
    with pytest.raises(RunError, match=r"robot\.urdf is gone, which was there when it was imported"):
        open_run(path)
    without_seal(path)
    with pytest.raises(RobotError, match=r"robot.toml': there is no such file"):
        open_run(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "arm7", true_parameters(1)[0], 1)


def stored(run: Path, place: str) -> str:
    """Put a run into fsspec's memory, whose URLs are as those of any object store."""
    files = fsspec.filesystem("memory")
    for file in run.iterdir():
        files.pipe(f"/{place}/{file.name}", file.read_bytes())
    return f"memory://{place}"


def test_a_folder_is_read_where_it_is(run: Path):
    for url in (run, str(run), f"file://{run}"):
        with local_run(url) as directory:
            assert directory == run
        assert local_directory(url) == run


@pytest.mark.parametrize("inside", [".", "arm7"])
def test_a_zip_file_is_the_run_it_holds(run: Path, tmp_path: Path, inside: str):
    archive = shutil.make_archive(
        str(tmp_path / "arm7"), "zip", root_dir=run if inside == "." else run.parent, base_dir=inside
    )
    with local_run(archive) as directory:
        assert open_run(directory).sha256 == open_run(run).sha256
    assert not directory.exists()


def test_one_of_several_in_a_zip_file(run: Path, tmp_path: Path):
    shutil.copytree(run, tmp_path / "in" / "one")
    shutil.copytree(run, tmp_path / "in" / "two")
    archive = shutil.make_archive(str(tmp_path / "all"), "zip", root_dir=tmp_path / "in")
    with local_run(f"zip://two::{archive}") as directory:
        assert open_run(directory).samples.n_samples == open_run(run).samples.n_samples
    with (
        pytest.raises(RunError, match=r"all.zip holds 2 runs \(.*one, .*two, …\); name one folder"),
        local_run(archive),
    ):
        pass


def test_an_object_store(run: Path):
    url = stored(run, "bucket/arm7")
    assert local_directory(url) is None
    with local_run(url) as directory:
        assert directory.name == "arm7"
        assert open_run(directory).sha256 == open_run(run).sha256


def test_wildcards_stand_for_runs_alone(run: Path, tmp_path: Path):
    for name in ("b", "a"):
        shutil.copytree(run, tmp_path / name)
    (tmp_path / "report.html").write_text("")
    (tmp_path / "c.zip").write_bytes(b"")
    assert expand([f"{tmp_path}/*", "named"]) == [*(f"{tmp_path}/{name}" for name in ("a", "b", "c.zip")), "named"]
    stored(run, "shelf/arm1")
    stored(run, "shelf/arm2")
    assert expand(["memory://shelf/*"]) == ["memory:///shelf/arm1", "memory:///shelf/arm2"]
    archive = shutil.make_archive(str(tmp_path / "all"), "zip", root_dir=tmp_path)
    found = expand([f"zip://[ab]::{archive}"])
    assert found == [f"zip://{name}::{archive}" for name in ("a", "b")]
    with local_run(found[1]) as directory:
        assert open_run(directory).sha256 == open_run(run).sha256
    with pytest.raises(RunError, match=r"x\* matches no run: no folder of this name holds a run.toml"):
        expand([f"{tmp_path}/x*"])


def test_a_folder_with_a_wildcard_in_its_name_is_itself(run: Path, tmp_path: Path):
    shutil.copytree(run, tmp_path / "arm[1]")
    assert expand([f"{tmp_path}/arm[1]"]) == [f"{tmp_path}/arm[1]"]


def test_what_cannot_be_read_says_why(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def read(url: str) -> None:
        with local_run(url):
            pass

    with pytest.raises(RunError, match=r"nothing.zip cannot be read: there is nothing of that name"):
        read(str(tmp_path / "nothing.zip"))
    (tmp_path / "no.zip").write_bytes(b"no archive")
    with pytest.raises(RunError, match=r"no.zip cannot be read: BadZipFile File is not a zip file"):
        read(str(tmp_path / "no.zip"))
    with pytest.raises(RunError, match=r"carrier-pigeon://arm7 cannot be read: ValueError Protocol not known"):
        read("carrier-pigeon://arm7")
    fsspec.filesystem("memory").pipe("/empty/readme.txt", b"")
    with pytest.raises(RunError, match=r"memory://empty holds 0 runs; name one folder that holds a run.toml"):
        read("memory://empty")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match=r"s3://bucket/arm7 cannot be read: Install s3fs.* install what it names"):
        read("s3://bucket/arm7")


def test_names():
    urls = ("runs/a/", "/x/b.zip", "zip://in/c::/x/y.zip", "s3://bucket/d", "zip://::e.zip", "f")
    assert [run_name(url) for url in urls] == ["a", "b", "c", "d", "e", "f"]
    assert [run_name(url) for url in ("s3://bucket/..", "zip://..::e.zip", "zip://...::e.zip")] == ["run"] * 3
    assert run_name(".") == Path.cwd().name
    assert run_name("x/..") == Path.cwd().name


RNG = np.random.default_rng(0)
ARRAYS = {
    "values": RNG.standard_normal((1000, 6)),
    "flags": RNG.random((1000, 6)) < 0.5,
    "names": np.array(["j1", "gelenk_ö"]),
    "period": np.array(1e-3),
    "across": np.asfortranarray(RNG.standard_normal((30, 4))),
    "none": np.empty((0, 3)),
}


@pytest.mark.parametrize("write", [write_npz, lambda path, arrays: np.savez(path, **arrays),
                                   lambda path, arrays: np.savez_compressed(path, **arrays)])  # fmt: skip
def test_it_comes_back_and_numpy_reads_it_too(tmp_path: Path, write):
    path = tmp_path / "arrays.npz"
    write(path, ARRAYS)
    with np.load(path) as archive:
        for found in (read_npz(path), archive):
            assert sorted(found) == sorted(ARRAYS)
            for name, values in ARRAYS.items():
                np.testing.assert_array_equal(found[name], values)
                assert found[name].dtype == values.dtype


def test_arrays_lie_in_the_file_where_a_processor_likes_them(tmp_path: Path):
    path = tmp_path / "arrays.npz"
    write_npz(path, ARRAYS)
    found = read_npz(path)
    assert isinstance(base_of(found["values"]), mmap.mmap)
    assert not found["values"].flags.writeable
    assert all(found[name].ctypes.data % 64 == 0 for name in ("values", "flags"))
    again = tmp_path / "again.npz"
    write_npz(again, found)
    assert again.read_bytes() == path.read_bytes()


def base_of(values):
    while isinstance(values, np.ndarray):
        values = values.base
    return values.obj if isinstance(values, memoryview) else values


@pytest.mark.parametrize("at", [0.3, 0.5, 0.9])
def test_a_damaged_byte_is_seen(tmp_path: Path, at: float):
    path = tmp_path / "arrays.npz"
    write_npz(path, {"values": ARRAYS["values"]})
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"values\.npy in it is damaged"):
        read_npz(path)


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 8), (10, 14), (10, 99)])
def test_a_damaged_word_on_how_it_is_packed_is_seen(tmp_path: Path, offset: int, value: int):
    """In the archive's own list: encrypted, deflated, LZMA, or a method that nobody knows; it is none of these."""
    path = tmp_path / "arrays.npz"
    write_npz(path, ARRAYS)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(data)
    with pytest.raises((ValueError, OSError, EOFError, zipfile.BadZipFile), match=r"."):
        read_npz(path)


def test_objects_are_not_loaded(tmp_path: Path):
    path = tmp_path / "arrays.npz"
    np.savez(path, bad=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="Python objects"):
        read_npz(path)


@pytest.mark.parametrize("rows", [10, 500_000])  # in memory, and in a file
def test_scratch_arrays_hold_what_is_written_part_by_part(rows: int):
    values = scratch_array((rows, 6), np.float64)
    assert isinstance(base_of(values), mmap.mmap) == (rows > 10)
    for part in chunks(rows, 70_000):
        values[part] = np.arange(part.start, part.stop)[:, None]
        read_rows(values, slice(0, 1))  # its pages are given back
    total = sum(float(read_rows(values, part).sum()) for part in chunks(rows))
    assert total == 6 * rows * (rows - 1) / 2
    np.testing.assert_array_equal(read_rows(values, np.array([rows - 1, 0]))[:, 0], [rows - 1, 0])


def test_a_full_disk_is_named_with_the_folder_to_change(monkeypatch: pytest.MonkeyPatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as the system raises it of a file without a name

    def raises(*_: object) -> None:
        raise full

    monkeypatch.setattr(tempfile, "TemporaryFile", raises)
    with pytest.raises(OSError, match=r"No space left .*\(TMPDIR\)") as told:
        scratch_array((500_000, 6), np.float64)
    assert told.value.filename.startswith(tempfile.gettempdir())
    with pytest.raises(OSError, match=r"\(TMPDIR\)"):
        AppendBuffer(np.float64).append(np.zeros(500_000))


def test_a_header_that_names_more_than_there_is_memory_for_is_damage(tmp_path: Path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    member = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + b"\0" * 80
    for kind, words in ((zipfile.ZIP_DEFLATED, "more than there is memory for"), (zipfile.ZIP_STORED, "buffer")):
        with zipfile.ZipFile(tmp_path / "arrays.npz", "w", kind) as archive:
            archive.writestr("values.npy", member)
        with pytest.raises(ValueError, match=words):
            read_npz(tmp_path / "arrays.npz")
