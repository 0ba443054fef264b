"""Programs and downloads of the set-up: output goes to the log, a failure becomes one sentence."""

import hashlib
import http.client
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class SetupError(Exception):
    """A step of the set-up cannot be done; the message says why and what to do next."""


class Unavailable(SetupError):
    """A part cannot be had on this machine; whoever can do without may go on."""


class CommandFailed(SetupError):
    """A program the set-up needs ended with an error.

    Args:
        program: the name it is known by.
        reason: what its output says, in one line.
        of_machine: the machine or the network is at fault, so that another program would fail alike.
        of_network: the network is, so that the same program may do it another time.
    """

    def __init__(self, program: str, reason: str, of_machine: bool = False, of_network: bool = False) -> None:
        super().__init__(f"{program}: {reason}")
        self.of_machine = of_machine
        self.of_network = of_network


class DownloadFailed(SetupError):
    """A file did not come whole from a mirror; what has come of it is kept.

    Args:
        name: of the file.
        mirror: the address that was asked.
        reason: why it did not come.
    """

    def __init__(self, name: str, mirror: str, reason: str) -> None:
        super().__init__(f"{name} did not come from {mirror}: {reason}{self.next}")

    next = ". Type the same command again: it goes on from what has come"


class Gone(DownloadFailed):
    """No mirror holds a file (any more)."""

    next = ""


PAUSES_S = (1.0, 3.0, 9.0)  # between four tries
pause = time.sleep
TIMEOUT_S = 30.0  # without a byte
BLOCK = 1 << 18
PROGRESS_S = 5.0

NO_NETWORK = (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException)
GONE = (403, 404, 410)  # some mirrors say 403 for what they do not hold


