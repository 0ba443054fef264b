"""The firmware's generated files: which kernels of which source go where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tools.kernel_compiler.source import read_kernel
from tools.kernel_compiler.thumb import compile_kernel

JOINTBOARD = Path(__file__).resolve().parents[2] / "firmware" / "jointboard"
_HEAD = '''"""Kernels of {name}.py for ARMv7-M cores, generated from it by python -m tools.kernel_compiler."""

import micropython
'''


@dataclass(frozen=True)
class GeneratedFile:
    """One file of Thumb, from the kernels of one file of viper."""

    source: str
    kernels: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it belongs."""
        return JOINTBOARD / f"{self.source}_thumb.py"

    def text(self) -> str:
        """What it must hold now."""
        functions = [
            compile_kernel(read_kernel(JOINTBOARD / f"{self.source}.py", name)).source for name in self.kernels
        ]
        return "\n\n".join([_HEAD.format(name=self.source), *functions])

    def is_stale(self) -> bool:
        """Has its source, or the compiler, changed since it was written?"""
        return not self.path.is_file() or self.path.read_text(encoding="utf-8") != self.text()


FILES = (GeneratedFile("tick", ("tick",)), GeneratedFile("framing", ("decode", "take_block", "queue", "drain")))
