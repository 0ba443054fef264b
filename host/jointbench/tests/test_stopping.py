"""Ctrl-C during a motion is obeyed where it is safe, and only there."""

import os
import signal
import threading

import pytest

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
