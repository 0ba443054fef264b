"""Telling a person that Numba compiles, which takes its time on first use: what it keeps is there the next time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from jointbench.cli.console import Console

WORDS = "compiling the numerical kernels: on first use only, what is compiled is kept"


@contextmanager
def compiling_told(console: Console) -> Generator[None]:
    """Say it when the first function is compiled inside the block, and show the name of each; imports Numba.

    Source: https://numba.readthedocs.io/en/stable/developer/event_api.html
    """
    from numba.core import event

    class Told(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            if not Told.said:
                Told.said = True
                console.say(WORDS)
            console.progress(f"compiling {event.data['dispatcher'].py_func.__name__}")

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Told()):
        yield
