"""`./run fuzz edits`: random edits of runs' files, of models and of plans, and whether each is noticed and named.

An edit is one that a person or a program might make: a digit, a word, a line. Each changes bytes, most change a value.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import jointbench as jb
from hil_tests.virtual_bench import virtual_bench
from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.main import main as jointbench
from jointbench.errors import RunError
from tools.docs.example_runs import imported

BENCH = Path(__file__).resolve().parents[2] / "hil_tests" / "benches" / "modular7.toml"
ROBOT = "modular7:2"
FILES = (
    "recorded/run.toml", "recorded/robot.toml", "recorded/schema.json", "imported/run.toml", "imported/robot.toml",
    "imported/mapping.toml", "model.json", "plan.json",
)  # fmt: skip
_PERIOD_S = 3.2
_SHOWN = 20
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]{3,}")


@dataclass(frozen=True)
class Case:
    """One edit and what came of it.

    Attributes:
        file: path within the folder.
        how: kind of edit.
        missed: who did not notice it, or named another file or value; empty where all did.
        told: whether its value had to be named, and was.
    """

    file: str
    how: str
    missed: tuple[str, ...]
    told: bool


def fuzz_edits(options: argparse.Namespace, console: Console) -> Result:
    """Edit files of real runs, a model and a plan; exit code 1 when any edit went unnoticed or was not named."""
    cases: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="edits") as name:
        folder = Path(name)
        with console.working("recording, importing, planning and fitting"):
            make_files(folder)
        for number in range(options.cases):
            case = edited(folder, FILES[number % len(FILES)], Random(f"{options.seed} {number}"))
            cases.append(case)
            if case.missed:
                console.say(f"case {number}, {case.file} ({case.how}): {'; '.join(case.missed)}")
    counts = Counter(case.file for case in cases)
    kinds = Counter(case.how for case in cases)
    console.say(table(("file", "edits"), [[file, str(count)] for file, count in sorted(counts.items())]))
    console.say(table(("edit", "edits"), [[how, str(count)] for how, count in sorted(kinds.items())]))
    noticed, told = sum(not case.missed for case in cases), sum(case.told for case in cases)
    console.say(f"{noticed} of {len(cases)} noticed, the file named; the value, too, of all {told} that changed one")
    checks = (Check("edits", len(cases), ">=", options.cases), Check("unnoticed", len(cases) - noticed, "==", 0))
    for check in checks:
        console.say(str(check))
    fields = {
        "files": dict(sorted(counts.items())),
        "edits": dict(sorted(kinds.items())),
        "values_named": told,
        "missed": [vars(case) for case in cases if case.missed][:_SHOWN],
    }
    return Result("fuzz edits", options.seed, checks, fields)


def make_files(folder: Path) -> None:
    """Record a planned motion on an emulated bench, import a log, and fit a model, as their users do."""
    plan, log = str(folder / "plan.json"), StringIO()
    with redirect_stdout(log), redirect_stderr(log):
        with virtual_bench(BENCH, out=folder / "bench", board="unix:", modules=2) as live:
            steps = (
                ["plan", ROBOT, "--random", "--period", str(_PERIOD_S), "--out", plan],
                ["run", str(live), "--plan", plan, "--repeats", "1", "--out", str(folder / "recorded")],
                ["fit", str(folder / "recorded"), "--out", str(folder / "model.json")],
            )
            for words in steps:
                if jointbench(words) == 2:
                    raise RuntimeError(f"jointbench {' '.join(words)}: {log.getvalue()[-500:]}")
        imported(ROBOT, folder / "imported", 1)


def edited(folder: Path, file: str, rng: Random) -> Case:
    """Edit a file, see who notices it, and put it back."""
    path = folder / file
    before = path.read_text(encoding="utf-8")
    after, how = edit(before, rng)
    path.write_text(after, encoding="utf-8")
    values = changed_values(path.suffix, before, after)
    try:
        judge = _of_run if path.name != path.relative_to(folder).as_posix() else _of_file
        missed = tuple(judge(folder, path, values))
    finally:
        path.write_text(before, encoding="utf-8")
    return Case(file, how, missed, bool(values))


def edit(text: str, rng: Random) -> tuple[str, str]:
    """Return a text after one edit that changes it, and the name of the edit."""
    while True:
        how = rng.choice(list(_EDITS))
        after = _EDITS[how](text, rng)
        if after != text:
            return after, how


def changed_values(suffix: str, before: str, after: str) -> frozenset[str]:
    """Names of the outermost entries of a TOML or JSON text that are different; none where it is no such text now."""
    try:
        a, b = ({".toml": tomllib.loads, ".json": json.loads}[suffix](text) for text in (before, after))
    except ValueError:
        return frozenset()
    return frozenset(name for name in a | b if name not in a or name not in b or not _same(a[name], b[name]))


def _same(a: Any, b: Any) -> bool:
    return json.dumps(a, default=str, sort_keys=True) == json.dumps(b, default=str, sort_keys=True)


def _of_run(folder: Path, path: Path, values: frozenset[str]) -> Iterator[str]:
    """Who does not notice an edit of a run's file."""
    run = path.parent
    code, said = _said(["doctor", str(run)])
    lines = [line for line in said.splitlines() if line.startswith("  NO ")]
    yield from _missing("doctor", (code, 1), "\n".join(lines), f"{path.name} was changed after it was ", values)
    try:
        jb.open_run(run)
        yield "open_run opens it"
    except RunError as error:
        yield from _missing("open_run", (2, 2), str(error), f"{path.name} was changed after it was ", values)
    model = folder / "new.json"
    code, said = _said(["fit", str(run), "--out", str(model)])
    yield from _missing("fit", (code, 2), said, f"{path.name} was changed after it was ", values)
    if model.exists():
        model.unlink()
        yield "fit writes a model"


