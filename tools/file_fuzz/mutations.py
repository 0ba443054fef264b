"""What happens to a file's bytes: as by an editor, a bad disk, a program with a mistake, or somebody who means ill."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import Random

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_]{3,}")
NUMBERS = (
    b"0", b"-1", b"1e300", b"-1e300", b"1e-300", b"1e999", b"nan", b"inf", b"-inf", b"99999999", b"9" * 23, b"9" * 5000,
    b"0x7f", b"1_0", b"\xd9\xa3", b"1,5", b"", b"true", b'"1"', b"[1]", b"{}", b"null", b"-0.0",
)  # fmt: skip
PIECES = (
    b"\0", b'"', b"'", b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf", b"[[", b"]]", b"{" * 200, b"[" * 3000,
    b"a." * 3000, b"../" * 8, b"=", b"#", b",", b";", b"<!--", b"]]>", b"&lt;", b"\\u0000", b"/dev/zero", b"$(true)",
    b"%s%n", b"\x1b[2J",
)  # fmt: skip


def mutated(data: bytes, rng: Random) -> tuple[bytes, str]:
    """Return the bytes after one to three mutations, and their names."""
    names: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(list(_MUTATIONS))
        names.append(name)
        data = _MUTATIONS[name](data, rng)
    return data, " + ".join(names)


def displaced(path: Path, rng: Random) -> str:
    """Put something that is no such file in a file's place; return what."""
    what = rng.choice(("nothing", "a folder", "a pipe", "a device", "a link to itself"))
    path.unlink()
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a device":
        path.symlink_to("/dev/zero")
    elif what == "a link to itself":
        path.symlink_to(path)
    return what


def _flip(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 32))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _leave_out(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.choice((1, 8, 64, 512)) :]


def _repeat(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    piece = data[start : start + rng.choice((1, 16, 256, 4096))]
    return data[:start] + piece * rng.choice((2, 3, 20)) + data[start:]


def _exchange_lines(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _drop_line(data: bytes, rng: Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _insert(data: bytes, rng: Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(PIECES) + data[start:]


def _number(data: bytes, rng: Random) -> bytes:
    return _replace(data, _NUMBER, rng.choice(NUMBERS), rng)


def _word(data: bytes, rng: Random) -> bytes:
    words = [match[0] for match in _WORD.finditer(data)]
    return _replace(data, _WORD, rng.choice([*words, b"x", b"../../escaped", b"a" * 300]), rng) if words else data


def _replace(data: bytes, pattern: re.Pattern[bytes], by: bytes, rng: Random) -> bytes:
    places = list(pattern.finditer(data))
    if not places:
        return data
    place = rng.choice(places)
    return data[: place.start()] + by + data[place.end() :]


_MUTATIONS = {
    "flipped bits": _flip,
    "cut": _cut,
    "left out": _leave_out,
    "repeated": _repeat,
    "lines exchanged": _exchange_lines,
    "line dropped": _drop_line,
    "inserted": _insert,
    "number": _number,
    "word": _word,
}
