"""`python -m tools.setup lock-debian`: make debian.lock anew, from what Debian's mirror holds today.

Where the mirror's index fits Debian's signed Release, so do the hashes. Where it does not (a mirror half-way through a
point release), the index is read as it is and its entries say `unsigned`: make the lock again another day.
"""

import lzma
import re
import sys
from email import message_from_string
from pathlib import Path

from tools.setup import apt, debian
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed, RemoteFile, SetupError
from tools.setup.debian import COLUMNS, SETS, UNSIGNED, Locked, PackageSet

HEADER = f"""\
# Debian's packages that set-up takes, a line each: {COLUMNS}.
# Made by `python -m tools.setup lock-debian`. A line that ends in `{UNSIGNED}` could not be held against Debian's
# signature that day, because the mirror's index did not fit its signed Release.
"""

CHOSEN = re.compile(r"^Inst (\S+) \((\S+)", re.MULTILINE)  # of --simulate, e.g. Inst make (4.4-1 Debian:13.8 [amd64])
RELEASED = re.compile(r"^ (?P<sha256>[0-9a-f]{64}) (?P<size>\d+) (?P<file>\S+\.orig\.tar\.\w+)$", re.MULTILINE)


def lock_debian(checkout: Checkout) -> None:
    """Write the lock anew.

    Raises:
        SetupError: a set cannot be resolved: no mirror, no network, a package that is not there.
    """
    lines: list[str] = []
    for name, chosen in SETS.items():
        for architecture in chosen.architectures:
            print(f"locking {name} for {architecture}", file=sys.stderr, flush=True)
            entries = resolve(name, chosen, architecture, checkout)
            lines += ["", *(entry.line() for entry in entries)]
    debian.LOCK.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


def resolve(name: str, chosen: PackageSet, architecture: str, checkout: Checkout) -> list[Locked]:
    """Return a set's files as the mirror's index names them today, signed where that can be had."""
    (mirror, *_) = apt.mirrors(checkout.log) or [None]
    if mirror is None:
        raise SetupError("apt knows no Debian mirror here")
    folder = checkout.work / f"lock-{name}-{architecture}"
    try:
        apt.update(mirror, chosen.suite, architecture, folder / "signed", checkout.log)
        return _entries(name, chosen, architecture, folder / "signed", checkout, signed=True)
    except CommandFailed as failure:
        if chosen.sources:
            raise
        print(f"  {failure}\n  Taking the index as it is: {UNSIGNED}", file=sys.stderr, flush=True)
    index = folder / "index"
    index.mkdir()
    packages = f"dists/{chosen.suite}/main/binary-{architecture}/Packages.xz"
    # apt's own helper has its proxies; it checks no hash here because there is none to trust.
    apt.run(["/usr/lib/apt/apt-helper", "download-file", f"{mirror}/{packages}", index / "Packages.xz"], checkout.log)
    (index / "Packages").write_bytes(lzma.decompress((index / "Packages.xz").read_bytes()))
    (index / "Packages.xz").unlink()
    apt.update(mirror, chosen.suite, architecture, folder / "unsigned", checkout.log, index)
    return _entries(name, chosen, architecture, folder / "unsigned", checkout, signed=False)


def _entries(
    name: str, chosen: PackageSet, architecture: str, folder: Path, checkout: Checkout, signed: bool
) -> list[Locked]:
    def ask(program: str, *arguments: str) -> str:
        return apt.command(folder, checkout.log, *arguments, program=program)

    def entry(package: str, version: str, path: str, size: str, sha256: str) -> Locked:
        return Locked(name, chosen.suite, architecture, package, version, RemoteFile(path, int(size), sha256), signed)

    names = list(chosen.packages)
    if chosen.closure:
        simulated = ask("apt-get", "install", "--simulate", *names)
        names = [f"{package}={version}" for package, version in CHOSEN.findall(simulated)]
    entries: list[Locked] = []
    for stanza in ask("apt-cache", "show", "--no-all-versions", *sorted(names)).strip().split("\n\n"):
        field = message_from_string(stanza)
        entries.append(entry(*(field[key] for key in ("Package", "Version", "Filename", "Size", "SHA256"))))
    for source in chosen.sources:
        field = message_from_string(ask("apt-cache", "showsrc", "--only-source", source).strip().split("\n\n")[-1])
        released = RELEASED.search(field["Checksums-Sha256"])
        if released is None:
            raise SetupError(f"the index names no released source of {source}")
        path = f"{field['Directory']}/{released['file']}"
        entries.append(entry(source, field["Version"], path, released["size"], released["sha256"]))
    return entries
