"""Debian packages fetched and unpacked into a folder, without root and without touching the system's own apt.

A second apt configuration: its own sources, lists and (empty) package state. apt checks Debian's signature as always.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tools.setup.command import CommandFailed, SetupError, run

KEYRINGS = [Path(f"/usr/share/keyrings/debian-archive-keyring.{suffix}") for suffix in ("gpg", "pgp")]
SUITES_OF_DEBIAN = "bullseye|bookworm|trixie|forky|duke|oldoldstable|oldstable|stable|testing|unstable|sid"
MIRROR_VARIABLE = "JOINTBENCH_DEBIAN_MIRROR"
LIST_OF_MIRRORS = "mirror+file:"

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
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "{folder}/sources.d";
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
Types: deb deb-src
URIs: {mirror}
Suites: {suite}
Components: main
Targets: Packages Sources
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
        return given.split()
    if not shutil.which("apt-get"):
        raise SetupError("there is no apt-get here to ask for a Debian mirror")
    # apt itself reads its configuration, in every format, and names each index it would fetch.
    uris = run(["apt-get", "--print-uris", "update"], log)
    found = re.findall(rf"^'(\S+)/dists/(?:{SUITES_OF_DEBIAN})/(?:In)?Release'", uris, re.MULTILINE)
    lists = [Path(uri.removeprefix(LIST_OF_MIRRORS)) for uri in found if uri.startswith(LIST_OF_MIRRORS)]
    listed = [line.split()[0] for path in lists if path.is_file() for line in path.read_text().splitlines() if line]
    return list(dict.fromkeys(uri for uri in [*listed, *found] if not uri.startswith("cdrom:")))


def proxies(log: Path) -> dict[str, str]:
    """Return the proxies that apt is set up with, by scheme.

    Args:
        log: file that keeps apt's output.
    """
    if not shutil.which("apt-config"):
        return {}
    asked = {scheme: f"Acquire::{scheme}::Proxy" for scheme in ("http", "https")}
    given = {scheme: run(["apt-config", "dump", "--format", "%v%n", name], log) for scheme, name in asked.items()}
    return {scheme: value.strip() for scheme, value in given.items() if value.strip() not in ("", "DIRECT")}


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
    packages: Sequence[str],
    suite: str,
    architecture: str,
    folder: Path,
    log: Path,
    closure: bool = False,
    sources: Sequence[str] = (),
) -> list[Path]:
    """Download packages from the first mirror that has them, as Debian has signed them by now.

    Args:
        packages: their names.
        suite: the Debian release to take them from, e.g. trixie.
        architecture: Debian's name of the architecture, e.g. i386; "all" takes this machine's.
        folder: a folder to work in.
        log: file that keeps apt's output.
        closure: whether all that they depend on comes too.
        sources: names of source packages to fetch besides.

    Returns:
        The .deb files; last, where they were asked for, the sources as their authors released them.

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
            update(uri, suite, architecture, place, log)
            return _download(packages, place, log, closure, sources)
        except CommandFailed as failure:
            failures.append(failure)
    raise SetupError(f"asking {uris[0]} for {suite}: {failures[0]}")


def update(mirror: str, suite: str, architecture: str, folder: Path, log: Path, index: Path | None = None) -> None:
    """Make an apt of its own in a folder, and have it read a mirror's signed index, or one that nobody has signed.

    Args:
        mirror: the mirror's address.
        suite: the Debian release.
        architecture: Debian's name of the architecture; "all" takes this machine's.
        folder: the folder; it is made.
        log: file that keeps apt's output.
        index: a folder with a Packages file to read unsigned, in place of the mirror's.

    Raises:
        CommandFailed: the mirror cannot be reached, or its index does not fit its signed Release.
    """
    for name in ("lists/partial", "cache/archives/partial", "files", "sources.d"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    named = architecture_of(os.uname().machine) if architecture == "all" else architecture
    (folder / "apt.conf").write_text(CONFIGURATION.format(architecture=named, folder=folder))
    unsigned = f"deb [trusted=yes] file:{index} ./\n"
    signed = SOURCES.format(mirror=mirror, suite=suite, keyring=keyring())
    place = folder / "sources.d" / ("debian.sources" if index is None else "debian.list")
    place.write_text(signed if index is None else unsigned)
    # Without the option apt-get takes an unreachable mirror for a mere warning.
    command(folder, log, "-o", "APT::Update::Error-Mode=any", "update")


def _download(packages: Sequence[str], folder: Path, log: Path, closure: bool, sources: Sequence[str]) -> list[Path]:
    if closure:
        command(folder, log, "install", "--download-only", "--yes", *packages)
        found = sorted((folder / "cache/archives").glob("*.deb"))
    else:
        command(folder, log, "download", *packages)
        found = [next((folder / "files").glob(f"{package}_*.deb")) for package in packages]
    for source in sources:  # apt checks the hashes of a source it fetches
        command(folder, log, "source", "--download-only", source)
        found.append(next((folder / "files").glob(f"{source}_*.orig.tar.*")))
    return found


def command(folder: Path, log: Path, *arguments: str, program: str = "apt-get") -> str:
    """Run apt-get, or another of apt's programs, for a folder that `update` has made; return what it printed."""
    return run([program, "-q", "-c", folder / "apt.conf", *arguments], log, cwd=folder / "files")


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
