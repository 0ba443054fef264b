"""Bench files: read in full, or refused by name."""

from pathlib import Path

import pytest

from jointbench.errors import BenchFileError
from jointbench.link.bench_file import read_bench_file
from jointbench.link.settings import ServoOverride

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
    with pytest.raises(BenchFileError, match="boards a and c share the line '/dev/A', but one has baud = 9600 and one"):
        read(tmp_path, text.replace("node = 7", "baud = 9600\nnode = 7"))


def test_boards_of_a_virtual_bench_may_have_clocks_of_their_own(tmp_path: Path) -> None:
    assert not read(tmp_path, GOOD.replace("seed = 4", "common_ticks = false")).common_ticks


def test_a_board_may_be_a_foots(tmp_path: Path) -> None:
    text = GOOD.replace("seed = 4", "seed = 4\nsample_every = 8").replace('joint = "j1"', 'foot = "r_foot"')
    bench = read(tmp_path, text)
    assert [(board.joint, board.on_foot) for board in bench.boards] == [("r_foot", True), ("j2", False)]
    assert bench.sample_every == 8
    assert read(tmp_path, GOOD).sample_every == 1
    with pytest.raises(BenchFileError, match="unknown key 'r_foot'"):  # it has no servo
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
    with pytest.raises(BenchFileError, match=message):
        read(tmp_path, GOOD.replace(old, new))


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(BenchFileError, match="there is no bench file"):
        read_bench_file(tmp_path / "nothing.toml")