def _of_file(folder: Path, path: Path, values: frozenset[str]) -> Iterator[str]:
    """Who does not notice an edit of a model or a plan."""
    other = str(folder / "imported")
    commands = {
        "model.json": (["export", str(path), "--out", str(folder / "new.h")], ["validate", str(path), other]),
        "plan.json": (["run", str(folder / "bench.toml"), "--plan", str(path)],),
    }
    for command in commands[path.name]:
        code, said = _said(command)
        readable = values or "was changed" in said
        wanted = f"{path.name} was changed after it was written" if readable else f"{path.name}"
        yield from _missing(command[0], (code, 2), said, wanted, values - {"digests", "digest"})


def _missing(who: str, codes: tuple[int, int], said: str, wanted: str, values: frozenset[str]) -> Iterator[str]:
    if codes[0] != codes[1]:
        yield f"{who} ends with {codes[0]}"
    if wanted not in said:
        yield f"{who} does not name the file: {said[-300:]}"
        return
    what = said.partition(wanted)[2].partition("; take ")[0]  # what to do may hold such a word, too
    if values and not any(re.search(rf"\b{re.escape(name)}\b", what) for name in values):
        yield f"{who} does not name {' or '.join(sorted(values))}: {said[-300:]}"


def _said(words: list[str]) -> tuple[int, str]:
    """Exit code and words of a command."""
    said, here = StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="edits") as elsewhere, redirect_stdout(said), redirect_stderr(said):
        os.chdir(elsewhere)
        try:
            return jointbench(words), said.getvalue()
        finally:
            os.chdir(here)


def _at(text: str, pattern: re.Pattern[str], rng: Random, by: Callable[[str], str]) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = rng.choice(places)
    return text[: place.start()] + by(place[0]) + text[place.end() :]


def _digit(text: str, rng: Random) -> str:
    return _at(text, re.compile(r"\d"), rng, lambda _: rng.choice("0123456789"))


def _sign(text: str, rng: Random) -> str:
    return _at(text, _NUMBER, rng, lambda number: number.removeprefix("-") if number.startswith("-") else f"-{number}")


def _other_number(text: str, rng: Random) -> str:
    return _at(text, _NUMBER, rng, lambda _: rng.choice(_NUMBER.findall(text)))


def _point(text: str, rng: Random) -> str:
    return _at(text, re.compile(r"\d\.\d"), rng, lambda number: number.replace(".", ""))


def _other_word(text: str, rng: Random) -> str:
    return _at(text, _WORD, rng, lambda _: rng.choice(_WORD.findall(text)))


def _letter(text: str, rng: Random) -> str:
    return _at(text, re.compile(r"[a-z]"), rng, lambda _: rng.choice("abcdefghijklmnopqrstuvwxyz"))


def _truth(text: str, rng: Random) -> str:
    return _at(text, re.compile(r"\b(?:true|false)\b"), rng, lambda word: "false" if word == "true" else "true")


def _without_line(text: str, rng: Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def _line_twice(text: str, rng: Random) -> str:
    lines = text.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    return "".join([*lines[:number], lines[number], *lines[number:]])


def _lines_exchanged(text: str, rng: Random) -> str:
    lines = text.splitlines(keepends=True)
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return "".join(lines)


def _space(text: str, rng: Random) -> str:
    return _at(text, re.compile(r" |\n"), rng, lambda space: space * 2)


_EDITS: Mapping[str, Callable[[str, Random], str]] = {
    "a digit": _digit,
    "a sign": _sign,
    "another number": _other_number,
    "a point left out": _point,
    "another word": _other_word,
    "a letter": _letter,
    "true or false": _truth,
    "a line deleted": _without_line,
    "a line twice": _line_twice,
    "lines exchanged": _lines_exchanged,
    "a space": _space,
}
