"""A file that a user keeps is whole at any moment, as it was or as it is to be; an edit of a sealed one is noticed."""

import ast
import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import jointbench
from jointbench.cli.main import main
from jointbench.errors import ExcitationError, FileError, FileNotWritten, FitError, RobotError
from jointbench.excitation import load_excitation, random_excitation
from jointbench.files import (
    bytes_of,
    foreign_code,
    is_sealed,
    json_values,
    number,
    replacing,
    sealed_json,
    text_of,
    toml_values,
    what_changed,
    write_file,
)
from jointbench.identification import fit, load_model
from jointbench.model import load_robot
from jointbench.tests.identification.synthetic import arm, synthetic_run
from jointbench.tests.recording.simulated_run import record

HOST = Path(jointbench.__file__).parent

# What may write by itself, and why.
OTHERS = {
    "files.py": "what all others use",
    "bench/flash/board_files.py": "the file system of an emulated board, cut off at any write by tests of its own",
    "bench/flash/compiler.py": "a folder of the compiler",
    "bench/flash/image.py": "the first content of an emulated board's file system",
    "bench/monitor/server.py": "who serves a bench now: for this user alone, and of no use after a restart",
    "recording/recorder.py": "frames and events, appended as they come",
    "testing/report.py": "copies of logs that are kept where they were",
}
_MODE = re.compile(r"[wax][bt]?\+?|r[bt]?\+|[bt][wax]")
_WRITING = {"write_text", "write_bytes", "savez", "savetxt", "to_csv", "tofile"}

VALUES = {"name": "arm", "parameters": [1.0, 2.5e-7, None], "robot": {"joints": ["j1"]}}


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


class Panic(BaseException):
    """Like those of Rust, which are no Exception."""


@pytest.mark.parametrize("thrown", [Panic("index out\nof bounds"), KeyError("x"), RecursionError(), MemoryError("1 T")])
def test_whatever_foreign_code_throws_is_one_kind_of_error(thrown: BaseException) -> None:
    words = "" if isinstance(thrown, RecursionError) else ": "
    expected = rf"^arm.x cannot be read: {type(thrown).__name__}{words}.*; write it anew$"
    with pytest.raises(FitError, match=expected), foreign_code(FitError, "arm.x cannot be read", "write it anew"):
        raise thrown


@pytest.mark.parametrize("thrown", [KeyboardInterrupt(), SystemExit(143), RobotError("x"), FileNotFoundError()])
def test_what_stops_a_program_or_has_a_name_passes(thrown: BaseException) -> None:
    with pytest.raises(type(thrown)), foreign_code(FitError, "arm.x", "write it anew"):
        raise thrown


def test_mistakes_of_ours_do_not_pass_for_those_of_others() -> None:
    with pytest.raises(KeyError), foreign_code(FitError, "arm.x", "write it anew", (ArithmeticError,)):
        raise KeyError("ours")


DIGITS = 5000 * "9"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"x = {DIGITS}", "it has an integer of too many digits"),
        ("x = " + 3000 * "[" + 3000 * "]", "it is nested too deeply"),
        ("y = 1\n" + 50_000 * "a." + "b = 1", "line 2 has a key of more than 64 parts"),
        ("[" + 500 * "a . " + "b]", "line 1 has a key of more than 64 parts"),
        ("x = ", "Invalid value"),
    ],
)
def test_toml_beyond_all_use(text: str, reason: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=reason):
        toml_values(text)
    assert toml_values("a.b.c = 0.1") == {"a": {"b": {"c": 0.1}}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f'{{"x": {DIGITS}}}', "it has an integer of too many digits"),
        (100_000 * "[", "it is nested too deeply"),
        ("{", "Expecting property name"),
    ],
)
def test_json_beyond_all_use(text: str, reason: str) -> None:
    with pytest.raises(json.JSONDecodeError, match=reason):
        json_values(text)


@pytest.mark.parametrize("text", ["1_0", "١٢", "1,5", "", "0x10", "１"])
def test_what_looks_like_a_number_and_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no number|could not convert"):
        number(text)
    assert (number(" -1.5e3 "), number("inf")) == (-1500.0, float("inf"))


