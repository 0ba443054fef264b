"""Debian's packages as set-up takes them: locked by size and hash, fetched from this machine's mirror, no index asked.

`debian.lock` names each file; `python -m tools.setup lock-debian` makes it anew (relock.py). A file that no mirror
holds any more, because a point release superseded it, is fetched through apt in the version that Debian has now.
"""

import functools
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.setup import apt
from tools.setup.checkout import Checkout
from tools.setup.command import Gone, RemoteFile, SetupError, download

LOCK = Path(__file__).with_name("debian.lock")
COLUMNS = "set suite architecture package version size sha256 path"
UNSIGNED = "unsigned"


@dataclass(frozen=True)
class PackageSet:
    """Packages that serve one purpose.

    Args:
        suite: the Debian release they come from.
        architectures: Debian's names of those they are locked for.
        packages: their names.
        closure: whether all that they depend on comes too.
        sources: names of source packages that come besides, as their authors released them.
    """

    suite: str
    architectures: tuple[str, ...]
    packages: tuple[str, ...]
    closure: bool = True
    sources: tuple[str, ...] = ()


HOSTS = ("amd64", "arm64")
OLDEST = "bookworm"  # of the Debians supported: its libraries run with the C library of every later one
SETS = {
    "pip": PackageSet("trixie", ("all",), ("python3-pip-whl",), closure=False),
    "micropython": PackageSet("trixie", ("i386", "armhf"), ("micropython",)),
    "libraries": PackageSet(OLDEST, HOSTS, ("libatomic1", "libgomp1"), closure=False),
    "qemu": PackageSet(
        "trixie", HOSTS, ("qemu-system-arm", "gcc-arm-none-eabi", "libnewlib-dev", "make"), sources=("micropython",)
    ),
    "riscv": PackageSet(
        "trixie",
        HOSTS,
        ("qemu-system-riscv", "gcc-riscv64-unknown-elf", "libnewlib-dev", "make"),
        sources=("micropython",),
    ),
    # Without what the SDK's and TinyUSB's sources depend on: the image takes none of it, and it is 0.4 GB.
    "rp2-compiler": PackageSet("trixie", HOSTS, ("gcc-arm-none-eabi", "libnewlib-arm-none-eabi")),
    "rp2": PackageSet(
        "trixie", ("all",), ("pico-sdk-source", "tinyusb-source"), closure=False, sources=("micropython", "mbedtls")
    ),
    "chromium": PackageSet(OLDEST, HOSTS, ("chromium-headless-shell",)),
}


@dataclass(frozen=True)
class Locked:
    """A line of the lock: one file of a package, which may be a source's."""

    set: str
    suite: str
    architecture: str
    package: str
    version: str
    file: RemoteFile
    signed: bool = True

    def line(self) -> str:
        """Return the line that stands for it in the lock."""
        named = (self.set, self.suite, self.architecture, self.package, self.version)
        end = () if self.signed else (UNSIGNED,)
        return " ".join((*named, str(self.file.size), self.file.sha256, self.file.path, *end))


def parse(text: str) -> list[Locked]:
    """Return the entries of a lock.

    Raises:
        SetupError: a line has other columns.
    """
    entries: list[Locked] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        try:
            named, suite, architecture, package, version, size, sha256, path, *end = line.split()
            file = RemoteFile(path, int(size), sha256)
        except ValueError as error:
            raise SetupError(f"{LOCK.name}:{number} has other columns than {COLUMNS}: {line}") from error
        entries.append(Locked(named, suite, architecture, package, version, file, signed=UNSIGNED not in end))
    return entries


@functools.cache
def locked(name: str, architecture: str) -> tuple[Locked, ...]:
    """Return what the lock has of a set for an architecture.

    Raises:
        SetupError: it has nothing of it.
    """
    entries = parse(LOCK.read_text(encoding="utf-8"))
    found = tuple(entry for entry in entries if (entry.set, entry.architecture) == (name, architecture))
    if not found:
        raise SetupError(f"{LOCK.name} holds no {name} for {architecture}")
    return found


def key(name: str, architecture: str) -> str:
    """Return what changes whenever the lock has other files of a set."""
    return "".join(f"{entry.file.sha256}\n" for entry in locked(name, architecture))


def fetch(name: str, architecture: str, checkout: Checkout) -> list[Path]:
    """Fetch the files of a set, those that an earlier call has fetched excepted.

    Args:
        name: of the set, a key of SETS.
        architecture: Debian's name of the machine they are for.
        checkout: where they are kept, until the set-up that takes them is through.

    Returns:
        The files, in the order of the lock; sources come last.

    Raises:
        SetupError: a file cannot be had from any mirror that this machine knows.
    """
    entries = locked(name, architecture)
    mirrors = apt.mirrors(checkout.log)
    if not mirrors:
        raise SetupError("this machine knows no Debian mirror")
    folder = checkout.downloads
    folder.mkdir(exist_ok=True)
    over_http = [mirror for mirror in mirrors if mirror.startswith(("http://", "https://"))]
    size = sum(entry.file.size for entry in entries) / 1e6
    print(f"  {len(entries)} files, {size:.1f} MB, from {mirrors[0]}", file=sys.stderr, flush=True)
    try:
        if not over_http:
            raise Gone(entries[0].file.name, mirrors[0], "only apt can ask it")
        proxies = apt.proxies(checkout.log)
        return [download(entry.file, over_http, folder, proxies) for entry in entries]
    except Gone as gone:
        print(f"  {gone}.\n  Asking apt for what Debian has signed instead", file=sys.stderr, flush=True)
        chosen = SETS[name]
        return apt.fetch(
            chosen.packages, chosen.suite, architecture, checkout.work / f"apt-{name}", checkout.log,
            closure=chosen.closure, sources=chosen.sources,
        )  # fmt: skip
