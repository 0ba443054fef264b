"""The image of the emulated Cortex-M3: MicroPython as Debian has it, with the port in tools/qemu_port."""

import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

from tools.setup import apt, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import run
from tools.setup.errors import CommandFailed, SetupError

PORT = "ports/jointbench"  # where the port stands in MicroPython's source

# Of the source what the image is made from.
WANTED = re.compile(
    r"[^/]+/((py|extmod|shared|drivers|ports/qemu|lib/(crypto-algorithms|libm|littlefs|oofatfs|re1\.5|uzlib))/.+"
    r"|tools/(makemanifest|manifestfile|mpy-tool)\.py|mpy-cross/mpy_cross/.+)"
)


def port_files(checkout: Checkout) -> list[Path]:
    """Return the files of the port, in a fixed order."""
    return sorted(path for path in (checkout.root / "tools" / "qemu_port").iterdir() if path.is_file())


def build(checkout: Checkout, root: Path, *variables: str) -> Path:
    """Build the image and return its file, in the work folder.

    The result depends on the source, the port and the compiler alone, not on the machine, its settings or the day.

    Args:
        checkout: the checkout, whose work folder it is built in.
        root: the folder of the programs and of MicroPython's source.
        variables: of make, e.g. FROZEN_MANIFEST=manifest.py.

    Raises:
        SetupError: it does not compile.
    """
    work = checkout.work / "qemu-build"
    shutil.rmtree(work, ignore_errors=True)
    with tarfile.open(qemu_tools.source_of(root)) as tar:
        apt.extract(tar, work, WANTED)
    (source,) = work.iterdir()
    port = source / PORT
    port.mkdir()
    for path in port_files(checkout):
        shutil.copy(path, port)
    # MicroPython's makefiles call python3 by that name, and leave no room for a path with a space.
    python = work / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    version = source / "py" / "mpconfig.h"
    settings = [
        f"PATH={root / 'bin'}:{python.parent}:{os.environ.get('PATH', os.defpath)}",
        "GIT_DIR=/dev/null",  # the version is MicroPython's, not that of the repository around it
        f"SOURCE_DATE_EPOCH={version.stat().st_mtime:.0f}",
    ]
    try:
        run(["env", "-i", *settings, "make", f"-j{os.cpu_count() or 1}", *variables], checkout.log, cwd=port)
    except CommandFailed as failure:
        raise SetupError(f"the image of the emulated board does not compile ({failure})") from failure
    return port / "build" / "firmware.elf"
