"""The dead-man's key of `jointbench float`; hil_tests/test_floating_hand.py lets arms float."""

import os
import time

import pytest

from jointbench.cli.float_ import RELEASED_S, held_key

pty = pytest.importorskip("pty", reason="no terminals of Unix here")
termios = pytest.importorskip("termios", reason="no terminals of Unix here")


def test_a_key_is_held_while_it_repeats_and_let_go_of_when_it_does_not() -> None:
    keyboard, terminal = pty.openpty()
    try:
        before = termios.tcgetattr(terminal)
        os.write(keyboard, b"early")
        time.sleep(0.05)  # until it has come through the terminal
        with held_key(terminal) as is_held:
            assert not is_held()  # pressed before it was asked for
            os.write(keyboard, b" ")
            assert is_held()
            time.sleep(0.5 * RELEASED_S)
            assert is_held()  # between two repetitions
            os.write(keyboard, b"  ")
            time.sleep(0.05)
            assert is_held()
            time.sleep(1.1 * RELEASED_S)
            assert not is_held()
        assert termios.tcgetattr(terminal) == before
    finally:
        os.close(keyboard)
        os.close(terminal)


def test_where_no_key_is_asked_for_the_switch_is_held() -> None:
    with held_key(None) as is_held:
        assert is_held()
