"""The live page in Chromium, on emulated boards: it shows what is sent, STOP stops, and it comes back by itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from hil_tests.feed_helpers import (
    ATTACHED,
    LOST,
    PATIENCE_MS,
    WATCHING,
    Monitor,
    feed_of,
    first,
    monitor,
    python,
    shown,
    shown_time_us,
    wait_for_connection,
    wait_for_doing,
)
from hil_tests.link_helpers import COBOT
from hil_tests.virtual_bench import virtual_bench
from jointbench.bench import open_feed
from tools.browser import page_of, serious_findings

JOINTS = 2
LONG = "200"  # waves of a second: more than a test waits for
NONE_MOVES = """() => [...document.querySelectorAll('#boards tbody td:nth-of-type(1)')]
    .every(cell => !['ARMED', 'RUNNING'].includes(cell.innerText.trim()))"""
QUANTITIES = {  # column of the table: its name in the feed, decimals shown
    1: ("position_rad", 4),
    2: ("velocity_rad_s", 3),
    3: ("current_A", 3),
    4: ("torque_Nm", 2),
    5: ("temperature_C", 1),
    6: ("voltage_V", 2),
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A place of their own for sockets and addresses."""
    folder = tmp_path_factory.mktemp("r")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def live(runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with virtual_bench(COBOT, "ideal", seed=3, modules=JOINTS, out=tmp_path_factory.mktemp("sim")) as path:
        yield path


@pytest.fixture(scope="module")
def running(live: Path) -> Iterator[Monitor]:
    """A monitor that has begun to watch."""
    with monitor(live) as started:
        with feed_of(live) as client:
            first(client, kind="state")
        yield started


@pytest.fixture
def watching(page: Page, running: Monitor) -> Page:
    """The page of an idle bench."""
    page.goto(running.url)
    wait_for_connection(page, WATCHING)
    return page


@contextmanager
def overheard(live: Path) -> Iterator[dict[int, dict[str, Any]]]:
    """The states that are sent while the block lasts, by their time, to a second reader of the same feed."""
    states: dict[int, dict[str, Any]] = {}
    feed = open_feed(live)
    assert feed is not None

    def read() -> None:
        for line in feed.lines():
            if line["kind"] == "state":
                states[line["time_us"]] = line

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield states
    finally:
        feed.close()
        reader.join()


@contextmanager
def player(live: Path, run: Path) -> Iterator[Any]:
    """A program that plays until it is stopped; it is killed at the end of the block if it still does."""
    process = python("-m", "hil_tests.player_to_stop", str(live), str(run), LONG)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def check_what_is_shown(page: Page, live: Path) -> None:
    """Freeze the page and compare it with the line of that time."""
    with overheard(live) as states:
        page.wait_for_timeout(500)
        page.click("#pause")
        page.wait_for_timeout(200)
        time_us, cells = shown_time_us(page), shown(page)
        page.wait_for_timeout(300)
        assert shown_time_us(page) == time_us  # it is frozen
        assert "paused" in page.inner_text("#paused")
    line = states[time_us]
    assert [board["joint"] for board in line["boards"]] == list(cells)
    for board in line["boards"]:
        row = cells[board["joint"]]
        assert row[0] == board["state"]
        for column, (name, digits) in QUANTITIES.items():
            value = board[name]
            if value is None:
                assert row[column] == "–"
            else:
                assert float(row[column]) == pytest.approx(value, abs=0.51 * 10**-digits), name
    page.click("#pause")
    page.wait_for_function(
        "time => !document.getElementById('time').textContent.includes(time)", arg=f"{time_us * 1e-6:.6f}"
    )


def test_values_on_screen_are_those_that_were_sent(watching: Page, live: Path) -> None:
    check_what_is_shown(watching, live)
    assert shown(watching)["j1"][7].startswith("0 of ")


def test_keyboard_reaches_stop_first_and_it_is_confirmed(watching: Page) -> None:
    watching.keyboard.press("Tab")
    assert watching.evaluate("document.activeElement.id") == "stop"
    watching.keyboard.press("Enter")
    watching.wait_for_selector("#stop-word:has-text('all motors are off')")


def test_motors_are_said_to_be_off_until_one_is_on_again(watching: Page) -> None:
    """The page's own button, with another word beside it."""
    said = watching.evaluate("""async () => {
        const { Stop } = await import("./stop.js");
        const word = document.createElement("p");
        const stop = new Stop(document.createElement("button"), word, () => true);
        const texts = [];
        stop.answer({ kind: "stopped", ok: true, unconfirmed: [] });
        for (const state of ["DISARMED", "ARMED"]) {
            stop.note_state({ boards: [{ state: "DISARMED" }, { state }] });
            texts.push(word.textContent);
        }
        stop.answer({ kind: "stopped", ok: false, unconfirmed: ["j1"] });
        stop.note_state({ boards: [{ state: "RUNNING" }] });
        return [...texts, word.textContent];
    }""")
    assert "all motors are off" in said[0]
    assert said[1:] == ["", "j1 did not confirm: switch the power off"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["click", "key"])
def test_stop_stops_a_run(page: Page, running: Monitor, live: Path, tmp_path: Path, how: str) -> None:
    page.goto(running.url)
    wait_for_connection(page, WATCHING)
    with player(live, tmp_path / "run") as process:
        wait_for_connection(page, ATTACHED)
        wait_for_doing(page, "playing")
        page.wait_for_function("() => document.getElementById('progress').value > 0.3", timeout=PATIENCE_MS)
        check_what_is_shown(page, live)
        if how == "click":
            page.click("#stop")
        else:
            page.keyboard.press("Escape")
        page.wait_for_selector("#stop-word:has-text('all motors are off')", timeout=PATIENCE_MS)
        said, _ = process.communicate(timeout=120)
    end = json.loads(said.splitlines()[-1])
    assert "stopped by" in end["error"]
    assert all(end["was_on"].values())
    assert not any(end["is_on"].values())
    assert end["valid"]
    wait_for_connection(page, WATCHING)  # and the monitor has the idle bench again, whose boards answer one by one
    page.wait_for_function(NONE_MOVES, timeout=PATIENCE_MS)


def test_the_page_goes_on_drawing_after_stop(watching: Page) -> None:
    watching.click("#stop")
    watching.wait_for_selector("#stop-word:has-text('all motors are off')")
    before = shown_time_us(watching)
    watching.wait_for_function(
        "time => Number(/[0-9.]+/.exec(document.getElementById('time').textContent)[0]) > time + 0.5",
        arg=before * 1e-6,
    )
    assert watching.locator("body.stale").count() == 0


def test_a_silent_bench_is_grey_and_its_ages_count_up(watching: Page) -> None:
    """The page's own table, of a line that was heard some time ago; a board that never spoke has no age."""
    rows = watching.evaluate("""async () => {
        const { Table } = await import("./table.js");
        const table = new Table(document.createElement("table"));
        const boards = [{ joint: "j1", state: "RUNNING", age_s: 0.02 }, { joint: "j2", state: null, age_s: null }];
        table.build(boards);
        return [0, 1.5, 200].map((heard_s) => {
            table.show({ boards }, heard_s);
            return [...table.element.querySelectorAll("tbody tr")].map((row) => [
                row.querySelector("[data-label=Age]").textContent, row.classList.contains("stale"),
            ]);
        });
    }""")
    assert [row[0] for row in rows] == [["0.02 s", False], ["1.52 s", True], ["200 s", True]]
    assert {tuple(row[1]) for row in rows} == {("–", False)}


@pytest.mark.slow
def test_a_dead_bench_is_shown_as_dead(page: Page, runtime: Path, tmp_path: Path) -> None:
    with ExitStack() as bench:
        live = bench.enter_context(virtual_bench(COBOT, "ideal", seed=3, modules=JOINTS, out=tmp_path / "sim"))
        with monitor(live) as started:
            page.goto(started.url)
            wait_for_connection(page, WATCHING)
            bench.close()
            page.wait_for_selector("body.stale", timeout=PATIENCE_MS)
            page.wait_for_selector("tbody tr.stale >> nth=1", timeout=PATIENCE_MS)
            before = [float(row[9].split()[0]) for row in shown(page).values()]
            page.wait_for_timeout(700)
            after = [float(row[9].split()[0]) for row in shown(page).values()]
            assert all(later > earlier for earlier, later in zip(before, after, strict=True))
            page.click("#stop")
            page.wait_for_selector("#stop-word.no", timeout=PATIENCE_MS)  # nobody there can confirm it


@pytest.mark.slow
def test_a_killed_holder_is_said_and_the_bench_watched_again(
    page: Page, running: Monitor, live: Path, tmp_path: Path
) -> None:
    page.goto(running.url)
    with player(live, tmp_path / "run"):
        wait_for_doing(page, "playing")
    wait_for_connection(page, LOST)
    wait_for_connection(page, WATCHING)


@pytest.mark.slow
def test_the_page_comes_back_after_the_monitor_was_killed(page: Page, live: Path, tmp_path: Path) -> None:
    other = tmp_path / "bench.toml"  # the same bench by another name: the module's own monitor keeps its address
    other.write_text(live.read_text())
    with monitor(other) as first:
        page.goto(first.url)
        page.wait_for_selector("#boards tbody tr")
        first.kill()
        wait_for_connection(page, "connection to the monitor lost since")
        assert page.locator("#boards tbody tr").count() == JOINTS  # what was known stays on the screen
        page.click("#stop")
        assert "emergency stop" in page.inner_text("#stop-word")
    with monitor(other) as second:
        assert second.url == first.url
        wait_for_connection(page, "live")


@pytest.mark.slow
def test_zoom_hides_time_and_legend_hides_joints(watching: Page) -> None:
    plot = watching.locator(".u-over").first
    box = plot.bounding_box()
    assert box is not None
    watching.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 20)
    watching.mouse.down()
    watching.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 60, steps=5)
    watching.mouse.up()
    watching.wait_for_selector("#spans [aria-pressed=true]", state="detached")  # it shows a stretch of its own
    plot.dblclick()
    watching.wait_for_selector("#spans [aria-pressed=true]:has-text('30 s')")
    button = watching.locator("#legend button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320])
def test_pages_of_all_widths_are_accessible(browser: Browser, running: Monitor, scheme: Any, width: int) -> None:
    with page_of(browser, viewport={"width": width, "height": 844}, color_scheme=scheme) as page:
        page.goto(running.url)
        wait_for_connection(page, WATCHING)
        page.wait_for_selector(".u-over")
        assert serious_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        page.mouse.wheel(0, 2000)
        stop = page.locator("#stop").bounding_box()
        assert stop is not None
        assert stop["y"] >= 0  # wherever one has scrolled to
