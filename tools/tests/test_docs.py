"""The pages name what there is: commands that parse, links that lead somewhere, words that a program says."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jointbench.cli.verbs import VERBS
from tools.docs import commands
from tools.docs.__main__ import main as build_site
from tools.docs.block import main as print_block
from tools.docs.commands import ROOT, Command, blocks_of, commands_of, fault_of, verbs_of_run

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
    for verb in re.findall(r"`(?:\./run|jointbench) ([\w]+)", page.read_text(encoding="utf-8")):
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
