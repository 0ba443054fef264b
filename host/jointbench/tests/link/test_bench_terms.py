"""Clock, features, limits, wiring and faults of bench files: read, put to use, or refused by name."""

from pathlib import Path

import pytest

from jointbench.errors import BenchFileError
from jointbench.link.bench_file import BenchFile, BenchTerms, Wire, read_bench_file
from jointbench.link.fault import parse_fault_url

HEAD = 'version = 1\nname = "lab"\nrobot = "cobot6"\n'
BOARDS = """
[[board]]
node = 3
joint = "j1"
url = "serial:/dev/ttyACM0"
[[board]]
node = 2
joint = "j2"
url = "serial:/dev/ttyACM1"
"""
SYNC = '[[wire]]\nfrom = "host.sync"\nto = "j1.sync"\n[[wire]]\nfrom = "j2.sync"\nto = "j1.sync"\n'


def read(folder: Path, text: str) -> BenchFile:
    path = folder / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return read_bench_file(path)


def urls(bench: BenchFile) -> list[str]:
    return [board.url for board in bench.boards]


def test_a_real_bench_says_what_it_has(tmp_path: Path) -> None:
    stated = 'features = ["motor", "torque_sensor"]\n[limits]\nposition_rad = 0.5\ncurrent_A = 2\n'
    bench = read(tmp_path, HEAD + stated + SYNC + BOARDS)
    assert (bench.clock, bench.limits) == ("wall", {"position_rad": 0.5, "current_A": 2.0})
    assert bench.features == {"motor", "torque_sensor", "sync", "several_boards", "fault_transport"}
    assert bench.terms.wires[0] == Wire("host.sync", "j1.sync")


def test_features_follow_from_the_boards(tmp_path: Path) -> None:
    shared = BOARDS.replace("ttyACM1", "ttyACM0").replace('joint = "j2"', 'foot = "r_foot"')
    assert read(tmp_path, HEAD + shared).features == {"shared_line", "foot_force", "several_boards", "fault_transport"}


def test_sync_is_had_where_wires_join_all_boards() -> None:
    terms = BenchTerms(wires=(Wire("j1.sync", "j2.sync"), Wire("j4.sync", "j3.sync"), Wire("j3.sync", "j2.sync")))
    assert terms.join_all("sync", ("j1", "j2", "j3", "j4"))
    assert not terms.join_all("sync", ("j1", "j2", "j3", "j4", "j5"))
    assert not terms.join_all("sync", ("j1",))
    assert terms.joined_with("j9.sync") == {"j9.sync"}


def test_counted_instructions_are_time_by_a_control_socket_too(tmp_path: Path) -> None:
    bench = read(tmp_path, HEAD + 'clock = "icount"\ncontrol = "control"\n' + BOARDS)
    assert (bench.clock, bench.control, bench.common_ticks) == ("icount", tmp_path / "control", True)


def test_faults_of_the_bench_differ_from_line_to_line_by_their_seeds(tmp_path: Path) -> None:
    bench = read(tmp_path, HEAD + '[fault]\nseed = 2\nprofile = "rx.drop=1e-4"\n' + BOARDS)
    assert urls(bench) == [
        "fault://seed=515&rx.drop=1e-4;/dev/ttyACM0",
        "fault://seed=514&rx.drop=1e-4;/dev/ttyACM1",
    ]
    assert {parse_fault_url(url)[1] for url in urls(bench)} == {"/dev/ttyACM0", "/dev/ttyACM1"}


def test_a_boards_own_faults_come_first(tmp_path: Path) -> None:
    own = BOARDS.replace('"serial:/dev/ttyACM0"', '"fault://seed=9&tx.lose=0.1; serial:/dev/ttyACM0"')
    own = own.replace('url = "serial:/dev/ttyACM1"', 'url = "serial:/dev/ttyACM1"\nfault = ""')
    bench = read(tmp_path, HEAD + '[fault]\nprofile = "rx.drop=1e-4"\n' + own)
    assert urls(bench) == ["fault://seed=9&tx.lose=0.1;/dev/ttyACM0", "/dev/ttyACM1"]


def test_boards_of_a_line_have_its_faults_together(tmp_path: Path) -> None:
    shared = BOARDS.replace("ttyACM1", "ttyACM0")
    bench = read(tmp_path, HEAD + '[fault]\nprofile = "rx.drop=1e-4"\n' + shared)
    assert urls(bench) == ["fault://seed=2&rx.drop=1e-4;/dev/ttyACM0"] * 2  # one line, its lowest node's seed
    with pytest.raises(BenchFileError, match="boards j1 and j2 share a line, but not its faults; give all the same"):
        read(tmp_path, HEAD + shared.replace('joint = "j2"', 'joint = "j2"\nfault = "rx.drop=1e-3"'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('clock = "atomic"\n', "clock = 'atomic' must be one of 'virtual', 'icount', 'wall'"),
        ('features = ["motor", "motor"]\n', "features name 'motor' twice"),
        ("features = [1]\n", "must be a list of strings"),
        ("[limits]\nposition_deg = 30\n", r"unknown key 'position_deg'; .*allowed here: position_rad"),
        ("[limits]\nposition_rad = 0\n", "position_rad = 0 must be above 0"),
        (SYNC.replace("j2", "j7"), r"wire from 'j7.sync' to 'j1.sync': there is no board 'j7'; there are j1, j2, host"),
        (SYNC.replace("j2.sync", "j2.led"), "wire from 'j2.led' to 'j1.sync': a board has no pin 'led' .* it has sync"),
        (SYNC.replace("j2.sync", "j1.sync"), "from and to are both 'j1.sync'; a wire joins two pins"),
        ("[fault]\nseed = 1\n", "'profile' is missing"),
        ('[fault]\nseed = -1\nprofile = "rx.drop=1"\n', "seed = -1 must be a whole number from 0"),
        ('[fault]\nprofile = "rx.dorp=1"\n', "there is no fault 'rx.dorp'"),
        ('[fault]\nprofile = "seed=4&rx.drop=1"\n', "seed is given twice"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BenchFileError, match=message):
        read(tmp_path, HEAD + text + BOARDS)


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ('url = "fault://rx.drop=2;/dev/a"', r"bench.toml: board\[0\] of j1: .* must be a rate from 0 to 1"),
        ('url = "fault://rx.drop=1;/dev/a"\nfault = "tx.lose=1"', "beside a fault:// URL; write all faults into one"),
        ('url = "/dev/a"\nfault = "everything"', "'everything' has no value"),
        ('url = "fault://rx.drop=1;unix:"', "url = 'unix:' asks for an emulated board"),
    ],
)
def test_wrong_faults_of_a_board_are_named(tmp_path: Path, board: str, message: str) -> None:
    with pytest.raises(BenchFileError, match=message):
        read(tmp_path, HEAD + f'[[board]]\nnode = 1\njoint = "j1"\n{board}\n')
