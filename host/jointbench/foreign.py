"""What comes from outside, text and errors of other people's code: values, or one kind of error, whatever comes."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jointbench.errors import JointbenchError

_MOST_WORDS = 200
"""Characters of what foreign code says that are passed on: some say a whole table."""

_MOST_PARTS = 64
# A dotted key of n parts takes a parser n² steps and bytes: 100 kB of them a minute and gigabytes.
_LONG_KEY = re.compile(rf"(?:[A-Za-z0-9_-]{{1,100}}[ \t]*\.[ \t]*){{{_MOST_PARTS}}}")


@contextmanager
def foreign_code(
    error: type[JointbenchError], what: str, advice: str, kinds: tuple[type[BaseException], ...] = (BaseException,)
) -> Iterator[None]:
    """Have a block that calls other people's code raise nothing but one kind of error, whatever that code throws.

    What stops a program passes, and that a file is not there, for which its reader has a sentence of its own.

    Args:
        error: the kind.
        what: the thing and its value, as the sentence begins: "the table log.parquet cannot be read".
        advice: what to do next.
        kinds: of what is thrown, where the block has code of ours whose mistakes must not pass for that of others.

    Raises:
        JointbenchError: of that kind; one that the block raises itself passes.
    """
    try:
        yield
    except (JointbenchError, KeyboardInterrupt, SystemExit, GeneratorExit, FileNotFoundError):
        raise
    except kinds as thrown:  # a panic of Rust is no Exception
        words = " ".join(str(thrown).split())[:_MOST_WORDS]
        raise error(f"{what}: {type(thrown).__name__}{': ' if words else ''}{words}; {advice}") from thrown


def regular_file(path: Path) -> Path:
    """Return a path that leads to a file with an end, which can be opened without waiting for ever.

    Raises:
        OSError: it is not there, or is no such file: a folder, a pipe or a device.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(number) if stat.S_ISDIR(mode) else "it is a pipe or a device", str(path))
    return path


def bytes_of(path: Path) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: it is not there, may not be read, or is no file that has an end, such as a pipe or a device.
    """
    return regular_file(path).read_bytes()


def text_of(path: Path) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        OSError: as `bytes_of`.
        UnicodeDecodeError: it is no such text.
    """
    return bytes_of(path).decode()


def toml_values(text: str) -> dict[str, Any]:
    """Return what a TOML text holds.

    Raises:
        tomllib.TOMLDecodeError: it is none, or holds a number, a nesting or a key beyond all use.
    """
    if key := _LONG_KEY.search(text):
        line = text.count("\n", 0, key.start()) + 1
        raise tomllib.TOMLDecodeError(f"line {line} has a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise tomllib.TOMLDecodeError(_reason(error)) from None


def json_values(text: str | bytes, *, finite: bool = False) -> Any:
    """Return what a JSON text holds.

    Args:
        text: to read.
        finite: refuse NaN and Infinity, which some programs write and JSON does not have.

    Raises:
        json.JSONDecodeError, UnicodeDecodeError: it is none, or holds a number or a nesting beyond all use.
    """
    try:
        return json.loads(text, parse_constant=_no_number if finite else None)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except (ValueError, RecursionError) as error:
        raise json.JSONDecodeError(_reason(error), "", 0) from None


def number(text: str) -> float:
    """Return the number that a text is, written as programs write numbers: neither 1_0 nor other alphabets' digits.

    Raises:
        ValueError: it is none.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is no number")
    return float(text)


def _no_number(word: str) -> float:
    raise json.JSONDecodeError(f"{word} is no number of JSON", "", 0)


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else "it has an integer of too many digits"
