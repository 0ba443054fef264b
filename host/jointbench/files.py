"""Files of users: text, TOML and JSON read whatever they hold, written whole or not at all, sealed against edits."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from jointbench.errors import FileNotWritten, JointbenchError


def write_file(path: str | Path, content: str | bytes) -> Path:
    """Write a file whole or not at all; what was there before stays until then.

    Args:
        path: of the file; text goes into it as UTF-8.
        content: all of it.

    Returns:
        The path.

    Raises:
        FileNotWritten: the disk is full or gone, or the place may not be written.
    """
    with replacing(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a place beside a file to write to; what is there at the end takes the file's place, if no error came.

    The new content is on the disk before it has the file's name, and the name before this returns. What is no regular
    file, such as /dev/stdout, is written to as it is; of a link, where it leads.

    Args:
        path: of the file, whose folder is there.

    Yields:
        The path to write to, of the same suffix.

    Raises:
        FileNotWritten: the disk is full or gone, or the place may not be written; the file is as it was.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        with _named(path):
            yield place
        return
    beside = place.with_name(f".{os.getpid()}.{place.name}")
    try:
        with _named(path):
            yield beside
            with suppress(FileNotFoundError):
                beside.chmod(place.stat().st_mode & 0o777)
            sync(beside)
            beside.replace(place)
            sync(place.parent)
    finally:
        with suppress(OSError):
            beside.unlink()


def keep_earlier(path: str | Path) -> Path | None:
    """Move a file that is there to the next free name beside it, "model-1.json" for "model.json".

    Args:
        path: of what is about to be written.

    Returns:
        Where the earlier one is now, None where there was none.

    Raises:
        FileNotWritten: it cannot be moved.
    """
    path = Path(path)
    if not path.is_file():
        return None
    kept = next(place for n in count(1) if not (place := path.with_name(f"{path.stem}-{n}{path.suffix}")).exists())
    with _named(kept):
        path.rename(kept)
        sync(path.parent)  # before there is a new one: after a power cut there may be nothing else of the earlier one
    return kept


def sync(path: Path) -> None:
    """Have a file's content, or a folder's list of names, on the disk.

    Raises:
        OSError: the disk does not take it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    try:
        yield
    except FileNotWritten:
        raise
    except OSError as error:
        kept = "; what it held is still there" if Path(path).is_file() else ""
        raise FileNotWritten(
            f"{path} cannot be written: {error.strerror or error}{kept}; free some space, or name another place"
        ) from error


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


_SEAL = re.compile(r',\n "(?P<name>[^"\n]*)": "(?P<digest>[^"\n]*)"\n}\s*\Z')
_LENGTH = 16  # hexadecimal digits of the digest of one entry


def sealed_json(values: Mapping[str, Any]) -> str:
    """Return values as JSON with the digest of each, and of the whole text in the last line.

    Args:
        values: plain data, with names other than "digests" and "digest".
    """
    digests = {name: _digest(value) for name, value in values.items()}
    text = json.dumps({**values, "digests": digests}, indent=1, ensure_ascii=False)
    body = text.removesuffix("\n}")
    return f'{body},\n "digest": "{hashlib.sha256(body.encode()).hexdigest()}"\n}}\n'


def is_sealed(text: str) -> bool:
    """Return whether a text ends as `sealed_json` ends one, changed or not."""
    seal = _SEAL.search(text)
    return seal is not None and ("digest" in seal["name"] or len(seal["digest"]) == hashlib.sha256().digest_size * 2)


def what_changed(text: str, values: Mapping[str, Any]) -> str:
    """Say what of a sealed text was changed after it was written, "" where nothing was.

    Args:
        text: of the file.
        values: that it holds.
    """
    seal = _SEAL.search(text)
    body = text[: seal.start()] if seal else text
    if seal and (seal["name"], seal["digest"]) == ("digest", hashlib.sha256(body.encode()).hexdigest()):
        return ""
    digests = values.get("digests")
    known: dict[str, Any] = digests if isinstance(digests, dict) else {}
    names = dict.fromkeys([*known, *(name for name in values if name not in ("digests", "digest"))])
    changed = [name for name in names if name not in values or known.get(name) != _digest(values[name])]
    which = f"in {', '.join(changed)}" if changed else "in its text, though in none of its values"
    return f"was changed after it was written, {which}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:_LENGTH]
