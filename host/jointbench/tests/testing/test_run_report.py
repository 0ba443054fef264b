"""The report of a run: pytest runs of their own, whose files are read as a machine and as a browser would."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jointbench.testing.session import urls_in
from jointbench.tests.results.page_text import Page
from jointbench.tests.testing.test_taking_turns import with_bench

pytest_plugins = ["pytester"]

# Two boards as they would have told who they are, a recorded run as it would lie in a test's folder, and every outcome.
TESTS = """
import json
import pytest
from jointbench.bench.ledger import BoardLedger, Ledger
from jointbench.testing import functional, needs
from jointbench.testing.record import note

def board(node, image):
    return {"node": node, "joint": f"j{node}", "port": f"/dev/pts/{node}", "board": "unix", "uid": f"00{node}",
            "firmware_version": "1.1.0", "image_sha256": image, "wire": "1.1"}

def held(request, value, ok=True, **changes):
    note(request.node, measured={"id": "line.answer", "value": value, "relation": "<=", "limit": 20.0, "unit": "ms",
                                 "ok": ok, "background": "a servo waits"} | changes)

@functional
@needs("motor")
def test_good(bench_under_test, request, test_folder):
    note(request.node, bench={"name": "desk", "clock": "virtual", "seed": 7, "features": ["motor"]},
         boards=[board(1, "ab" * 32), board(2, "cd" * 32)])
    held(request, 3.0)
    held(request, 12.5)
    ledger = Ledger((BoardLedger(1, "j1", 3, 3, 0, 0, 192, 192, 0, 0, 0, 0),))
    (test_folder / "run").mkdir()
    (test_folder / "run" / "result.json").write_text(json.dumps({"ledger": ledger.to_dict()}))

@functional
@pytest.mark.parametrize("way", ["a b"])
def test_bad(bench_under_test, request, test_folder, way):
    (test_folder / "frames.bin").write_bytes(b"raw")
    print("said <before>")
    held(request, None, ok=False, id="line.lost")
    raise RuntimeError("no answer & <nothing>")

@functional
@needs("torque_sensor")
def test_lacking(bench_under_test): ...

@pytest.fixture
def broken(): raise OSError("no such thing")

