"""`./run bench startup`: what it starts, and that it can fail. And what verbs that take long import before a word."""

import json
import subprocess
import sys

import pytest

from tools.bench.__main__ import VERBS
from tools.bench.startup import COMMANDS, LIMIT_S, OURS, PEER, make_checks, seconds_of, times_table

HEAVY = {"numpy", "scipy", "numba", "mujoco", "matplotlib", "construct", "pytest"}
ENDS_AT_ITS_FIRST_WORD = """
import builtins, json, os, runpy, sys

def first_word(*words, **_):
    os.write(1, json.dumps([" ".join(map(str, words)), list(sys.modules)]).encode())
    os._exit(0)

builtins.print = first_word
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def first_word(*command: str) -> tuple[str, set[str]]:
    """What a module of the command line says first, and what heavy packages it has imported by then."""
    arguments = [sys.executable, "-P", "-c", ENDS_AT_ITS_FIRST_WORD, *command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    words, modules = json.loads(done.stdout)
    return words, HEAVY & set(modules)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tools.demo", "demo of cobot6: plan"),
        ("tools.demo gorobot2", "demo of gorobot2: plan"),
        ("tools.demo --bench mine.toml", "demo on mine.toml: plan"),
        ("tools.papers --only cobot6", "the demos of cobot6"),
        ("jointbench run mine.toml --plan excitation.json", "playing excitation.json on the boards of mine.toml"),
        ("hil_tests.virtual_bench hil_tests/benches/cobot6.toml", "starting the boards of hil_tests/benches/cobot6"),
    ],
)
def test_the_first_word_waits_for_nothing_heavy(command: str, words: str) -> None:
    said, imported = first_word(*command.split())
    assert said.startswith(words)
    assert imported == set()


def test_a_first_word_that_waits_is_told_by_this() -> None:
    _, imported = first_word("timeit", "--number", "1", "--repeat", "1", "import numpy")
    assert imported == {"numpy"}


def test_the_verb_is_there() -> None:
    assert "startup" in VERBS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_does_what_it_is_timed_for(name: str) -> None:
    assert seconds_of(COMMANDS[name]) > 0.0


def test_a_slow_median_fails() -> None:
    times = {name: [LIMIT_S / 2.0] * 3 for name in COMMANDS}
    assert all(check.ok for check in make_checks(times))
    times[OURS[1]] = [0.1, 1.1 * LIMIT_S, 1.1 * LIMIT_S]
    assert [check.ok for check in make_checks(times)] == [True, False, True]
    assert f"times {PEER}" in times_table(times)
