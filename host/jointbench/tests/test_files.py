"""A file that a user keeps is whole at any moment: as it was, or as it is to be."""

import ast
import errno
import os
import re
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import jointbench
from jointbench.errors import FileNotWritten
from jointbench.files import replacing, write_file

HOST = Path(jointbench.__file__).parent

# What may write by itself, and why.
OTHERS = {
    "files.py": "what all others use",
    "bench/flash/board_files.py": "the file system of an emulated board, cut off at any write by tests of its own",
    "bench/flash/image.py": "a folder of the compiler, and the first content of an emulated board's file system",
    "bench/monitor/server.py": "who serves a bench now: for this user alone, and of no use after a restart",
    "recording/record_file.py": "frames, appended as they come",
    "recording/recorder.py": "events, appended as they come",
    "testing/report.py": "copies of logs that are kept where they were",
}
_MODE = re.compile(r"[wax][bt]?\+?|r[bt]?\+|[bt][wax]")
_WRITING = {"write_text", "write_bytes", "savez", "savetxt", "to_csv", "tofile"}


def test_a_new_file_and_one_in_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    assert write_file(path, "µ") == path
    assert path.read_bytes() == b"\xc2\xb5"
    path.chmod(0o640)
    write_file(path, b"other")
    assert path.read_bytes() == b"other"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["model.json"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("model.json")
    write_file(tmp_path / "link.json", "here")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "model.json").read_text() == "here"


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    write_file("/dev/null", "gone")
    assert Path("/dev/null").is_char_device()


def test_an_error_on_the_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_file(tmp_path / "model.json", "before")

    def fail() -> None:
        with replacing(path) as beside:
            beside.write_text("half of it")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["model.json"]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file can be longer than 1000 bytes, as the kernel has it."""
    before, soft = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, soft[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_is_one_sentence_and_the_old_file_whole(tmp_path: Path, small_disk: None) -> None:
    path = write_file(tmp_path / "model.json", "before")
    with pytest.raises(FileNotWritten) as caught:
        write_file(path, "x" * 10_000)
    assert str(caught.value) == (
        f"{path} cannot be written: File too large; what it held is still there; free some space, or name another place"
    )
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["model.json"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotWritten, match=r"gone/model.json cannot be written: No such file or directory; free"):
        write_file(tmp_path / "gone" / "model.json", "x")


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order that a power cut asks for: content, name, folder."""
    path, steps = tmp_path / "model.json", []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append(os.readlink(f"/proc/self/fd/{fd}")), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda old, new: (steps.append(f"-> {Path(new).name}"), replace(old, new)))
    write_file(path, "x")
    assert [Path(step).name if step.startswith("/") else step for step in steps] == [
        f".{os.getpid()}.model.json", "-> model.json", tmp_path.name,
    ]  # fmt: skip


def test_a_disk_that_fails_when_it_is_asked_to_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_file(tmp_path / "model.json", "before")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FileNotWritten, match="Input/output error"):
        write_file(path, "after")
    assert path.read_text() == "before"


def names(tree: ast.AST) -> set[str]:
    """Names of variables."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def writes(tree: ast.AST) -> Iterator[int]:
    """Lines of a module that write a file otherwise."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [*node.args, *(each.value for each in node.keywords)]
        modes = [str(each.value) for each in arguments if isinstance(each, ast.Constant)]
        is_open = name in ("open", "fdopen") and any(_MODE.fullmatch(mode) for mode in modes)
        # A place beside the file is what `replacing` gave, and members of an archive are in such a file.
        if (name in _WRITING or is_open) and not names(node.func) & {"unfinished", "archive"}:
            yield node.lineno


def test_nothing_else_writes_files() -> None:
    found = {
        f"{path.relative_to(HOST)}:{line}"
        for path in HOST.rglob("*.py")
        if "tests" not in path.parts and str(path.relative_to(HOST)) not in OTHERS
        for line in writes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found, f"{', '.join(sorted(found))}: use jointbench.files, so that no file is ever half-written"


def test_who_writes_by_itself_is_found() -> None:
    found = list(writes(ast.parse("path.write_text('')\nopen(path, 'w')\npath.open('rb')\nf.open(mode='ab')")))
    assert found == [1, 2, 4]
