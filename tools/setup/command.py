"""Run a program of the set-up: its output goes to the log, its failure becomes one sentence."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.setup.errors import CommandFailed

# What programs print, and what it means; the first that fits counts. pip and uv report "no matching distribution" after
# a failed connection too, so the faults of the machine come first.
FAULTS_OF_MACHINE = {
    r"No space left on device|os error 28|not have enough free space": (
        "no space left on the disk; free some (the environment takes about 0.8 GB, for tests 2.2 GB) "
        "and run the same command again"
    ),
    r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|UnknownIssuer|certificate verification failed": (
        "a server's certificate is not trusted here; install ca-certificates, "
        "or name your network's certificates in SSL_CERT_FILE and PIP_CERT"
    ),
    r"[Tt]emporary failure (in name resolution|resolving)|Name or service not known|Could not resolve|dns error"
    r"|failed to lookup address|Network is unreachable|No route to host|Connection refused|tcp connect error"
    r"|Unable to connect|Could not connect|[Cc]onnection timed out|operation timed out|ConnectTimeoutError"
    r"|NewConnectionError|ReadTimeoutError|Cannot connect to proxy": (
        "no network: a server could not be reached; connect (or set https_proxy) and run the same command again"
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
    r"does not have a Release file|Failed to fetch .*  4\d\d ": "the mirror does not hold this Debian release",
    r"EXPKEYSIG|NO_PUBKEY|is not signed|invalid signature|Missing key": (
        "Debian's signature could not be checked; bring the package debian-archive-keyring up to date"
    ),
    r"is not valid yet|Release file.*is expired": "the package lists are outdated, or this machine's clock is wrong",
}


def explain(output: str) -> tuple[str, bool]:
    """Return why a program failed, in one line, and whether the machine is at fault rather than the program.

    Args:
        output: everything the program printed.
    """
    for faults in (FAULTS_OF_MACHINE, OTHER_FAULTS):
        for pattern, reason in faults.items():
            if re.search(pattern, output):
                return reason, faults is FAULTS_OF_MACHINE
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return (lines[-1] if lines else "it failed without saying why"), False


def run(command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a program to its end and return what it printed, which is also appended to the log.

    Args:
        command: the program and its arguments.
        log: file that keeps the output.
        env: variables on top of the present ones.
        cwd: the folder to run in; here when not given.

    Raises:
        CommandFailed: it is not there, or ended with an error.
    """
    words = [str(word) for word in command]
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(words)}\n")
        file.flush()
        try:
            done = subprocess.run(
                words,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
                close_fds=False,  # the lock of this set-up is inherited
            )
        except FileNotFoundError as error:
            raise CommandFailed(words[0], "not found on this machine") from error
        file.write(f"{done.stdout}-> {done.returncode}\n")
    if done.returncode:
        program = words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name
        raise CommandFailed(program, *explain(done.stdout))
    return done.stdout
