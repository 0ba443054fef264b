"""Every name of `import jointbench as jb` shows how it is used, by an example that pytest runs."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest

import jointbench as jb


def examples(thing: Any, name: str) -> list[doctest.Example]:
    """Those of its docstring that run; of a class not those of its methods."""
    (test,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(thing, name)
    return [example for example in test.examples if not example.options.get(doctest.SKIP)]


@pytest.mark.parametrize("name", jb.__all__)
def test_it_has_an_example(name: str) -> None:
    thing = getattr(jb, name)
    code = "".join(example.source for example in examples(thing, name))

    assert code, f"{name} has no example in its docstring"
    assert inspect.isclass(thing) or f"{name}(" in code, f"the example of {name} does not call it"


def test_dir_lists_every_public_name_before_it_is_used() -> None:
    program = "import jointbench as jb; print(*dir(jb)); print(*jb.__all__); print(jb.__version__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listed, public, version = done.stdout.splitlines()

    assert {*public.split(), "__version__", "__all__"} <= set(listed.split())
    assert version == metadata.version("jointbench")


def test_what_does_not_run_is_no_example() -> None:
    def bare() -> None:
        """Do nothing."""

    def skipped() -> None:
        """Do nothing.

        >>> skipped()  # doctest: +SKIP
        """

    assert examples(bare, "bare") == examples(skipped, "skipped") == []
