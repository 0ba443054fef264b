"""The programs of the emulated Cortex-M3: QEMU, the ARM compiler and make, from Debian trixie.

They run with trixie's own loader and libraries, so on machines that have older ones too. The same compiler on every
machine: what it makes of the peers in `./run bench firmware` is counted in instructions, and compared.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.setup import apt, debian
from tools.setup.checkout import Checkout

SOURCE = "micropython"

# Where each architecture's packages keep the loader, beside the libraries.
LOADERS = {"amd64": "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "arm64": "lib/aarch64-linux-gnu/ld-linux-aarch64.so.1"}

# Of the compiler what C for a Cortex-M3 needs, which is a tenth of it; of the rest the programs and libraries. Some of
# the programs are hard links to others, and in a package the first name of a file must be among the wanted ones.
WANTED = re.compile(
    r"""usr/(
        bin/(qemu-system-arm|make)
      | bin/arm-none-eabi-(gcc(-[\d.]+)?|as|ld(\.bfd)?|ar|nm|objcopy|objdump|ranlib|readelf|size|strip)
      | lib/arm-none-eabi/bin/[^/]+
      | lib/gcc/arm-none-eabi/[^/]+/(
            cc1|collect2|lto-wrapper|liblto_plugin\.so|include(-fixed)?/.+|thumb/v7-m/nofp/libgcc\.a
        )
      | include/newlib/.+
      | lib/[^/]+-linux-gnu/[^/]+\.so[^/]*
    )""",
    re.VERBOSE,
)

# Beside each program, under its name; the program itself gets ".real". The compiler finds its parts by argv[0].
WRAPPER = """\
#!/bin/sh
root=${{0%/*}}/{up}
loader=$root/{loader}
exec "$loader" --library-path "${{loader%/*}}" --argv0 "$0" "$0.real"{options} "$@"
"""
# Debian's compiler looks for the C library's headers in /usr, wherever it stands itself.
OPTIONS = {"arm-none-eabi-gcc": ' -isystem "$root/include/newlib"'}


def install(checkout: Checkout, new: Path) -> None:
    """Fetch the programs into a folder: bin, lib and include, and MicroPython's source as it was released.

    Args:
        checkout: where to work.
        new: the folder, which is not there yet.

    Raises:
        SetupError: they cannot be had here.
    """
    architecture = apt.architecture_of(os.uname().machine)
    *debs, source = debian.fetch("qemu", architecture, checkout)
    unpacked = checkout.work / "qemu-root"
    unpack(debs, unpacked, WANTED, architecture)
    (unpacked / "usr").rename(new)
    shutil.copy2(source, new / source.name)


def unpack(
    debs: Iterable[Path], folder: Path, wanted: re.Pattern[str], architecture: str, options: Mapping[str, str] = OPTIONS
) -> None:
    """Unpack some files of packages into a folder, and have the programs among them start with their own loader.

    Args:
        debs: the packages.
        folder: the folder; all stands in its folder usr, which may be moved later.
        wanted: the whole paths of the files, e.g. usr/bin/make.
        architecture: Debian's name of the architecture.
        options: what a program is given before its arguments, by its name; `$root` is the folder usr.
    """
    for deb in debs:
        apt.unpack_part(deb, folder, wanted)
    root = folder / "usr"
    for path in sorted(root.rglob("*")):
        if not path.is_symlink() and path.is_file() and is_program(path):
            wrap(path, root, architecture, options)


def is_program(path: Path) -> bool:
    """Say whether a file is a program made for this machine, rather than a library or a script."""
    with path.open("rb") as file:
        return os.access(path, os.X_OK) and ".so" not in path.name and file.read(4) == b"\x7fELF"


def wrap(path: Path, root: Path, architecture: str, options: Mapping[str, str] = OPTIONS) -> None:
    """Put a script in the place of a program that starts it with the loader of its own Debian.

    Args:
        path: the program.
        root: the folder that holds the programs and their libraries; it may be moved later.
        architecture: Debian's name of the architecture.
        options: what a program is given before its arguments, by its name.
    """
    path.rename(path.with_name(path.name + ".real"))
    path.write_text(
        WRAPPER.format(
            up=os.path.relpath(root, path.parent),
            loader=LOADERS[architecture],
            options=options.get(path.name, ""),
        )
    )
    path.chmod(0o755)


def source_of(root: Path) -> Path:
    """Return MicroPython's source as it was released, among the programs."""
    return next(root.glob(f"{SOURCE}_*.orig.tar.*"))


def key() -> str:
    """Return what the programs are chosen by; other programs are fetched when it changes."""
    packages = debian.key("qemu", apt.architecture_of(os.uname().machine))
    return f"{packages}{WANTED.pattern} {WRAPPER} {OPTIONS}"
