"""The pages name what there is: commands that parse, links that lead somewhere, words that a program says."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from jointbench.cli.parser import VERBS
from tools.cli_page import PAGE, page
from tools.docs import commands
from tools.docs.__main__ import SAME, draw, picture_difference
from tools.docs.__main__ import main as build_site
from tools.docs.commands import ROOT, Command, blocks_of, commands_of, fault_of, verbs_of_run
from tools.docs.commands import main as print_block
from tools.docs.sandbox import CommandFailed, Sandbox

PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))


def page_with(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_and_what_is_said_of_them(tmp_path: Path) -> None:
    page = page_with(
        tmp_path,
        "# A page\n\n    ./run list     all robots\n\ntext\n<!-- not run `./run fit`: no run -->\n"
        "<!-- played by test_c.py `cc`: slow -->\n"
        "<!-- given: mkdir x\ncd x -->\n\n"
        "```sh\n./run fit a  # of a\ncc x.c\n```\n1. item\n\n   <!-- exit 1: no -->\n\n       jointbench info b\n\n"
        "```console\n$ jointbench info c\nsaid\n(exit code 1)\n$ ls\n```\n```python\nx = 1\n```\n",
    )

    assert [(block.language, block.line) for block in blocks_of(page)] == [
        ("indented", 3), ("sh", 12), ("indented", 19), ("console", 22), ("python", 28),
    ]  # fmt: skip
    assert commands_of(page) == [
        Command(3, "./run list"),
        Command(12, "./run fit a", why_not="no run", given="mkdir x\ncd x"),
        Command(13, "cc x.c", why_not="slow", played_by="test_c.py", given="mkdir x\ncd x"),
        Command(19, "jointbench info b", exit_code=1),
        Command(22, "jointbench info c", exit_code=1),
        Command(25, "ls"),
        Command(28, "x = 1\n", is_python=True),
    ]


def test_the_examples_in_docstrings() -> None:
    outcome = doctest.testmod(commands)
    assert (outcome.attempted > 0, outcome.failed) == (True, 0)


def test_a_block_is_printed_as_it_is_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_with(tmp_path, "```toml\na = 1\n```\n\n```toml\nb = 2\n\nc = 3\n```\n")

    assert print_block(str(page), "toml", "2") == 0
    assert capsys.readouterr().out == "b = 2\n\nc = 3\n"
    assert print_block(str(page), "toml", "3") == 1


def test_the_verbs_of_run_are_known() -> None:
    assert {"demo", "test", "sim", "setup", "docs"} <= verbs_of_run()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_parses(page: Path) -> None:
    for command in commands_of(page):
        if command.is_python:
            ast.parse(command.text if ">>>" not in command.text else "")
        else:
            assert fault_of(command.text) == "", f"{page.name}:{command.line}: {command.text}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_in_the_text_exists(page: Path) -> None:
    known = {*verbs_of_run(), *VERBS, "VERB", "help"}
    for verb in re.findall(r"`(?:\./run|jointbench) (\w[\w-]*)", page.read_text(encoding="utf-8")):
        assert verb in known, f"{page.name} speaks of `{verb}`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_symptoms_are_in_the_words_of_the_programs() -> None:
    sources = [
        *(ROOT / "host").rglob("*.py"),
        *(ROOT / "hil_tests").rglob("*.py"),
        *(ROOT / "tools").rglob("*.py"),
        ROOT / "run",
    ]
    said = "\n".join(path.read_text(encoding="utf-8") for path in sources if "tests" not in path.parts)
    said = re.sub(r"\"\s+f?\"", "", said)  # strings that go on in the next line
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    symptoms = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)

    assert len(symptoms) >= 10
    for symptom in symptoms:
        for part in symptom.split(" … "):
            assert part in said, f"nothing says {part!r}"


def test_a_folder_that_holds_no_site_is_not_emptied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = page_with(tmp_path, "mine")

    assert build_site(["--out", str(tmp_path)]) == 2
    assert f"{tmp_path} holds files and is no site" in capsys.readouterr().err
    assert kept.read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs", "--out", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert not [target for target in re.findall(r'href="([^"]*)"', index) if target.startswith("docs/")]
    assets = re.findall(r'<(?:link|script|img)[^>]+(?:href|src)="(https?:[^"]*)"', index)
    assert assets == []  # nothing of a page comes from a network
    assert (tmp_path / "site" / "source" / "hil_tests" / "benches" / "cobot6.toml.html").exists()


COMMANDS = {page: commands_of(page) for page in PAGES}
MOST_UNTRIED = 0.1
"""Share of the commands of all pages that no test tries: real boards, package indices; the page itself says which."""


def is_run(command: Command) -> bool:
    return not command.why_not


def test_most_are_tried() -> None:
    known = [command for commands in COMMANDS.values() for command in commands]
    run, played = [list(filter(tried, known)) for tried in (is_run, lambda command: bool(command.played_by))]
    print(f"of {len(known)} commands {len(run)} are run for their page, {len(played)} are played by another test")
    untried = [command for command in known if not is_run(command) and not command.played_by]
    for command in untried:
        print(f"  {command.text.partition(chr(10))[0]}: {command.why_not}")

    assert len(untried) <= MOST_UNTRIED * len(known)
    assert all((ROOT / command.played_by).is_file() for command in played)


def test_a_command_that_does_not_do_it_is_told(tmp_path: Path) -> None:
    with closing(Sandbox(tmp_path)) as sandbox:
        assert sandbox.run(Command(1, "echo well")) == "well\n"
        sandbox.run(Command(1, "x = 2\n", is_python=True))
        sandbox.run(Command(1, ">>> x + y\n3\n", is_python=True, given="y = 1"))
        with pytest.raises(CommandFailed, match=r"`false` ended with 1, the page says 0"):
            sandbox.run(Command(1, "false"))
        with pytest.raises(CommandFailed, match=r"Expected:\s+4"):
            sandbox.run(Command(1, ">>> x\n4\n", is_python=True))
        with pytest.raises(CommandFailed, match="before it said anything"):
            sandbox.run(Command(1, "true", meanwhile=True))
        assert "goes on" in sandbox.run(Command(1, "sh -c 'echo goes on; sleep 1000'", meanwhile=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(is_run, COMMANDS[page]))], ids=lambda page: page.stem
)
def test_the_commands_of(page: Path, tmp_path: Path) -> None:
    with closing(Sandbox(tmp_path)) as sandbox:
        for command in filter(is_run, COMMANDS[page]):
            print(f"{page.relative_to(ROOT)}:{command.line}: {command.text}", flush=True)
            sandbox.run(command)


@pytest.mark.slow
def test_the_picture_of_the_filters_is_what_is_drawn(tmp_path: Path) -> None:
    assert picture_difference(draw("filters.png", tmp_path / "filters.png"), ROOT / "docs" / "filters.png") < SAME


def test_another_picture_is_told() -> None:
    assert picture_difference(*2 * [ROOT / "docs" / "filters.png"]) == 0.0
    assert picture_difference(ROOT / "docs" / "filters.png", ROOT / "docs" / "torques.png") > SAME


def test_the_page_is_that_of_the_parsers() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "stale: run `python -m tools.cli_page`"


def test_every_verb_has_a_section_with_an_example() -> None:
    sections = page().split("\n## ")[1:]
    assert [section.splitlines()[0] for section in sections] == list(VERBS)
    assert all("```text\n" in section for section in sections)
    assert "`--interval FROM,TO`" in page()
