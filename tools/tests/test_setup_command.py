import errno
import os
from pathlib import Path

import pytest

from tools.setup import command
from tools.setup.command import CommandFailed, explain, run, run_over_network

# What the programs really print, shortened to the lines that matter.
PRINTED = {
    "no space left": [
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "error: failed to write to file `x.so`: No space left on device (os error 28)",
        "E: You don't have enough free space in /var/cache/apt/archives/.\ndpkg-deb: error: no space left on device\n"
        "tar: cannot write: No space left on device",
        str(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "file")),
    ],
    "no network": [
        "WARNING: NewConnectionError('Failed to establish a new connection: Temporary failure in name resolution')\n"
        "ERROR: No matching distribution found for uv==1.0",
        "error: Request failed after 3 retries\n  Caused by: dns error: failed to lookup address information",
        "Err:1 trixie InRelease\n  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)",
        "Err:1 trixie InRelease\n  Temporary failure resolving 'mirror'",
        "npm error code ENOTFOUND\nnpm error Log files were not written due to the config logs-max=0",
    ],
    "a server failed or went away": [
        "error: Failed to download\n  Caused by: HTTP status server error (503 Service Unavailable) for url (https://x)",
        "ERROR: HTTP error 502 while getting https://x",
        "ConnectionError: ('Connection broken: IncompleteRead(5 bytes read, 9 more expected)')",
        "error: error decoding response body\n  Caused by: end of file before message length reached",
        "npm error code E503\nnpm error 503 Service Unavailable - GET https://x/y",
    ],
    "certificate is not trusted": [
        "Max retries exceeded (SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')))",
        "error: client error (Connect)\n  Caused by: invalid peer certificate: UnknownIssuer",
        "npm error code SELF_SIGNED_CERT_IN_CHAIN\nnpm error errno SELF_SIGNED_CERT_IN_CHAIN",
    ],
    "permission denied": [
        str(PermissionError(errno.EACCES, os.strerror(errno.EACCES), "file")),
        "error: Read-only file system (os error 30)",
    ],
    "no ready-made wheel": ["ERROR: Could not find a version\nERROR: No matching distribution found for numpy==2.4.6"],
    "differs from its hash": [
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
        "npm error code EINTEGRITY\nnpm error sha512-a integrity checksum failed",
    ],
    "npm's registry does not give it": ["npm error code E404\nnpm error 404 Not Found - GET https://x/y"],
    "does not hold this Debian release": ["E: The repository 'mirror trixie Release' does not have a Release file."],
    "signature could not be checked": ["W: GPG error: mirror trixie InRelease: NO_PUBKEY 6ED0E7B82643E131"],
    "clock is wrong": ["E: Release file for mirror is not valid yet (invalid for another 3d 2h)."],
}


@pytest.mark.parametrize(("reason", "output"), [(key, text) for key, texts in PRINTED.items() for text in texts])
def test_what_a_program_printed_becomes_its_reason(reason: str, output: str) -> None:
    assert reason in explain(output).reason


def test_only_faults_of_the_machine_forbid_a_second_program() -> None:
    assert explain("No space left on device").of_machine
    assert explain("Connection refused").of_machine
    assert not explain("No matching distribution found for numpy").of_machine


def test_an_unknown_failure_is_told_by_its_last_line() -> None:
    assert explain("first\n\n  the last word \n\n") == ("the last word", False, False)
    assert explain(" \n") == ("it failed without saying why", False, False)


def test_a_program_that_env_starts_goes_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"^sh: it failed"):
        run(["env", "-i", "A=b", "sh", "-c", "exit 1"], tmp_path / "log")


def test_output_is_returned_and_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run(["sh", "-c", "echo $WORD; pwd"], log, {"WORD": "first"}, cwd=tmp_path) == f"first\n{tmp_path}\n"
    run(["echo", "second"], log)
    assert log.read_text() == f"$ sh -c echo $WORD; pwd\nfirst\n{tmp_path}\n-> 0\n$ echo second\nsecond\n-> 0\n"


def test_a_failure_names_the_program_and_the_reason(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"^sh: it is broken$"):
        run(["/bin/sh", "-c", "echo it is broken >&2; exit 3"], tmp_path / "log")
    with pytest.raises(CommandFailed, match=r"^no_such_module: .*No module named no_such_module"):
        run(["python3", "-m", "no_such_module"], tmp_path / "log")


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="no-such-program: not found on this machine"):
        run(["no-such-program"], tmp_path / "log")


def test_a_program_that_takes_long_is_spoken_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "WORD_EVERY_S", 0.05)
    run(["sleep", "0.2"], tmp_path / "log")
    assert "  sleep: 0 s\n" in capsys.readouterr().err


@pytest.mark.parametrize(("fails", "tries"), [(2, 3), (4, 4)])
def test_a_download_that_the_network_fails_is_tried_four_times(
    fails: int, tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(command, "pause", pauses.append)
    count = tmp_path / "count"
    program = f'echo x >>"{count}"; [ $(wc -l <"{count}") -gt {fails} ] || {{ echo "Connection refused" >&2; exit 1; }}'
    if fails < 4:
        run_over_network(["sh", "-c", program], tmp_path / "log")
    else:
        with pytest.raises(CommandFailed, match="sh: no network"):
            run_over_network(["sh", "-c", program], tmp_path / "log")
    assert len(count.read_text().splitlines()) == tries
    assert pauses == [1, 3, 9][: tries - 1]
    assert "sh: no network: a server could not be reached" in capsys.readouterr().err


def test_what_is_not_the_networks_fault_is_not_tried_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    with pytest.raises(CommandFailed, match="differs from its hash"):
        run_over_network(["sh", "-c", f"echo x >>'{count}'; echo Hash mismatch; exit 1"], tmp_path / "log")
    assert count.read_text() == "x\n"
