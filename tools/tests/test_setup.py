"""The set-up as a whole: programs and downloads, locked packages, `run`, and what a wheel holds."""

import errno
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tools.setup import __main__ as setup
from tools.setup import command, packages
from tools.setup import command as module
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import (
    CommandFailed,
    DownloadFailed,
    Gone,
    RemoteFile,
    download,
    explain,
    run,
    run_over_network,
)
from tools.setup.packages import EXTRAS, chosen_names, locked, uv_settings
from tools.tests.local_mirror import HANG, OTHER, ROOT, SHORT, Mirror, bare_checkout, mirror, start

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


CONTENT = bytes(range(256)) * 40


@pytest.fixture
def server() -> Iterator[Mirror]:
    with mirror() as started:
        yield started


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which lasts."""
    made: list[float] = []
    monkeypatch.setattr(module, "pause", made.append)
    monkeypatch.setattr(module, "TIMEOUT_S", 0.3)
    return made


def test_a_file_comes_whole_and_only_once(server: Mirror, tmp_path: Path, pauses: list[float]) -> None:
    file = server.add("pool/a/a_1.deb", CONTENT)
    assert download(file, [server.address], tmp_path) == tmp_path / "a_1.deb"
    assert (tmp_path / "a_1.deb").read_bytes() == CONTENT
    download(file, [server.address], tmp_path)
    assert server.asked == ["/debian/pool/a/a_1.deb"]
    assert pauses == []


@pytest.mark.parametrize("fault", [500, 503, SHORT, HANG, OTHER])
def test_what_fails_three_times_comes_the_fourth_time(
    fault: int | str, server: Mirror, tmp_path: Path, pauses: list[float]
) -> None:
    file = server.add("pool/a/a_1.deb", CONTENT)
    server.faults = [fault] * 3
    assert download(file, [server.address], tmp_path).read_bytes() == CONTENT
    assert pauses == [1, 3, 9]
    assert not list(tmp_path.glob("*.part"))


def test_it_goes_on_where_the_connection_ended(server: Mirror, tmp_path: Path, pauses: list[float]) -> None:
    file = server.add("pool/a/a_1.deb", CONTENT)
    server.faults = [SHORT, SHORT]
    download(file, [server.address], tmp_path)
    path = "/debian/pool/a/a_1.deb"
    assert server.asked == [path, f"{path} {len(CONTENT) // 2}", f"{path} {len(CONTENT) * 3 // 4}"]


def test_what_an_interrupted_call_left_is_gone_on_with(server: Mirror, tmp_path: Path) -> None:
    file = server.add("pool/a/a_1.deb", CONTENT)
    (tmp_path / "a_1.deb.part").write_bytes(CONTENT[:1000])
    download(file, [server.address], tmp_path)
    assert server.asked == ["/debian/pool/a/a_1.deb 1000"]


def test_what_lies_there_with_other_bytes_is_fetched_anew(server: Mirror, tmp_path: Path) -> None:
    file = server.add("pool/a/a_1.deb", CONTENT)
    (tmp_path / "a_1.deb").write_bytes(bytes(len(CONTENT)))
    (tmp_path / "a_1.deb.part").write_bytes(bytes(len(CONTENT) + 9))
    assert download(file, [server.address], tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (500, "the mirror answered 500"),
        (SHORT, r"the connection ended after 9600 of 10240 bytes"),
        (HANG, r"no answer \(timed out\)"),
        (OTHER, "differs from its hash in the lock"),
    ],
)
def test_after_four_tries_one_sentence_names_file_mirror_and_what_to_do(
    fault: int | str, reason: str, server: Mirror, tmp_path: Path, pauses: list[float]
) -> None:
    file = server.add("pool/a/a_1.deb", CONTENT)
    server.faults = [fault] * 4
    sentence = rf"^a_1\.deb did not come from {server.address}: .*{reason}.*Type the same"
    with pytest.raises(DownloadFailed, match=sentence):
        download(file, [server.address], tmp_path)
    assert not (tmp_path / "a_1.deb").exists()


def test_the_next_mirror_is_asked_after_four_tries_and_at_once_where_one_lacks_the_file(
    server: Mirror, tmp_path: Path, pauses: list[float]
) -> None:
    with mirror() as first, mirror() as second:
        file = server.add("pool/a/a_1.deb", CONTENT)
        second.add(file.path, CONTENT)
        second.faults = [503] * 4
        download(file, [first.address, second.address, server.address], tmp_path)
        assert [len(each.asked) for each in (first, second, server)] == [1, 4, 1]


def test_a_file_that_no_mirror_holds_is_gone_without_a_second_try(
    server: Mirror, tmp_path: Path, pauses: list[float]
) -> None:
    with pytest.raises(Gone, match=rf"^a_1\.deb did not come from {server.address}: it is not there \(any more\)$"):
        download(RemoteFile("pool/a/a_1.deb", 9, "0" * 64), [server.address], tmp_path)
    assert len(server.asked) == 1


def test_a_mirror_that_nobody_answers_for(tmp_path: Path, pauses: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(DownloadFailed, match=r"no answer \(.*Connection refused"):
            download(RemoteFile("a", 9, "0" * 64), [nobody], tmp_path)
    assert pauses == [1, 3, 9]


def test_a_proxy_is_asked_in_place_of_the_mirror(
    server: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    server.files["http://mirror.invalid/debian/a"] = CONTENT
    file = server.add("a", CONTENT)
    proxy = server.address.removesuffix("/debian")
    assert download(file, ["http://mirror.invalid/debian"], tmp_path, {"http": proxy}).read_bytes() == CONTENT


LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "SSL_CERT_FILE", "ALL_PROXY", "UV_INDEX_STRATEGY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_settings")
def test_one_package_of_the_lock_with_its_hashes() -> None:
    wanted = "uv==2 ; sys_platform == 'linux' \\\n    --hash=a \\\n    --hash=b\n"
    lock = f"uvloop==1\\\n    --hash=x\n{wanted}venv==3 \\\n    --hash=c\n"
    assert locked(lock, "uv") == wanted
    with pytest.raises(CommandFailed, match=r"requirements\.lock: holds no uw"):
        locked(lock, "uw")


@pytest.mark.usefixtures("no_settings")
def test_pip_settings_reach_uv() -> None:
    config = (
        "global.index-url='https://one'\nglobal.cert='/global.pem'\n:env:.cert='/env.pem'\n"
        "global.extra-index-url='\\nhttps://two\\nhttps://three'\ninstall.proxy='http://p:1'\nglobal.timeout='9'\n"
    )
    assert uv_settings(config) == {
        "UV_DEFAULT_INDEX": "https://one",
        "UV_INDEX": "https://two https://three",
        "SSL_CERT_FILE": "/env.pem",
        "ALL_PROXY": "http://p:1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


@pytest.mark.usefixtures("no_settings")
def test_folders_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    settings = uv_settings(f"global.find-links='/no/such {tmp_path} https://far'")
    assert settings["UV_FIND_LINKS"] == f"{tmp_path},https://far"
    assert "UV_FIND_LINKS" not in uv_settings("global.find-links='/no/such'")


@pytest.mark.usefixtures("no_settings")
def test_what_is_set_for_uv_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine")
    assert "UV_DEFAULT_INDEX" not in uv_settings("global.index-url='https://pips'")


@pytest.mark.usefixtures("no_settings")
def test_the_lock_pins_and_hashes_everything_and_names_no_address() -> None:
    packages = re.findall(r"^[a-z]\S*", LOCK, re.MULTILINE)
    assert len(packages) > 20
    for name in packages:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", name)
        assert "--hash=sha256:" in locked(LOCK, name.split("==")[0])
    assert "://" not in LOCK
    assert "index" not in LOCK


@pytest.mark.usefixtures("no_settings")
def test_the_lock_holds_every_dependency_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
        name = re.match(r"[a-z0-9-]+", requirement)
        assert name is not None
        assert locked(LOCK, name[0])


@pytest.mark.usefixtures("no_settings")
def test_a_user_is_spared_what_only_the_projects_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chosen = chosen_names(project)

    assert {"numpy", "mujoco-core", "matplotlib", "tornado", "shtab", "pytest", "hatchling"} <= set(chosen)
    assert not {"mcap", "pyarrow", "rosbags", "h5py"} & set(chosen)
    assert not {"pin", "basedpyright", "playwright", "rerun-sdk", "mkdocs-material", "dask"} & set(chosen)
    assert set(EXTRAS) < set(project["optional-dependencies"])
    assert all(locked(LOCK, name) for name in chosen)


@pytest.mark.usefixtures("no_settings")
def test_uv_is_fetched_once_for_a_lock_and_lies_beside_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Checkout(tmp_path)
    checkout.work.mkdir(parents=True)
    asked: list[str] = []

    def run(command: list[str | Path], *_: object) -> str:
        words = [Path(str(word)).name for word in command]
        asked.append("uv" if "uv.lock" in words else words[0] if words[0] == "uv" else "pip config")
        return ""

    monkeypatch.setattr(packages, "run", run)
    monkeypatch.setattr(packages, "run_over_network", run)
    for version in ("1", "1", "2"):
        checkout.lock.write_text(f"uv=={version} \\\n    --hash=a\n")
        packages.install_all(checkout)
    assert asked == ["uv", "pip config", "uv", "pip config", "uv", "uv", "pip config", "uv"]
    assert (checkout.uv / "uv.lock").read_text() == checkout.lock.read_text()
    assert not checkout.venv.exists()


NOWHERE = "http://127.0.0.1:9"  # the discard port of this machine: nobody listens


def test_the_verbs_are_listed_without_any_set_up(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    listings = [start(root, *arguments).communicate()[0] for arguments in ((), ("--help",), ("help",))]
    assert all(listing == listings[0] for listing in listings)
    assert "setup " in listings[0]
    assert not (root / ".venv").exists()
    assert not (root / ".cache").exists()


def test_run_may_be_called_by_a_link(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    (root / ".cache").touch()  # in the way, so that the set-up stops at once and names where it stands
    link = tmp_path / "link"
    link.symlink_to(root / "run")
    done = subprocess.run([link, "fit"], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"set-up: [Errno 17] File exists: '{root}/.cache' ({root}/.cache)\n"


def test_no_python(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("dirname", "readlink"):
        (tools / name).symlink_to(str(shutil.which(name)))
    process = start(root, "setup", PATH=str(tools))
    assert process.communicate()[1].strip().endswith("type: sudo apt-get install python3 python3-venv")
    assert process.returncode == 2


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """After four tries: what is done, why each failed, the sentence at the end, and where the rest stands."""
    pauses: list[float] = []
    monkeypatch.setattr("tools.setup.command.pause", pauses.append)
    monkeypatch.setattr("tools.setup.packages.run_over_network", failing)
    monkeypatch.setattr("tools.setup.environment._make_venv", lambda _: None)
    root = bare_checkout(tmp_path)
    monkeypatch.setattr(setup, "__file__", str(root / "tools" / "setup" / "__main__.py"))
    assert setup.main(["environment"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert pauses == [1, 3, 9]
    assert said[0] == "setting up the Python environment (.venv, about 0.5 GB)"
    assert said[1:4] == [
        f"  pip: no network: a server could not be reached; trying again in {pause:.0f} s" for pause in pauses
    ]
    assert said[4].startswith("set-up: pip: no network: a server could not be reached; connect")
    assert said[5] == f"  All output: {root}/.cache/setup.log"
    assert len(said) == 6


def failing(command: list[str | Path], log: Path, env: dict[str, str] | None = None) -> str:
    """Do what is asked with a pip that cannot reach its server, as it says so."""
    return run_over_network(["sh", "-c", 'echo "Connection refused"; exit 1', "-m", "pip"], log, env)


@pytest.mark.skipif(not shutil.which("apt-get"), reason="asks this machine's apt")
def test_no_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tools.setup.command.pause", lambda _: None)
    monkeypatch.setenv("JOINTBENCH_DEBIAN_MIRROR", NOWHERE)
    monkeypatch.delenv("JOINTBENCH_MICROPYTHON", raising=False)
    monkeypatch.setattr(setup, "__file__", str(tmp_path / "tools" / "setup" / "__main__.py"))
    assert setup.main(["micropython"]) == 2
    said = capsys.readouterr().err
    assert f"did not come from {NOWHERE}: no answer (" in said
    assert "Type the same command again" in said


def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    process = start(root, "setup", PIP_INDEX_URL=NOWHERE)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("setting up the Python environment")
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    assert said == "set-up: interrupted; the same command goes on from here\n"
    assert process.returncode in (130, -signal.SIGINT)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "no space left on the disk"),
        (PermissionError(13, "Permission denied", "/x"), "must be writable for the user who runs this (/x)"),
    ],
)
def test_an_error_of_the_system_is_one_sentence(
    error: OSError, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Checkout) -> None:
        raise error

    monkeypatch.setattr(setup, "__file__", str(tmp_path / "tools" / "setup" / "__main__.py"))
    monkeypatch.setattr(setup.environment, "install", fail)
    assert setup.main(["environment"]) == 2
    assert said in capsys.readouterr().err


def test_a_second_set_up_waits_for_the_first(tmp_path: Path) -> None:
    root = bare_checkout(tmp_path)
    with exclusive(Checkout(root)):
        process = start(root, "fit", PIP_INDEX_URL=NOWHERE)
        assert process.stderr is not None
        assert process.stderr.readline() == "another set-up of this checkout is running; waiting for it\n"
        assert not (root / ".venv").exists()
        (root / ".cache" / "work" / "mine").touch()
    assert process.stderr.readline().startswith("setting up the Python environment")
    assert not (root / ".cache" / "work" / "mine").exists()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_what_is_ready_is_found_ready() -> None:
    parts = ["environment", "development", "convert", "notebook", "rerun", "micropython"]
    command = [ROOT / ".venv/bin/python", "-S", "-P", "-m", "tools.setup", "--check", *parts]
    assert subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode == 0


SHIPPED = {  # folders of the checkout, and where they are in the wheel
    "host/jointbench": "jointbench",
    "protocol/jointwire": "jointwire",
    "firmware/boot": "jointbench/firmware/boot",
    "firmware/boards": "jointbench/firmware/boards",
    "firmware/jointboard": "jointbench/firmware/jointboard",
}


def build(tree: Path, kind: str, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder], cwd=tree, check=True)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(ROOT, "wheel", tmp_path_factory.mktemp("wheel")))


def test_it_holds_packages_and_firmware_with_their_data_and_no_tests(wheel: zipfile.ZipFile) -> None:
    expected: set[str] = set()
    for source, place in SHIPPED.items():
        names = [path.relative_to(ROOT / source) for path in (ROOT / source).rglob("*") if path.is_file()]
        expected |= {f"{place}/{name.as_posix()}" for name in names if not {"tests", "__pycache__"} & set(name.parts)}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
    assert {"jointbench/py.typed", "jointwire/py.typed", "jointbench/firmware/jointboard/schema.bin"} < expected
    assert any(Path(name).suffix == ".toml" for name in expected), "the robot library is missing"


def test_its_metadata_hold_to_the_standard(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(wheel.read(name), validate=True)
    assert str(metadata.requires_python) == ">=3.11"
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata.license_files == ["LICENSE"]
    assert {"report", "monitor", "convert", "bench", "testing"} <= set(metadata.provides_extra or [])
    entry_points = wheel.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert "jointbench = jointbench.cli.main:main" in entry_points


def test_the_wheel_of_the_sdist_is_the_same_and_needs_no_git(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        (top,) = {member.name.partition("/")[0] for member in archive.getmembers()}
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path], check=True)  # Python before 3.11.4 knows no safe way
    again = zipfile.ZipFile(build(tmp_path / top, "wheel", tmp_path / "wheel"))
    assert {info.filename: info.CRC for info in again.infolist()} == {
        info.filename: info.CRC for info in wheel.infolist()
    }
