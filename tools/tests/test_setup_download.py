"""A download over a network that fails: tries, pauses, what has come already, the next mirror, the last sentence."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.setup import command as module
from tools.setup.command import DownloadFailed, Gone, RemoteFile, download
from tools.tests.local_mirror import HANG, OTHER, SHORT, Mirror, mirror

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
