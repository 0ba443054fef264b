"""Debian packages fetched and unpacked into a folder, without root and without touching the system's own apt.

A second apt configuration: its own sources, lists and (empty) package state. apt checks Debian's signature as always.
"""

import os
import re
import shutil
from pathlib import Path

from tools.setup.command import run
from tools.setup.errors import CommandFailed, SetupError

KEYRINGS = [Path(f"/usr/share/keyrings/debian-archive-keyring.{suffix}") for suffix in ("gpg", "pgp")]
SUITES_OF_DEBIAN = "bullseye|bookworm|trixie|forky|duke|oldoldstable|oldstable|stable|testing|unstable|sid"
MIRROR_VARIABLE = "JOINTBENCH_DEBIAN_MIRROR"

# Read after the system's configuration: its proxies stay, what would act on the system or refuse another suite goes.
CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
#clear APT::Architectures;
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Sandbox::User "root";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "30";
Dir::Etc::SourceList "{folder}/debian.sources";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{folder}";
Dir::State::Lists "{folder}/lists";
Dir::State::Status "{folder}/status";
Dir::Cache "{folder}/cache";
"""

SOURCES = """\
Types: deb
URIs: {mirror}
Suites: {suite}
Components: main
Targets: Packages
Signed-By: {keyring}
"""


def mirrors(log: Path) -> list[str]:
    """Return the Debian mirrors this machine is set up with, first the one it lists first.

    Args:
        log: file that keeps apt's output.
    """
    given = os.environ.get(MIRROR_VARIABLE)
    if given:
        return [given]
    # apt itself reads its configuration, in every format, and names each index it would fetch.
    uris = run(["apt-get", "--print-uris", "update"], log)
    found = re.findall(rf"^'(\S+)/dists/(?:{SUITES_OF_DEBIAN})/(?:In)?Release'", uris, re.MULTILINE)
    return list(dict.fromkeys(uri for uri in found if not uri.startswith("cdrom:")))


def keyring() -> Path:
    """Return the file that holds Debian's signing keys."""
    for path in KEYRINGS:
        if path.exists():
            return path
    raise SetupError(
        f"Debian's signing keys are not here ({KEYRINGS[0]}). Type: sudo apt-get install debian-archive-keyring"
    )


def fetch(packages: list[str], suite: str, architecture: str, folder: Path, log: Path) -> list[Path]:
    """Download packages from the first mirror that has them; return their .deb files, in the order given.

    Args:
        packages: their names.
        suite: the Debian release to take them from, e.g. trixie.
        architecture: Debian's name of the architecture, e.g. i386.
        folder: a folder to work in.
        log: file that keeps apt's output.

    Raises:
        SetupError: there is no apt, no mirror or no key here, or no mirror gave the packages.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise SetupError("there is no apt-get or dpkg-deb here")
    uris = mirrors(log)
    if not uris:
        raise SetupError("apt knows no Debian mirror here")
    failures: list[CommandFailed] = []
    for number, uri in enumerate(uris):
        try:
            return _fetch_from(uri, packages, suite, architecture, folder / f"apt{number}", log)
        except CommandFailed as failure:
            failures.append(failure)
    raise SetupError(f"asking {uris[0]} for {suite}: {failures[0]}")


def _fetch_from(mirror: str, packages: list[str], suite: str, architecture: str, folder: Path, log: Path) -> list[Path]:
    for name in ("lists/partial", "cache/archives/partial", "debs"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(CONFIGURATION.format(architecture=architecture, folder=folder))
    (folder / "debian.sources").write_text(SOURCES.format(mirror=mirror, suite=suite, keyring=keyring()))
    apt = ["apt-get", "-q", "-c", folder / "apt.conf"]
    # Without the option apt-get takes an unreachable mirror for a mere warning.
    run([*apt, "-o", "APT::Update::Error-Mode=any", "update"], log)
    run([*apt, "download", *packages], log, cwd=folder / "debs")
    return [next((folder / "debs").glob(f"{package}_*.deb")) for package in packages]


def unpack(debs: list[Path], root: Path, log: Path) -> None:
    """Unpack packages into a folder; none of their scripts run."""
    for deb in debs:
        run(["dpkg-deb", "--extract", deb, root], log)
