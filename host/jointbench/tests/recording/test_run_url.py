"""Runs from folders, zip files, a memory that stands for an object store, and what is wrong with others."""

import shutil
import sys
from pathlib import Path

import pytest

from jointbench.errors import MissingExtra, RunError
from jointbench.recording import open_run
from jointbench.recording.run_directory import expand, local_directory, local_run, run_name
from jointbench.tests.identification.test_fleet import make_run, true_parameters

fsspec = pytest.importorskip("fsspec")


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
