"""Clock, features, limits, wiring and faults of bench files: read, put to use, or refused by name."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from jointbench.bench.bench_checks import check_boards, check_feet, check_joints
from jointbench.bench.bench_file import BenchFile, BenchTerms, BoardEntry, Wire, read_bench_file
from jointbench.bench.fault import parse_fault_url
from jointbench.bench.identity import Facts
from jointbench.bench.settings import ServoOverride
from jointbench.errors import BoardRefused, FileError
from jointbench.model import load_robot
from jointbench.tests.bench.wire import DEFAULTS

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


def read_terms(folder: Path, text: str) -> BenchFile:
    path = folder / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return read_bench_file(path)


def urls(bench: BenchFile) -> list[str]:
    return [board.url for board in bench.boards]


def test_a_real_bench_says_what_it_has(tmp_path: Path) -> None:
    stated = 'features = ["motor", "torque_sensor"]\n[limits]\nposition_rad = 0.5\ncurrent_A = 2\n'
    bench = read_terms(tmp_path, HEAD + stated + SYNC + BOARDS)
    assert (bench.clock, bench.terms.limits) == ("wall", {"position_rad": 0.5, "current_A": 2.0})
    assert bench.features == {"motor", "torque_sensor", "sync", "several_boards", "fault_transport"}
    assert bench.terms.wires[0] == Wire("host.sync", "j1.sync")


def test_features_follow_from_the_boards(tmp_path: Path) -> None:
    shared = BOARDS.replace("ttyACM1", "ttyACM0").replace('joint = "j2"', 'foot = "r_foot"')
    assert read_terms(tmp_path, HEAD + shared).features == {
        "shared_line",
        "foot_force",
        "several_boards",
        "fault_transport",
    }


def test_sync_is_had_where_wires_join_all_boards() -> None:
    terms = BenchTerms(wires=(Wire("j1.sync", "j2.sync"), Wire("j4.sync", "j3.sync"), Wire("j3.sync", "j2.sync")))
    assert terms.join_all("sync", ("j1", "j2", "j3", "j4"))
    assert not terms.join_all("sync", ("j1", "j2", "j3", "j4", "j5"))
    assert not terms.join_all("sync", ("j1",))
    assert terms.joined_with("j9.sync") == {"j9.sync"}


def test_counted_instructions_are_time_by_a_control_socket_too(tmp_path: Path) -> None:
    bench = read_terms(tmp_path, HEAD + 'clock = "icount"\ncontrol = "control"\n' + BOARDS)
    assert (bench.clock, bench.control, bench.common_ticks) == ("icount", tmp_path / "control", True)


def test_faults_of_the_bench_differ_from_line_to_line_by_their_seeds(tmp_path: Path) -> None:
    bench = read_terms(tmp_path, HEAD + '[fault]\nseed = 2\nprofile = "rx.drop=1e-4"\n' + BOARDS)
    assert urls(bench) == [
        "fault://seed=515&rx.drop=1e-4;/dev/ttyACM0",
        "fault://seed=514&rx.drop=1e-4;/dev/ttyACM1",
    ]
    assert {parse_fault_url(url)[1] for url in urls(bench)} == {"/dev/ttyACM0", "/dev/ttyACM1"}


def test_a_boards_own_faults_come_first(tmp_path: Path) -> None:
    own = BOARDS.replace('"serial:/dev/ttyACM0"', '"fault://seed=9&tx.lose=0.1; serial:/dev/ttyACM0"')
    own = own.replace('url = "serial:/dev/ttyACM1"', 'url = "serial:/dev/ttyACM1"\nfault = ""')
    bench = read_terms(tmp_path, HEAD + '[fault]\nprofile = "rx.drop=1e-4"\n' + own)
    assert urls(bench) == ["fault://seed=9&tx.lose=0.1;/dev/ttyACM0", "/dev/ttyACM1"]


def test_boards_of_a_line_have_its_faults_together(tmp_path: Path) -> None:
    shared = BOARDS.replace("ttyACM1", "ttyACM0")
    bench = read_terms(tmp_path, HEAD + '[fault]\nprofile = "rx.drop=1e-4"\n' + shared)
    assert urls(bench) == ["fault://seed=2&rx.drop=1e-4;/dev/ttyACM0"] * 2  # one line, its lowest node's seed
    with pytest.raises(FileError, match="boards j1 and j2 share a line, but not its faults; give all the same"):
        read_terms(tmp_path, HEAD + shared.replace('joint = "j2"', 'joint = "j2"\nfault = "rx.drop=1e-3"'))


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
def test_a_wrong_term_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_terms(tmp_path, HEAD + text + BOARDS)


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
    with pytest.raises(FileError, match=message):
        read_terms(tmp_path, HEAD + f'[[board]]\nnode = 1\njoint = "j1"\n{board}\n')


GOOD = """
version = 1
name = "lab"
robot = "cobot6"
clock = "virtual"
control = "control"
plant = "ideal"
seed = 4
[[board]]
node = 1
joint = "j1"
url = "/dev/pts/5"
pid = 77
[[board]]
node = 2
joint = "j2"
url = "serial:/dev/ttyACM0"
baud = 115200
[servo.j2]
stiffness_Nm_rad = 9000
"""


def read(folder: Path, text: str):
    path = folder / "bench.toml"
    path.write_text(text)
    return read_bench_file(path)


def test_everything_in_it(tmp_path: Path) -> None:
    bench = read(tmp_path, GOOD)
    assert (bench.name, bench.robot, bench.clock, bench.control) == ("lab", "cobot6", "virtual", tmp_path / "control")
    assert [(b.node, b.joint, b.url, b.baud) for b in bench.boards] == [
        (1, "j1", "/dev/pts/5", 921600), (2, "j2", "/dev/ttyACM0", 115200)
    ]  # fmt: skip
    assert bench.servos == {"j2": ServoOverride(9000.0, None)}
    assert bench.information == {"plant": "ideal", "seed": 4}
    assert read(tmp_path, GOOD.replace("seed = 4", "seed = 4\nnoise_seed = 5")).information["noise_seed"] == 5
    assert bench.common_ticks
    assert [[board.joint for board in line] for line in bench.lines] == [["j1"], ["j2"]]


def test_a_real_bench_needs_less(tmp_path: Path) -> None:
    text = 'version = 1\nname = "lab"\nrobot = "arm.toml"\n[[board]]\nnode = 1\njoint = "a"\nurl = "/dev/ttyUSB0"\n'
    bench = read(tmp_path, text)
    assert (bench.clock, bench.control, bench.robot) == ("wall", None, str(tmp_path / "arm.toml"))
    assert not bench.common_ticks


def test_boards_with_the_same_url_share_a_line(tmp_path: Path) -> None:
    board = '[[board]]\nnode = {}\njoint = "{}"\nurl = "{}"\n'
    places = ((7, "a", "/dev/A"), (2, "b", "/dev/B"), (3, "c", "/dev/A"))
    text = 'version = 1\nname = "lab"\nrobot = "cobot6"\n' + "".join(board.format(*place) for place in places)
    assert [[each.node for each in line] for line in read(tmp_path, text).lines] == [[3, 7], [2]]
    with pytest.raises(FileError, match="boards a and c share the line '/dev/A', but one has baud = 9600 and one"):
        read(tmp_path, text.replace("node = 7", "baud = 9600\nnode = 7"))


def test_boards_of_a_virtual_bench_may_have_clocks_of_their_own(tmp_path: Path) -> None:
    assert not read(tmp_path, GOOD.replace("seed = 4", "common_ticks = false")).common_ticks


def test_a_board_may_be_a_foots(tmp_path: Path) -> None:
    text = GOOD.replace("seed = 4", "seed = 4\nsample_every = 8").replace('joint = "j1"', 'foot = "r_foot"')
    bench = read(tmp_path, text)
    assert [(board.joint, board.on_foot) for board in bench.boards] == [("r_foot", True), ("j2", False)]
    assert bench.sample_every == 8
    assert read(tmp_path, GOOD).sample_every == 1
    with pytest.raises(FileError, match="unknown key 'r_foot'"):  # it has no servo
        read(tmp_path, text.replace("[servo.j2]", "[servo.r_foot]"))


def test_how_a_board_is_updated(tmp_path: Path) -> None:
    emulated = read(tmp_path, GOOD)
    assert "`./run sim BENCH`" in emulated.how_to_update(emulated.boards[0])
    real = read(tmp_path, GOOD.replace('plant = "ideal"\nseed = 4\n', ""))
    said = real.how_to_update(real.boards[1])
    assert f"`jointbench flash {tmp_path / 'bench.toml'} --joint j2`" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "version = 2 is not known; this release reads version 1"),
        ('clock = "virtual"', 'clock = "atomic"', r"clock = 'atomic' must be one of 'virtual', 'icount', 'wall'"),
        ('control = "control"', "", "'control' is missing"),
        ("node = 1", "node = 255", "of j1: node = 255 must be a whole number from 1 to 254"),
        ("node = 1", "node = 2", "node = 2 is given to 2 boards; it must differ"),
        ('joint = "j1"', 'joint = "j2"', "joint = 'j2' is given to 2 boards"),
        ('joint = "j1"', 'foot = "j2"', "foot = 'j2' is given to 2 boards"),
        ('url = "/dev/pts/5"', 'url = "unix:"', "asks for an emulated board, which a virtual bench must start first"),
        ("seed = 4", "common_ticks = 1", "common_ticks = 1 must be true or false"),
        ("seed = 4", "sample_every = 6", r"sample_every = 6 must be one of 1, 2, 4, 8, 16, 32, 64 ticks"),
        ("pid = 77", 'foot = "r_foot"', "has joint beside foot; a board drives a joint or reads a foot's sensors"),
        ("seed = 4", "sead = 4", "unknown key 'sead'; did you mean 'seed'"),
        ("stiffness_Nm_rad = 9000", "stiffness_Nm_rad = -1", "stiffness_Nm_rad = -1 must be above 0"),
        ("[servo.j2]", "[servo.j7]", "unknown key 'j7'"),
        ("[[board]]", "[[bord]]", "no boards; give each board a"),
        ("baud = 115200", "baud = 'fast'", "baud = 'fast' must be a finite number"),
        ("node = 1", "node = ", "is not TOML"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(FileError, match=message):
        read(tmp_path, GOOD.replace(old, new))


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no bench file"):
        read_bench_file(tmp_path / "nothing.toml")


BIPED = load_robot("gorobot2")
FOOT = {**DEFAULTS, "board.node": 13, "board.channels": 0b11110000000}
JOINTS = tuple(BoardEntry(node, joint, "/dev/A", 921600) for node, joint in enumerate(BIPED.joint_names, start=1))


@dataclass
class Board:
    joint: str
    node: int


def bench(*feet: str) -> BenchFile:
    entries = (BoardEntry(13 + k, foot, "/dev/A", 921600, on_foot=True) for k, foot in enumerate(feet))
    return BenchFile("lab", "gorobot2", BenchTerms(), None, (*JOINTS, *entries), {}, {}, False, 1, Path("lab.toml"))


@pytest.mark.parametrize("feet", [(), ("r_foot",), ("l_foot", "r_foot")])
def test_feet_may_have_boards(feet: tuple[str, ...]) -> None:
    check_joints(bench(*feet), BIPED)


def test_a_foot_that_is_none_is_refused() -> None:
    with pytest.raises(FileError, match="has a board for foot 'hoof' of 'gorobot2'; its feet: r_foot, l_foot"):
        check_joints(bench("hoof"), BIPED)
    arm = replace(bench(), boards=(BoardEntry(1, "r_foot", "/dev/A", 921600, on_foot=True),))
    with pytest.raises(FileError, match="has a board for foot 'r_foot' of 'cobot6'; it has none"):
        check_joints(arm, load_robot("cobot6"))


def test_a_foot_is_no_joint() -> None:
    with pytest.raises(FileError, match=r"has boards for r_ankle_roll.* needs one each for r_ankle_pitch, "):
        check_joints(replace(bench("r_foot"), boards=bench("r_foot").boards[1:]), BIPED)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"board.channels": 0b11110000001}, "drives a motor .*, the bench file has it read a foot's sensors"),
        ({"board.channels": 0b01110000000}, r"does not measure foot_force_4 \(board\.channels\); a foot's board reads"),
        ({"board.node": 14}, "is node 14 by its own register"),
        ({"board.tick_period": 500}, "board.tick_period = 500, the first board has 1000; they must be equal"),
    ],
)
def test_a_foots_board_must_read_its_sensors(facts: dict[str, int], said: str) -> None:
    boards = (Board("r_foot", 13),)
    check_feet(boards, (Facts(FOOT),), Facts(DEFAULTS))  # type: ignore[arg-type]  # a board as far as it is looked at
    with pytest.raises(BoardRefused, match=rf"^r_foot \(node 13\): {said}"):
        check_feet(boards, (Facts({**FOOT, **facts}),), Facts(DEFAULTS))  # type: ignore[arg-type]  # a board as far as it is looked at


def test_a_joints_board_must_not() -> None:
    arm = load_robot("cobot6:1")
    boards, facts = (Board("j1", 1),), {**DEFAULTS, "board.node": 1}
    check_boards(arm, boards, (Facts(facts),))  # type: ignore[arg-type]  # a board as far as it is looked at
    with pytest.raises(BoardRefused, match=r"^j1 \(node 1\): reads a foot's sensors \(board\.channels\)"):
        check_boards(arm, boards, (Facts({**facts, "board.channels": 0x8FF}),))  # type: ignore[arg-type]  # a board as far as it is looked at
