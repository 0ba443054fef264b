"""What holds for every test: strict floating point, repeatable cases, little CPU time, a browser for who asks."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest_plugins = ["tools.cpu_budget"]

PACKAGES = [Path(__file__).parent / "host", Path(__file__).parent / "protocol"]

# The same cases on every machine, and no time limit per case: a busy machine is not a wrong result.
hypothesis.settings.register_profile("jointbench", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("jointbench")


def pytest_configure() -> None:
    """Let tests install nothing, and Ctrl-C interrupt what they start, also where the shell ignores it (nohup, &).

    The benches of each worker have a core of their own.
    """
    os.environ.pop("JOINTBENCH_INSTALLER", None)
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):  # "gw0", "gw1"
        os.environ["JOINTBENCH_CORE"] = worker.removeprefix("gw")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --board; here, because pytest looks for options here whatever it is asked to run (hil_tests/conftest.py)."""
    parser.addoption("--board", help="run the bench tests, and only those, on boards at unix: or qemu:")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for doctests in the two packages only: elsewhere a module may be a program, or run on a board alone."""
    in_package = any(package in collection_path.parents for package in PACKAGES)
    if collection_path.suffix != ".py" or collection_path.name.startswith("test_") or in_package:
        return None
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no worker has one left when the others have done: slow ones, then what runs boards."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, any(package in item.path.parents for package in PACKAGES)))


def pytest_collection_finish() -> None:
    """Load what the package loads on first use, so that no test is charged with the CPU time of an import."""
    import_module("numba")
    for part in ("interpolate", "ndimage", "optimize", "signal", "sparse", "spatial", "stats"):
        import_module(f"scipy.{part}")


@pytest.fixture(autouse=True)
def strict_floating_point() -> Iterator[None]:
    """Turn an overflow, a division by zero or an invalid operation into an error.

    Underflow stays silent: the tail of an exponential that rounds to zero is the right answer.
    """
    with np.errstate(all="raise", under="ignore"):
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium without a window. Of one file's tests, because no other event loop can run beside it."""
    from tools.browser import chromium  # only here: most runs of tests need no browser

    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that may ask this machine alone."""
    from tools.browser import page_of

    with page_of(browser) as fresh:
        yield fresh
