"""Ctrl-C during a motion is obeyed where it is safe, and only there.

The frame that people and CI read: it must be able to say no.

Packages of an extra: asked for when they are needed, installed where that can be done, else what to type is said.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest

from jointbench import extras
from jointbench.checks import Check, Result
from jointbench.errors import MissingExtra
from jointbench.extras import INSTALLER, need
from jointbench.stopping import SafeInterrupt, why_ended


def test_ctrl_c_waits_for_the_check() -> None:
    with SafeInterrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        interrupt.check()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_others_exit_with_the_shells_status(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)  # of `nohup` it would be another
    try:
        with SafeInterrupt() as interrupt:
            os.kill(os.getpid(), number)
            with pytest.raises(SystemExit) as caught:
                interrupt.check()
    finally:
        signal.signal(number, before)
    assert caught.value.code == 128 + number
    assert why_ended(caught.value).startswith(number.name)


def test_a_program_that_must_outlive_its_terminal_does() -> None:
    """As under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with SafeInterrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            interrupt.check()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_that_comes_last_is_obeyed_on_leaving() -> None:
    def leave() -> None:
        with SafeInterrupt():
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        leave()


def test_one_within_another_obeys_what_that_one_kept() -> None:
    with SafeInterrupt() as outer:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), SafeInterrupt() as inner:
            inner.check()
        outer.check()


def test_an_error_is_not_hidden_by_it() -> None:
    def fail() -> None:
        with SafeInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
            raise ValueError("the reason")

    with pytest.raises(ValueError, match="the reason"):
        fail()


def test_handlers_come_back() -> None:
    with SafeInterrupt():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_the_program_stay_in_charge() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        with SafeInterrupt() as interrupt:
            os.kill(os.getpid(), signal.SIGINT)
            interrupt.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [signal.SIGINT]


def test_outside_the_main_thread_it_does_nothing() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with SafeInterrupt() as interrupt:
                interrupt.check()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors


@pytest.mark.parametrize(
    ("value", "relation", "limit", "ok"),
    [(0, "<=", 0, True), (1, "<=", 0, False), (0.9, ">=", 0.9, True), (0.89, ">=", 0.9, False), (3, "==", 4, False)],
)
def test_check_compares_value_with_limit(value, relation, limit, ok):
    assert Check("figure", value, relation, limit).ok is ok


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_never_passes(value):
    assert not Check("figure", value, "<=", 1.0).ok
    assert not Check("figure", value, ">=", -1.0).ok


def test_one_failed_check_is_exit_code_1():
    good, bad = Check("a", 1, "<=", 2), Check("b", 3, "<=", 2)

    assert Result("fit", checks=(good,)).exit_code == 0
    assert Result("fit", checks=(good, bad)).exit_code == 1
    assert Result("fit", checks=(good,), refused=True).exit_code == 1


def test_frame_has_the_common_keys_and_the_fields(tmp_path):
    result = Result("fit", seed=3, checks=(Check("a", 1, "<=", 2, "s"),), fields={"condition_number": 12.5})
    result.write(str(tmp_path / "result.json"), seconds=1.23456)

    assert json.loads((tmp_path / "result.json").read_text()) == {
        "command": "fit",
        "seed": 3,
        "seconds": 1.235,
        "checks": [{"name": "a", "value": 1, "relation": "<=", "limit": 2, "unit": "s", "ok": True}],
        "condition_number": 12.5,
    }


def test_check_says_its_figures_to_a_person():
    assert str(Check("samples_lost", 3, "<=", 0, "samples")) == "NO  samples_lost: 3 samples (wanted <= 0 samples)"


PACKAGE = "jointbench_never_heard_of"


def installer(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Have extras installed by a Python program, which has the extra's name as its argument."""
    monkeypatch.setenv(INSTALLER, shlex.join([sys.executable, "-Sc", program]))


def test_what_is_there_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installer(monkeypatch, "raise SystemExit(9)")
    need("report", "a report", "json")


def test_without_an_installer_it_says_what_to_type() -> None:
    sentence = rf"^MCAP needs {PACKAGE}, which is not installed; run: pip install 'jointbench\[convert\]', or ./run"
    with pytest.raises(MissingExtra, match=sentence):
        need("convert", "MCAP", PACKAGE)


def test_an_installer_is_asked_once_and_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    made = tmp_path / f"{PACKAGE}.py"
    program = "import sys; print('setting up', sys.argv[1], '(220 MB)', file=sys.stderr); open({!r}, 'x')"
    installer(monkeypatch, program.format(str(made)))
    need("convert", "MCAP", PACKAGE)
    need("convert", "MCAP", PACKAGE)  # a second call of the installer would find the file in its way
    assert capfd.readouterr().err == "setting up convert (220 MB)\n"


def test_packages_that_lie_in_folders_of_their_own_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a .pth file among the packages says, which Python reads when it starts."""
    folder = tmp_path / "apart"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(extras.sysconfig, "get_path", lambda _: str(tmp_path))
    module, path = folder / f"{PACKAGE}.py", tmp_path / "a.pth"
    installer(monkeypatch, f"open({str(module)!r}, 'x'); open({str(path)!r}, 'w').write({str(folder)!r})")
    need("rerun", "Rerun", PACKAGE)


def test_an_installer_that_fails_gives_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = "import sys; sys.stderr.write('set-up: uv: no network\\n  All output: log\\n'); sys.exit(2)"
    installer(monkeypatch, program)
    with pytest.raises(MissingExtra, match=rf"^MCAP needs {PACKAGE}, which is not installed; uv: no network$"):
        need("convert", "MCAP", PACKAGE)
    assert capfd.readouterr().err == ""