@functional
def test_unready(bench_under_test, broken): ...
"""
VERDICT = "1 of 4 tests passed, 1 failed, 1 could not run, 1 skipped. 1 of 2 limits missed."
QUIET = ("-p", "jointbench.testing.plugin", "-p", "no:cacheprovider")
DESK = (*QUIET, "--bench", "desk", "--bench-seed", "7", "--bench-out", "out")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        *QUIET, "--bench", "desk", "--bench-seed", "7", "--bench-out", "out", *arguments
    )


def result_of(pytester: pytest.Pytester) -> dict[str, Any]:
    return json.loads((pytester.path / "out" / "result.json").read_text(encoding="utf-8"))


def by_name(entries: list[Mapping[str, Any]], key: str = "name") -> dict[str, Mapping[str, Any]]:
    return {str(entry[key]).rpartition("::")[2]: entry for entry in entries}


@pytest.fixture
def mixed(pytester: pytest.Pytester) -> pytest.Pytester:
    """A run with every outcome, whose bench has logged."""
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    bench = pytester.mkdir("out") / "live_bench" / "boards" / "j1"
    bench.mkdir(parents=True)
    (bench / "stderr.log").write_text("Traceback of a board")
    (bench.parents[1] / "bench.log").write_text("the bench's words")
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    return pytester


def test_the_result_holds_it_all_and_the_run_has_not_passed(mixed: pytest.Pytester) -> None:
    result = result_of(mixed)
    assert (result["command"], result["seed"], result["version"], result["ok"]) == ("hil", 7, 1, False)
    assert result["verdict"] == VERDICT
    checks = by_name(result["checks"])
    assert {name: (check["value"], check["ok"]) for name, check in checks.items()} == {
        "tests that ran": (2, True),
        "tests that failed": (2, False),
        "line.answer": (12.5, True),  # the worse of two
        "line.lost": (None, False),
    }
    tests = by_name(result["tests"], "test")
    assert {name: test["outcome"] for name, test in tests.items()} == {
        "test_good": "passed",
        "test_bad[a b]": "failed",
        "test_lacking": "skipped",
        "test_unready": "error",
    }
    assert (tests["test_good"]["tier"], tests["test_good"]["needs"]) == ("functional", ["motor"])
    assert tests["test_lacking"]["missing"] == ["torque_sensor"]
    assert tests["test_bad[a b]"]["reason"] == "RuntimeError: no answer & <nothing>"
    assert "said <before>" in tests["test_bad[a b]"]["text"]
    assert tests["test_unready"]["reason"] == "OSError: no such thing"
    (ledger,) = tests["test_good"]["ledgers"]
    assert (ledger["run"], ledger["verdict"]) == ("run", "valid: 0 of 192 samples lost")
    assert [(board["node"], board["url"]) for board in result["boards"]] == [(1, "/dev/pts/1"), (2, "/dev/pts/2")]


def test_each_failure_is_seen_again_by_one_command(mixed: pytest.Pytester) -> None:
    tests = by_name(result_of(mixed)["tests"], "test")
    command = tests["test_bad[a b]"]["command"]
    assert command == "pytest 'test_mixed.py::test_bad[a b]' --bench=desk --bench-seed=7"
    again = mixed.runpytest_inprocess(*QUIET, "test_mixed.py::test_bad[a b]", "--bench", "desk", "--bench-seed", "7")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(
        ["*to see it again*", command, "    raw logs: *test_mixed.py_test_bad_a_b*", "written: *"]
    )


def test_raw_logs_are_kept_of_what_failed_alone(mixed: pytest.Pytester) -> None:
    tests = by_name(result_of(mixed)["tests"], "test")
    kept = Path(tests["test_bad[a b]"]["logs"])
    assert (kept / "frames.bin").read_bytes() == b"raw"
    assert (kept / "bench" / "bench.log").read_text() == "the bench's words"
    assert (kept / "bench" / "boards" / "j1" / "stderr.log").read_text() == "Traceback of a board"
    folders = {path.name for path in (mixed.path / "out" / "tests").iterdir()}
    assert folders == {kept.name, Path(tests["test_unready"]["logs"]).name}
    assert tests["test_good"]["logs"] == ""
    assert (mixed.path / "out" / "live_bench").is_dir()


def test_the_page_tells_the_same_and_needs_nothing_else(mixed: pytest.Pytester) -> None:
    source = (mixed.path / "out" / "report.html").read_text(encoding="utf-8")
    page, result = Page(source), result_of(mixed)
    assert page.by_id["verdict"] == "failed"
    assert not re.search(r'(?:src|href)="(?!#)', source)
    assert "url(" not in source
    assert "RuntimeError: no answer & <nothing>" in page.text
    for test in result["tests"]:
        assert test["command"] in page.text
        assert test["logs"] in page.text
    rows = {row[0].split("a servo")[0]: row for row in page.rows if len(row) in (7, 8)}
    assert rows["line.answer"][1:5] == ["12.5", "≤", "20", "ms"]
    assert rows["line.answer"][5:7] == ["38\u00a0%", "yes"]
    assert rows["line.lost"][1:2] + rows["line.lost"][6:] == ["–", "no"]
    assert rows["1"][7] == "ab" * 32
    assert "the bench lacks torque_sensor" in page.text
    assert "The boards do not all run the same firmware: 2 images." in page.text
    assert len({source[m.start() : source.index("</svg>", m.start())] for m in re.finditer("<svg", source)}) == 2
    assert "Valid: 0 of 192 samples lost." in page.text


def test_junit_has_the_values_as_properties(mixed: pytest.Pytester) -> None:
    tree = ElementTree.parse(mixed.path / "out" / "junit.xml")
    cases = {case.attrib["name"]: case for case in tree.iter("testcase")}
    told = [(each.attrib["name"], each.attrib["value"]) for each in cases["test_good"].iter("property")]
    assert ("line.answer", "12.5 ms, required <= 20 ms") in told
    assert ("line.lost", "no value, required <= 20 ms") in [
        (each.attrib["name"], each.attrib["value"]) for each in cases["test_bad[a b]"].iter("property")
    ]


def test_when_all_is_well_no_raw_log_is_left(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    result = run(pytester, "-k", "good")
    assert result.ret == 0
    assert result_of(pytester)["ok"]
    assert sorted(path.name for path in (pytester.path / "out").iterdir()) == [
        "junit.xml",
        "report.html",
        "result.json",
    ]
    assert "to see it again" not in result.stdout.str()


def test_a_run_in_which_nothing_ran_has_not_passed(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    assert run(pytester, "-k", "lacking").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = result_of(pytester)
    assert not result["ok"]
    assert "No test ran: nothing is shown" in result["verdict"]


def test_a_missed_limit_that_a_test_swallowed_fails_the_run(pytester: pytest.Pytester) -> None:
    swallowing = "\n@functional\ndef test_swallowing(bench_under_test, request): held(request, 21.0, ok=False)\n"
    meant = swallowing.replace("@functional", "@functional\n@pytest.mark.xfail").replace("swallowing", "meant")
    failing = meant.replace("ok=False)", "ok=False) or 1 / 0")
    with_bench(pytester).makepyfile(test_mixed=TESTS + swallowing + failing)
    assert run(pytester, "-k", "good or meant").ret == 0
    assert run(pytester, "-k", "good or swallowing").ret == pytest.ExitCode.TESTS_FAILED
    result = result_of(pytester)
    assert (result["ok"], result["verdict"]) == (False, "2 of 2 tests passed. 1 of 1 limits missed.")


def test_a_required_tier_that_was_skipped_is_told(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    assert run(pytester, "-k", "good or lacking", "--require", "functional").ret == pytest.ExitCode.TESTS_FAILED
    result = result_of(pytester)
    checks = by_name(result["checks"])
    assert checks["required functional tests selected"]["value"] == 2
    assert not checks["required functional tests skipped"]["ok"]
    assert "the required tier functional skipped 1 of 2 tests" in result["verdict"]
    assert result["again"].endswith(" --require=functional")


def test_a_file_that_cannot_be_read_is_a_failure_of_the_report(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_torn="def test_(: ...")
    run(pytester)
    result = result_of(pytester)
    assert not result["ok"]
    assert [test["outcome"] for test in result["tests"]] == ["error"]


@pytest.mark.slow
def test_several_processes_make_one_report(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    # The parent's pytester would share compiled modules with workers that import them anew: a process of its own.
    pytester.runpytest_subprocess(*DESK, "-n", "2")
    result = result_of(pytester)
    assert result["verdict"] == VERDICT
    tests = by_name(result["tests"], "test")
    assert len(tests["test_good"]["measured"]) == 2
    assert len(tests["test_good"]["ledgers"]) == 1
    assert len(result["boards"]) == 2


def test_a_campaign_stands_in_the_page(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    cell = {
        "id": "1",
        "group": "wire",
        "fault": "rx.drop",
        "state": "ARMED",
        "ok": True,
        "ticks": 3,
        "command": "./one",
    }
    cells = [cell, cell | {"state": "DONE", "ok": False, "reason": "named late", "command": "./two"}]
    (pytester.path / "faults.json").write_text(json.dumps({"cells": cells}))
    assert run(pytester, "-k", "good", "--bench-campaign", "faults.json").ret == 0
    page = Page((pytester.path / "out" / "report.html").read_text(encoding="utf-8"))
    assert ["rx.drop", "✓", "✗"] in page.rows
    assert "1 of 2 cells passed." in page.text
    assert "./two" in page.text
    assert "./one" not in page.text
    assert "has cells that did not pass" in page.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bench-campaign", "nowhere.json"), "--bench-campaign: nowhere.json is no fault campaign: *"),
        (("--bench-campaign", "benches/desk.toml"), "--bench-campaign: *is no fault campaign: *"),
        (("--bench-again", "./run {tset}"), "--bench-again './run {tset}': write a command with {test}, *"),
    ],
)
def test_a_wrong_option_is_said_before_anything_runs(
    pytester: pytest.Pytester, arguments: tuple[str, ...], said: str
) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_a_report_that_cannot_be_written_fails_the_run(pytester: pytest.Pytester) -> None:
    with_bench(pytester).makepyfile(test_mixed=TESTS)
    (pytester.mkdir("out") / "result.json").mkdir()
    result = run(pytester, "-k", "good")
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    result.stdout.fnmatch_lines(["*result.json cannot be written: *; name another --bench-out"])


def test_a_board_of_two_motors_has_one_url(tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    file.write_text('[[board]]\nnode = 1\nurl = "a"\n[[board]]\nnodes = [2, 3]\nurl = "b"\n')
    assert urls_in(file) == {1: "a", 2: "b", 3: "b"}