@dataclass(frozen=True)
class RemoteFile:
    """A file on a mirror, as a lock names it: path below the mirror's address, size in bytes, SHA-256."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.path.rpartition("/")[2]


def download(file: RemoteFile, mirrors: Sequence[str], folder: Path, proxies: dict[str, str] | None = None) -> Path:
    """Fetch a file into a folder, unless it is there already.

    A part that an earlier call left is gone on with. Each mirror is tried four times, but only once when it says that
    it does not hold the file.

    Args:
        file: what to fetch.
        mirrors: their addresses, the first is asked first.
        folder: where to; it must exist.
        proxies: of each scheme, e.g. {"http": "http://proxy:3128"}, besides those of the environment.

    Returns:
        The whole file, its hash checked.

    Raises:
        Gone: no mirror holds the file.
        DownloadFailed: none gave it whole; names the file, the last mirror and what to do.
    """
    place = folder / file.name
    if place.exists() and place.stat().st_size == file.size and sha256_of(place) == file.sha256:
        return place
    opener = urllib.request.build_opener(urllib.request.ProxyHandler((proxies or {}) | urllib.request.getproxies()))
    failures: list[DownloadFailed] = []
    for mirror in mirrors:
        try:
            return _from_mirror(opener, file, mirror, place)
        except DownloadFailed as failure:
            failures.append(failure)
    if all(isinstance(failure, Gone) for failure in failures):
        raise Gone(file.name, ", ".join(mirrors), "it is not there (any more)")
    raise next(failure for failure in failures if not isinstance(failure, Gone))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_mirror(opener: urllib.request.OpenerDirector, file: RemoteFile, mirror: str, place: Path) -> Path:
    url = f"{mirror.rstrip('/')}/{file.path}"
    part = place.with_name(f"{place.name}.part")
    reason = ""
    for seconds in (0.0, *PAUSES_S):
        if seconds:
            print(f"  {file.name}: {reason}; trying again in {seconds:.0f} s", file=sys.stderr, flush=True)
            pause(seconds)
        try:
            _append(opener, url, file, part)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in GONE:
                raise Gone(file.name, mirror, f"the mirror answered {error.code}") from error
            reason = f"the mirror answered {error.code} {error.reason}"
        except NO_NETWORK as error:
            reason = f"no answer ({getattr(error, 'reason', None) or error or type(error).__name__})"
        else:
            size = part.stat().st_size
            if size < file.size:
                reason = f"the connection ended after {size} of {file.size} bytes"
            elif size == file.size and sha256_of(part) == file.sha256:
                return part.replace(place)
            else:
                part.unlink()
                reason = "what came differs from its hash in the lock: something on its way here changes files"
    raise DownloadFailed(file.name, mirror, reason)


def _append(opener: urllib.request.OpenerDirector, url: str, file: RemoteFile, part: Path) -> None:
    """Ask for what is missing of a file, and add it to the part that is there."""
    there = part.stat().st_size if part.exists() else 0
    if there >= file.size:
        part.unlink()
        there = 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={there}-"} if there else {})
    with opener.open(request, timeout=TIMEOUT_S) as answer:
        goes_on = answer.status == http.client.PARTIAL_CONTENT
        told = time.monotonic()
        with part.open("ab" if goes_on else "wb") as out:
            while block := answer.read1(BLOCK):
                out.write(block)
                if out.tell() > file.size:
                    return
                if time.monotonic() - told > PROGRESS_S:
                    told = time.monotonic()
                    done = f"{out.tell() / 1e6:.0f} of {file.size / 1e6:.0f} MB"
                    print(f"  {file.name}: {done}", file=sys.stderr, flush=True)


WORD_EVERY_S = 10.0  # while a program is running

NETWORK = (
    "no network: a server could not be reached; connect (or set https_proxy) and run the same command again, "
    "which goes on from here"
)
SERVER = "a server failed or went away; run the same command again later, which goes on from here"

# What programs print, and what it means; the first that fits counts. pip and uv report "no matching distribution" after
# a failed connection too, so the faults of network and machine come first.
FAULTS_OF_NETWORK = {
    r"[Tt]emporary failure (in name resolution|resolving)|Name or service not known|Could not resolve|dns error"
    r"|failed to lookup address|Network is unreachable|No route to host|Connection refused|tcp connect error"
    r"|Unable to connect|Could not connect|[Cc]onnection timed out|operation timed out|ConnectTimeoutError"
    r"|NewConnectionError|ReadTimeoutError|Cannot connect to proxy"
    r"|npm error code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)": NETWORK,
    r"HTTP status server error|HTTP error 5\d\d|too many 5\d\d error|50[0234] (Internal|Bad|Service|Gateway)"
    r"|IncompleteRead|IncompleteBody|Connection broken|[Cc]onnection reset|error decoding response body|unexpected EOF"
    r"|end of file before message length|npm error code (E5\d\d|ECONNRESET|ERR_SOCKET_TIMEOUT)": SERVER,
}
FAULTS_OF_MACHINE = {
    r"No space left on device|os error 28|not have enough free space": (
        "no space left on the disk; free some (the environment takes about 0.5 GB, for tests 2.4 GB) "
        "and run the same command again"
    ),
    r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|UnknownIssuer|certificate verification failed"
    r"|npm error code (SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_)": (
        "a server's certificate is not trusted here; install ca-certificates, "
        "or name your network's certificates in SSL_CERT_FILE and PIP_CERT"
    ),
    r"[Pp]ermission denied|Read-only file system": (
        "permission denied; the checkout must be writable for the user who runs this"
    ),
}
OTHER_FAULTS = {
    r"DO NOT MATCH THE HASHES|[Hh]ash mismatch": (
        "a download differs from its hash in requirements.lock; something on its way here changes files"
    ),
    r"No matching distribution found|has no wheels with a matching": (
        "a locked dependency has no ready-made wheel for this machine and Python; "
        "use Python 3.11 to 3.14 on Linux x86-64 or arm64 with glibc, or the Containerfile"
    ),
    r"npm error code E40\d": (
        "npm's registry does not give it; your npm settings say which registry is asked (npm config get registry)"
    ),
    r"npm error code EINTEGRITY": "what npm fetched differs from its hash; something on its way here changes files",
    r"does not have a Release file|Failed to fetch .*  4\d\d ": "the mirror does not hold this Debian release",
    r"EXPKEYSIG|NO_PUBKEY|is not signed|invalid signature|Missing key": (
        "Debian's signature could not be checked; bring the package debian-archive-keyring up to date"
    ),
    r"is not valid yet|Release file.*is expired": "the package lists are outdated, or this machine's clock is wrong",
}


class Fault(NamedTuple):
    """Why a program failed, as CommandFailed takes it."""

    reason: str
    of_machine: bool = False
    of_network: bool = False


def explain(output: str) -> Fault:
    """Return why a program failed.

    Args:
        output: everything the program printed.
    """
    for faults in (FAULTS_OF_MACHINE, FAULTS_OF_NETWORK, OTHER_FAULTS):
        for pattern, reason in faults.items():
            if re.search(pattern, output):
                return Fault(reason, faults is not OTHER_FAULTS, faults is FAULTS_OF_NETWORK)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return Fault(lines[-1] if lines else "it failed without saying why")


def run(command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a program to its end and return what it printed, which is also appended to the log.

    A program that takes long is spoken of every ten seconds.

    Args:
        command: the program and its arguments.
        log: file that keeps the output.
        env: variables on top of the present ones.
        cwd: the folder to run in; here when not given.

    Raises:
        CommandFailed: it is not there, or ended with an error.
    """
    words = [str(word) for word in command]
    # Of env -i A=b … PROGRAM it is the program's name that tells something.
    started = words[0] if words[0] != "env" else next((word for word in words[2:] if "=" not in word), "env")
    program = words[words.index("-m") + 1] if "-m" in words else Path(started).name
    with log.open("a+", encoding="utf-8", errors="replace") as file:
        file.write(f"$ {' '.join(words)}\n")
        file.flush()
        begin = file.tell()
        try:
            process = subprocess.Popen(
                words,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                close_fds=False,  # the lock of this set-up is inherited
            )
        except FileNotFoundError as error:
            raise CommandFailed(words[0], "not found on this machine") from error
        with process:
            _wait(process, program)
        file.seek(begin)
        printed = file.read()
        file.write(f"-> {process.returncode}\n")
    if process.returncode:
        raise CommandFailed(program, *explain(printed))
    return printed


