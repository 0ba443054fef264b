"""Debian packages fetched and unpacked into a folder, without root and without touching the system's own apt.

A second apt configuration: its own sources, lists and (empty) package state. apt checks Debian's signature as always.
"""

import os
import re
import shutil
import subprocess
import tarfile
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
Dir::Cache::Archives "{folder}/cache/archives";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
"""

SOURCES = """\
Types: {types}
URIs: {mirror}
Suites: {suite}
Components: main
Targets: {targets}
Signed-By: {keyring}
"""

# Debian's names of the 64-bit machines whose own packages are fetched.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


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


def architecture_of(machine: str) -> str:
    """Return Debian's name of a 64-bit machine.

    Args:
        machine: its name as `uname -m` gives it.
    """
    if machine not in ARCHITECTURES:
        raise SetupError(f"it is not fetched for a {machine} machine (only for {', '.join(ARCHITECTURES)})")
    return ARCHITECTURES[machine]


def fetch(
    packages: list[str],
    suite: str,
    architecture: str,
    folder: Path,
    log: Path,
    dependencies: bool = False,
    source: str = "",
) -> list[Path]:
    """Download packages from the first mirror that has them.

    Args:
        packages: their names.
        suite: the Debian release to take them from, e.g. trixie.
        architecture: Debian's name of the architecture, e.g. i386.
        folder: a folder to work in.
        log: file that keeps apt's output.
        dependencies: whether all that they depend on comes too.
        source: name of a source package to fetch besides.

    Returns:
        The .deb files; last, where it was asked for, the source as its authors released it.

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
        place = folder / f"apt{number}"
        try:
            _update(uri, suite, architecture, place, log, bool(source))
            return _download(packages, place, log, dependencies, source)
        except CommandFailed as failure:
            failures.append(failure)
    raise SetupError(f"asking {uris[0]} for {suite}: {failures[0]}")


def _update(mirror: str, suite: str, architecture: str, folder: Path, log: Path, source: bool) -> None:
    for name in ("lists/partial", "cache/archives/partial", "files"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(CONFIGURATION.format(architecture=architecture, folder=folder))
    types, targets = ("deb deb-src", "Packages Sources") if source else ("deb", "Packages")
    (folder / "debian.sources").write_text(
        SOURCES.format(types=types, targets=targets, mirror=mirror, suite=suite, keyring=keyring())
    )
    # Without the option apt-get takes an unreachable mirror for a mere warning.
    run([*_apt(folder), "-o", "APT::Update::Error-Mode=any", "update"], log)


def _download(packages: list[str], folder: Path, log: Path, dependencies: bool, source: str) -> list[Path]:
    files = folder / "files"
    if dependencies:
        run([*_apt(folder), "install", "--download-only", "--yes", *packages], log)
        found = sorted((folder / "cache/archives").glob("*.deb"))
    else:
        run([*_apt(folder), "download", *packages], log, cwd=files)
        found = [next(files.glob(f"{package}_*.deb")) for package in packages]
    if source:  # apt checks the hashes of a source it fetches
        run([*_apt(folder), "source", "--download-only", source], log, cwd=files)
        found.append(next(files.glob(f"{source}_*.orig.tar.*")))
    return found


def _apt(folder: Path) -> list[str | Path]:
    return ["apt-get", "-q", "-c", folder / "apt.conf"]


def unpack(debs: list[Path], root: Path, log: Path) -> None:
    """Unpack packages into a folder; none of their scripts run."""
    for deb in debs:
        run(["dpkg-deb", "--extract", deb, root], log)


def unpack_part(deb: Path, root: Path, wanted: re.Pattern[str]) -> None:
    """Unpack some files of a package into a folder.

    Args:
        deb: the package.
        root: the folder.
        wanted: the whole paths of the files, e.g. usr/bin/make.
    """
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            extract(tar, root, wanted)
    if process.returncode:
        raise CommandFailed("dpkg-deb", f"{deb.name} cannot be unpacked")


def extract(tar: tarfile.TarFile, root: Path, wanted: re.Pattern[str]) -> None:
    """Extract some files of an archive into a folder, without a way out of it.

    Args:
        tar: the archive, which may be a stream.
        root: the folder.
        wanted: the whole paths of the files, e.g. usr/bin/make.
    """
    # Debian 12's Python is older than the filter.
    tar.extraction_filter = getattr(tarfile, "data_filter", None)
    tar.extractall(root, (member for member in tar if wanted.fullmatch(member.name.removeprefix("./"))))