def test_a_pipe_or_a_device_is_no_file(tmp_path: Path) -> None:
    """Reading a pipe would wait for ever, and /dev/zero has no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="it is a pipe or a device"):
            bytes_of(path)
    with pytest.raises(IsADirectoryError):
        text_of(tmp_path)


@pytest.fixture
def five_seconds() -> Iterator[None]:
    """Whoever waits for a pipe would wait for ever."""

    def over(*_: object) -> None:
        raise TimeoutError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("verb", ["doctor", "info"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_runs_file_that_is_none_is_named_and_not_waited_for(
    verb: str, kind: str, tmp_path: Path, five_seconds: None, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = record(tmp_path / "whole")
    for file in sorted(path.name for path in whole.iterdir()):
        run = tmp_path / file
        shutil.copytree(whole, run)
        (run / file).unlink()
        if kind == "pipe":
            os.mkfifo(run / file)
        elif kind == "device":
            (run / file).symlink_to("/dev/zero")
        else:
            (run / file).mkdir()
        code = main([verb, str(run)])
        said = "".join(capsys.readouterr())
        assert code in (0, 1, 2), said
        assert verb == "info" or (code == 1 and file in said)  # what info does not need may be anything


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.mcap", "log.db3", "arm.urdf", "model.json"])
def test_a_pipe_in_the_place_of_a_users_file_is_one_sentence(
    name: str, tmp_path: Path, five_seconds: None, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / name)
    path = str(tmp_path / name)
    propose = ["import", "--robot", "cobot6", "--log", path, "--propose", str(tmp_path / "mapping.toml")]
    by_name = {"arm.urdf": ["info", path], "model.json": ["export", path, "--out", str(tmp_path / "o.h")]}
    assert main(by_name.get(name, propose)) == 2
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("modules", ["٣", "1_0", DIGITS, "0", "-1"])
def test_a_chain_has_a_plain_number_of_joints(modules: str) -> None:
    with pytest.raises(RobotError, match="give a whole number from 1 to 6"):
        load_robot(f"cobot6:{modules}")


VELOCITIES = "velocity_rad_s,torque_Nm\n"


@pytest.mark.parametrize(
    ("name", "content", "command", "said"),
    [
        ("arm.toml", f"version = {DIGITS}", ["info", "arm.toml"], "integer of too many digits"),
        ("arm.toml", 50_000 * "a." + "b = 1", ["info", "arm.toml"], "key of more than 64 parts"),
        ("bench.toml", f"version = {DIGITS}", ["list", "bench.toml"], "integer of too many digits"),
        ("log.toml", f"version = {DIGITS}", ["import", "log.toml"], "integer of too many digits"),
        ("p.json", 100_000 * "[", ["run", "bench.toml", "--plan", "p.json"], "it is nested too deeply"),
        ("m.json", 100_000 * "[", ["export", "m.json", "--out", "o.h"], "it is nested too deeply"),
        ("f.csv", VELOCITIES + '1,"2\n' + 200_000 * "3", ["friction", "f.csv"], "is there a stray quote before it?"),
        ("f.csv", VELOCITIES + "1,2\n2,1e300\n3,4\n", ["friction", "f.csv"], "1e+300 is beyond all that is measured"),
        ("f.csv", '"' + 200_000 * "v" + "\n1,2\n", ["friction", "f.csv"], "is there a stray quote in it?"),
        ("f.csv", VELOCITIES + "1,1_0\n", ["friction", "f.csv"], "'1_0' is not a number"),
        ("f.csv", VELOCITIES + "1,\0\n", ["friction", "f.csv"], "is not a number"),
    ],
)
def test_each_is_one_sentence_of_the_command(
    name: str, content: str, command: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert main(command) == 2
    refused = capsys.readouterr().err
    assert said in refused
    assert len(refused) < 2000
    assert name in refused


def changed(text: str) -> str:
    return what_changed(text, json.loads(text))


def test_what_was_written_is_what_it_was() -> None:
    text = sealed_json(VALUES)
    assert is_sealed(text)
    assert changed(text) == ""
    assert {name: json.loads(text)[name] for name in VALUES} == VALUES
    assert not is_sealed(json.dumps(VALUES, indent=1))


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("2.5e-07", "2.5e-06", "in parameters"),
        ('"j1"', '"j2"', "in robot"),
        ('"name": "arm"', '"nome": "arm"', "in name, nome"),
        ('"name": "arm",', '"name":  "arm",', "in its text, though in none of its values"),
        ('"digest": "', '"digest": "0', "in its text, though in none of its values"),
        ('"digest"', '"dihest"', "in dihest"),
    ],
)
def test_an_edit_is_noticed_and_named(before: str, after: str, where: str) -> None:
    text = sealed_json(VALUES)
    assert before in text
    edited = text.replace(before, after)
    assert changed(edited) == f"was changed after it was written, {where}"
    assert is_sealed(edited)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit(synthetic_run(arm(1), motion_seed=1, noise_seed=1)).save(tmp_path_factory.mktemp("fit") / "model.json")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    motion = random_excitation(load_robot("cobot6:2"), period=4.0)
    return write_file(tmp_path_factory.mktemp("plan") / "plan.json", sealed_json(motion.to_dict()))


def edits(text: str, count: int) -> list[str]:
    """A text with a character changed, left out or put in, at random."""
    rng = random.Random(1)
    found: list[str] = []
    while len(found) < count:
        at, new = rng.randrange(len(text)), rng.choice('0123456789.-eE,:[]{}" abcz\n')
        edited = rng.choice([text[:at] + new + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + new + text[at:]])
        if edited.strip() != text.strip():
            found.append(edited)
    return found


@pytest.mark.parametrize(
    ("which", "read", "error"), [("model", load_model, FileError), ("plan", load_excitation, ExcitationError)]
)
def test_every_edit_of_a_file_is_noticed(
    which: str, read: Callable[[str], object], error: type[Exception], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source: Path = request.getfixturevalue(which)
    read(str(source))
    path = tmp_path / source.name
    for edited in edits(source.read_text(encoding="utf-8"), 100):
        path.write_text(edited, encoding="utf-8")
        with pytest.raises(error):
            read(str(path))
