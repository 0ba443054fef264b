"""Images of MicroPython, as Debian has its source; that of the emulated Cortex-M3 with the port in tools/qemu_port."""

import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

from tools.setup import apt, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, SetupError, run

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

    Args:
        checkout: the checkout, whose work folder it is built in.
        root: the folder of the programs and of MicroPython's source.
        variables: of make, e.g. FROZEN_MANIFEST=manifest.py.

    Raises:
        SetupError: it does not compile.
    """
    port = unpack(checkout, qemu_tools.source_of(root), "qemu-build") / PORT
    port.mkdir()
    for path in port_files(checkout):
        shutil.copy(path, port)
    return make(checkout, port, root / "bin", *variables) / "build" / "firmware.elf"


def unpack(checkout: Checkout, archive: Path, name: str) -> Path:
    """Unpack what an image is made from of MicroPython's source, in a folder of the work folder."""
    work = checkout.work / name
    shutil.rmtree(work, ignore_errors=True)
    with tarfile.open(archive) as tar:
        apt.extract(tar, work, WANTED)
    (source,) = work.iterdir()
    return source


def make(checkout: Checkout, port: Path, programs: Path, *variables: str) -> Path:
    """Build a port of MicroPython, and return its folder.

    The result depends on the source, the port and the compiler alone, not on the machine, its settings or the day.

    Args:
        checkout: the checkout, whose log is written.
        port: the port's folder, in MicroPython's source.
        programs: the folder of compiler and make.
        variables: of make.

    Raises:
        SetupError: it does not compile.
    """
    source = port.parents[1]
    # MicroPython's makefiles call python3 by that name, and leave no room for a path with a space.
    python = source.parent / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    version = source / "py" / "mpconfig.h"
    settings = [
        f"PATH={programs}:{python.parent}:{os.environ.get('PATH', os.defpath)}",
        "GIT_DIR=/dev/null",  # the version is MicroPython's, not that of the repository around it
        f"SOURCE_DATE_EPOCH={version.stat().st_mtime:.0f}",
    ]
    try:
        run(["env", "-i", *settings, "make", f"-j{os.cpu_count() or 1}", *variables], checkout.log, cwd=port)
    except CommandFailed as failure:
        raise SetupError(f"the image of the emulated board does not compile ({failure})") from failure
    return port
