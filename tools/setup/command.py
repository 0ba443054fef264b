"""Run a program of the set-up: its output goes to the log, its failure becomes one sentence."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.setup.download import PAUSES_S, pause
from tools.setup.errors import CommandFailed, SetupError

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
