"""Who may see a bench, and who gets a plain refusal; no board is needed to ask."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from hil_tests.feed_helpers import Monitor, monitor, python
from jointbench.bench.monitor.server import door

BENCH = """version = 1
name = "nowhere"
robot = "cobot6"
"""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("runtime")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six boards at ports that do not exist."""
    text = BENCH + "".join(
        f'[[board]]\nnode = {node}\njoint = "j{node}"\nurl = "/dev/no-such-port-{node}"\n' for node in range(1, 7)
    )
    path = tmp_path_factory.mktemp("bench") / "bench.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def running(runtime: Path, bench: Path) -> Iterator[Monitor]:
    with monitor(bench) as started:
        yield started


def get(url: str, headers: dict[str, str] | None = None, method: str = "GET") -> tuple[int, dict[str, str], str]:
    parts = urlsplit(url)
    assert parts.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request(method, parts.path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def first_line(url: str, **headers: str) -> dict[str, object]:
    async def ask() -> dict[str, object]:
        socket = await websocket_connect(HTTPRequest(url.replace("http:", "ws:") + "live", headers=headers))
        try:
            line = await socket.read_message()
            assert isinstance(line, str)
            return json.loads(line)
        finally:
            socket.close()
            while await socket.read_message() is not None:
                pass  # until the other side has closed it, too: no socket outlives its loop

    return asyncio.run(ask())


def origin(url: str) -> str:
    return url.rsplit("/", 2)[0]


def test_the_page_and_its_files_are_for_who_has_the_token(running: Monitor) -> None:
    for name in ("", "monitor.js", "monitor.css", "uplot/uPlot.iife.min.js", "uplot/LICENSE"):
        status, headers, text = get(running.url + name)
        assert (status, bool(text)) == (200, True), name
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["", "/", "/monitor.js", "/live", "/wrong/", "/wrong/live", "/wrong/monitor.js"])
def test_a_missing_or_wrong_token_is_refused(running: Monitor, path: str) -> None:
    status, headers, text = get(origin(running.url) + path)
    assert status == 403
    assert "token" in text
    assert headers["Content-Type"].startswith("text/plain")


def test_nearly_the_token_is_refused(running: Monitor) -> None:
    for url in (running.url[:-2] + "/", running.url[:-1] + "x/"):
        assert get(url)[0] == 403


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": "evil.example:80", "Origin": "http://evil.example"}]
)
def test_another_name_for_this_machine_is_refused(running: Monitor, headers: dict[str, str]) -> None:
    status, _, text = get(running.url, headers)
    assert (status, "answers at 127.0.0.1" in text) == (403, True)


@pytest.mark.parametrize("foreign", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_a_foreign_origin_is_refused(running: Monitor, foreign: str) -> None:
    assert get(running.url + "monitor.js", {"Origin": foreign})[0] == 403
    with pytest.raises(HTTPClientError, match="403"):
        first_line(running.url, Origin=foreign)


def test_the_live_lines_are_for_our_own_page(running: Monitor) -> None:
    assert first_line(running.url, Origin=origin(running.url))["kind"] == "link"
    for url, headers in (
        (running.url, {}),  # no browser
        (origin(running.url) + "/", {"Origin": origin(running.url)}),
        (origin(running.url) + "/wrong/", {"Origin": origin(running.url)}),
        (running.url, {"Origin": origin(running.url), "Host": "evil.example"}),
    ):
        with pytest.raises(HTTPClientError, match="403"):
            first_line(url, **headers)


def test_no_path_at_all_is_refused(running: Monitor) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(running.url).port, timeout=30)
    connection.request("OPTIONS", "*")
    assert connection.getresponse().status == 403
    connection.close()


def test_the_browser_is_led_to_the_page_by_a_file_that_only_its_user_reads(running: Monitor, runtime: Path) -> None:
    """The command line of a program, which every user sees, holds no token."""
    file = Path(urlsplit(door(running.url)).path)
    assert (file.parent, file.stat().st_mode & 0o777) == (runtime / "jointbench", 0o600)
    assert running.url.split("/")[3] not in str(file)
    assert f"url={running.url}" in file.read_text()
    door(running.url)  # as at the next start


def test_nothing_but_the_page_can_be_read_or_written(running: Monitor) -> None:
    for path in ("../server.py", "..%2fserver.py", "uplot/", "none.js", "/etc/passwd"):
        assert get(running.url + path)[0] in (403, 404), path
    assert get(running.url, method="POST")[0] == 405


def test_a_bench_that_cannot_be_watched_says_why(running: Monitor) -> None:
    line = first_line(running.url, Origin=origin(running.url))
    while line["up"] is False and "no-such-port" not in str(line["why"]):
        line = first_line(running.url, Origin=origin(running.url))
    assert line["up"] is False


@pytest.mark.slow
def test_a_port_that_is_taken_is_refused_in_a_sentence(running: Monitor, bench: Path) -> None:
    port = str(urlsplit(running.url).port)
    process = python("-m", "jointbench", "monitor", str(bench), "--port", port)
    said, _ = process.communicate()
    assert process.returncode == 2
    assert f"port {port} cannot be had" in said
    assert "name another" in said


@pytest.mark.slow
def test_a_second_monitor_has_another_address_and_token(running: Monitor, bench: Path) -> None:
    with monitor(bench) as second:
        assert urlsplit(second.url).port != urlsplit(running.url).port
        assert second.url.split("/")[3] != running.url.split("/")[3]
