"""What a bench file says of clock, features, wiring and faults, on benches that are started."""

import struct
from pathlib import Path

import pytest

from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.errors import BenchFileError
from jointbench.bench import Connections, WallClock
from jointbench.bench import read_bench_file as read_live_file

BENCHES = Path(__file__).parent / "benches"
SYNC = "[link]\nsync_s = 0.01\n"
WIRES = '[[wire]]\nfrom = "host.sync"\nto = "j1.sync"\n'
MEASURED = {"motor", "current", "link_encoder", "torque_sensor", "supply", "temperature", "flash"}
ASKED = {"faults", "outputs", "power"}
REPORT, SYNC_EDGES = struct.Struct("<10i"), 2  # of the board program report.py
IMPLIED = {"fault_transport", "several_boards"}


def test_the_live_file_says_what_the_bench_has(tmp_path: Path) -> None:
    with virtual_bench(BENCHES / "unix6.toml", out=tmp_path) as live:
        bench = read_live_file(live)
    assert (bench.clock, bench.terms.limits) == ("virtual", {"position_rad": 0.5, "velocity_rad_s": 1.0})
    assert bench.features == MEASURED | ASKED | IMPLIED | {"sync"}
    assert len(bench.terms.wires) == 6


def test_pulses_reach_the_boards_that_are_wired(tmp_path: Path) -> None:
    """And a feature is what all boards have."""
    file = write_bench_file(tmp_path, "report.py", "report.py", extra=SYNC + WIRES)
    with virtual_bench(file, out=tmp_path / "out") as live, RawClient(live) as client:
        said = {node: b"" for node in client.ports}
        while client.time_us < 50_000:
            for node, data in client.wait(50_000 - client.time_us).items():
                said[node] += data
        features = read_live_file(live).features
    edges = {node: max(report[SYNC_EDGES] for report in REPORT.iter_unpack(data)) for node, data in said.items()}
    assert edges == {1: 5, 2: 0}
    assert "sync" not in features


def test_faults_of_bench_board_and_url_are_in_the_clients_urls(tmp_path: Path) -> None:
    fault = '[fault]\nseed = 1\nprofile = "tx.lose=every:2"\n'
    file = write_bench_file(tmp_path, None, None, None, extra=fault, boards=("", 'fault = ""'))
    head, _, tail = file.read_text().rpartition("unix:")
    file.write_text(f"{head}fault://seed=3&rx.delay=1,for:1ms;unix:{tail}")
    with virtual_bench(file, out=tmp_path / "out") as live:
        bench = read_live_file(live)
        connections = Connections(bench)
        for board in connections.boards.values():
            board.greet()
            board.ping()
        counts = [board.port.faults for board in connections.boards.values()]
        connections.close()
    faults = [board.url.rpartition(";")[0] for board in bench.boards]
    assert faults == ["fault://seed=257&tx.lose=every:2", "", "fault://seed=3&rx.delay=1,for:1ms"]
    assert counts[0]["tx.lose"] > 0
    assert counts[1] == {}
    assert counts[2]["rx.delay"] >= 2


def test_a_bench_may_ask_for_the_wall_clock(tmp_path: Path) -> None:
    file = write_bench_file(tmp_path, None)
    file.write_text('clock = "wall"\n' + file.read_text())
    with virtual_bench(file, out=tmp_path / "out") as live:
        bench = read_live_file(live)
        connections = Connections(bench)
        connections.boards["j1"].greet()
        assert isinstance(connections.clock, WallClock)
        connections.close()
    assert (bench.clock, bench.control) == ("wall", None)
    assert bench.features == MEASURED | {"fault_transport"}  # nobody is there who could be asked for faults


@pytest.mark.parametrize(
    ("top", "tables", "url", "message"),
    [
        ('clock = "icount"\n', "", "unix:", "clock = 'icount' is not that of these boards; it is 'virtual'"),
        ("", WIRES, "unix:", r"wires join SYNC pins that get no pulses; set sync_s in \[link\]"),
        ("", SYNC + WIRES.replace("host", "j2"), "unix:", "get no pulses; .* and wire one to 'host.sync'"),
        ("", SYNC + WIRES.replace("j1", "j6"), "unix:", "there is no board 'j6'; there are j1, j2, host"),
        ("", "[limits]\nspeed = 1\n", "unix:", "unknown key 'speed'"),
        ("", "", "fault://rx.dorp=1;unix:", "there is no fault 'rx.dorp'"),
        ("", "", "fault://rx.drop=1;/dev/ttyACM0", "url = '/dev/ttyACM0' is not emulated"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, top: str, tables: str, url: str, message: str) -> None:
    file = write_bench_file(tmp_path, None, None, extra=tables)
    file.write_text(top + file.read_text().replace("unix:", url))
    with pytest.raises(BenchFileError, match=message):
        read_bench_file(file)


def test_benches_on_the_other_emulator_have_its_clock() -> None:
    bench = read_bench_file(BENCHES / "unix6.toml")
    assert [bench.with_boards_at(url).terms.clock for url in ("unix:", "qemu:")] == ["virtual", "icount"]
    assert read_bench_file(BENCHES / "qemu2.toml").terms.clock == "icount"
