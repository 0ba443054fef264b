"""The likeliest mistakes: each ends with exit code 2 and one sentence that says what to do instead."""

from pathlib import Path

import pytest

from jointbench.cli.main import main

BENCH = 'version = 1\nname = "lab"\nrobot = "cobot6"\n'
BOARDS = "".join(f'[[board]]\nnode = {n}\njoint = "j{n}"\nurl = "/dev/nowhere{n}"\n' for n in range(1, 7))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "note.txt": "hello", "some.json": '{"a": 1}', "other.toml": "[x]\na = 1\n", "log.csv": "a,b\n1,2\n",
        "few.toml": BENCH + BOARDS.partition("[[board]]\nnode = 2")[0], "lab.toml": BENCH + BOARDS,
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("list nothere.toml", "there is no bench file nothere.toml; it says where each joint's board is"),
        ("check note.txt", "bench file note.txt is not TOML"),
        ("check other.toml", "'version' is missing"),
        ("check few.toml", "robot 'cobot6' needs one each for j1, j2"),
        ("check lab.toml --plan nothere.json", "no plan at nothere.json; make one with `jointbench plan"),
        ("check lab.toml --plan note.txt", "cannot be read"),
        ("run lab.toml --plan some.json", "make one anew with `jointbench plan`"),
        ("repl lab.toml elbow", "has no board for joint 'elbow'; its joints: j1"),
        ("flash /dev/nowhere", "there is no such port; is the board plugged in? `jointbench list`"),
        ("info nothere", "not in the library; the library has cobot6"),
        ("info cobo6", "did you mean cobot6?"),
        ("plan note.txt", "a robot file ends in .toml or .urdf; this is another kind of file"),
        ("info empty", "empty is not a run: it holds no run.toml; give a folder that `run` or `import` wrote"),
        ("doctor nothere", "there is no such directory; runs are directories"),
        ("fit some.json", "some.json is not a run: it is a file; runs are directories"),
        ("validate some.json empty", "it holds no run.toml"),
        ("export some.json --out arm.urdf", "some.json is no model file"),
        ("export empty --out arm.urdf", "not in the library"),
        ("export cobot6 --out arm.xyz", "nothing is exported as .xyz; use .urdf"),
        ("compare empty empty", "holds no model.json; fit the run first, `jointbench fit empty`"),
        ("import nothere", "give the path of a mapping .toml"),
        ("friction log.csv", "log.csv has no velocity; its columns are a, b"),
        ("plan cobot6 --random --out nofolder/plan.json", "nofolder"),
    ],
)
def test_one_sentence_that_says_what_to_do(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"jointbench {line.split()[0]}: ")
    assert words in said
    assert "Traceback" not in said
    assert "Errno" not in said


def test_boards_that_are_not_there_are_named_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "lab.toml"]) == 1
    said = capsys.readouterr().out
    assert "NO  j1, port: port /dev/nowhere1 cannot be opened: there is no such port" in said
    assert "not fit to move: j1, j2, j3, j4, j5, j6" in said