def _wait(process: subprocess.Popen[bytes], program: str) -> None:
    start = time.monotonic()
    while True:
        try:
            process.wait(WORD_EVERY_S)
        except subprocess.TimeoutExpired:
            print(f"  {program}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        else:
            return


def must_say(answer: str, command: Sequence[str | Path], fault: str, patience_s: float, typed: str = "") -> None:
    """Run a program, and make sure that it says what it should.

    Args:
        answer: what must be in all that it prints.
        command: the program and its arguments.
        fault: what it means if it is not.
        patience_s: how long it may take [s].
        typed: its standard input.

    Raises:
        SetupError: it does not start, hangs, or says something else.
    """
    try:
        done = subprocess.run(
            command, input=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            check=False, timeout=patience_s,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{fault} ({error})") from error
    if answer not in done.stdout:
        said = (done.stdout.strip().splitlines() or ["nothing"])[-1]
        raise SetupError(f"{fault} (it said: {said})")


def run_over_network(command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a program that downloads as `run` does; where the network failed, try again, four times with growing pauses.

    Raises:
        CommandFailed: it is not there, or ended with an error, the fourth time if that was the network's.
    """
    for seconds in PAUSES_S:
        try:
            return run(command, log, env)
        except CommandFailed as failure:
            if not failure.of_network:
                raise
            why = str(failure).partition(";")[0]
            print(f"  {why}; trying again in {seconds:.0f} s", file=sys.stderr, flush=True)
            pause(seconds)
    return run(command, log, env)
