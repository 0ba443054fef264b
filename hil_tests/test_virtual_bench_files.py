"""Bench files and plant files: what is wrong in them is named, and what they say reaches the boards."""

import struct
from pathlib import Path

import numpy as np
import pytest

from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.raw_client import RawClient
from hil_tests.small_bench import write_bench_file
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.bench_file import read_bench_file
from hil_tests.virtual_bench.control import ControlSocket
from hil_tests.virtual_bench.emulated_board import prepare_flash
from hil_tests.virtual_bench.errors import BenchFileError, BoardStartError
from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.bench import Connections, WallClock
from jointbench.bench import read_bench_file as read_live_file
from jointbench.model import load_robot

BENCH = Path(__file__).parent / "benches" / "cobot6.toml"
BENCHES = ("cobot6", "cobot6_bus", "cobot6_clocks")
COBOT6 = load_robot("cobot6")


def changed(source: Path, folder: Path, old: str, new: str) -> Path:
    """Write a copy of a file with one passage changed, its references to other files kept."""
    text = source.read_text(encoding="utf-8")
    assert old in text, old
    text = text.replace(old, new, 1).replace('"../virtual_bench', f'"{BENCH.parent.parent}/virtual_bench')
    path = folder / source.name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 2", "cobot6.toml: version = 2 is not known; this release reads version 1"),
        ("version = 1", "version = ", "is not TOML"),
        ("version = 1", "version = " + 5000 * "9", "is not TOML: it has an integer of too many digits"),
        ("version = 1", "version = 1\n" + 50_000 * "a." + "b = 1", "line 4 has a key of more than 64 parts"),
        ('robot = "cobot6"', 'robot = "cobot9"', "robot 'cobot9': not in the library"),
        ('robot = "cobot6"', 'robot = "arm.toml"', "arm.toml': there is no such file"),
        ('plants/cobot6.toml"', 'plants/none.toml"', "plant file .*none.toml cannot be read: No such file"),
        ("node = 2", "node = 1", "node 1 has two boards"),
        ("node = 2", "node = 255", "node = 255 must be a whole number from 1 to 254"),
        ("node = 2", "node = 1.5", "node = 1.5 must be a whole number from 1 to 254"),
        ('joint = "j2"', 'joint = "j1"', "joint j1 has two boards"),
        ('joint = "j2"', 'joint = "elbow"', "joint = 'elbow': robot 'cobot6' has j1, j2, j3, j4, j5, j6"),
        ('url = "unix:"', 'url = "/dev/ttyACM0"', "is not emulated; .* at 'unix:', 'qemu:mps2-an385', 'qemu:', cl"),
        ('joint = "j2"', 'joint = "j2"\nprogramm = "x.py"', "unknown key 'programm'; did you mean 'program'?"),
        ("[[board]]", "[[boards]]", "unknown key 'boards'; did you mean 'board'?"),
        ('joint = "j2"', 'joint = "j2"\nbaud = 300', "baud = 300 must be a whole number of at least 1200"),
        ('joint = "j2"', 'joint = "j2"\nline = 3', "line = 3 must be a string"),
        ('joint = "j2"', 'joint = "j2"\nline = ""', "line = '' must name the line that boards share"),
        ('joint = "j2"', 'joint = "j2"\nclock_ppm = 2e4', "clock_ppm = 20000 must be from -10000 to 10000"),
        ('joint = "j2"', 'joint = "j2"\nclock_offset_s = -1', "clock_offset_s = -1 must be from 0 to 4.29497e"),
        ("version = 1", "version = 1\nlink = { latency_us = -5 }", "link: latency_us = -5 must be from 0 to 1e"),
        ("version = 1", "version = 1\nlink = { latency = 5 }", "unknown key 'latency'; did you mean 'latency_us'"),
        ("version = 1", "version = 1\nlink = { service_us = 1500 }", "service_us = 1500 must be from 0 to 1000"),
        (
            "version = 1",
            "version = 1\nlink = { sync_s = 1e-5 }",
            "sync_s = 1e-05 must be 0 .* at least a tick of 0.001",
        ),
        ("version = 1", "version = 1\nlink = 3", "link = 3 must be a table"),
        ("version = 1", "version = 1\nservo = 3", "servo = 3 must be a table"),
        ("version = 1", "version = 1\nservo = { j1 = 3 }", "servo: j1 = 3 must be a table"),
        ("version = 1", "version = 1\nservo = { j1 = { damping = [1] } }", "servo, j1: damping = .* a finite number"),
    ],
)
def test_a_wrong_bench_file_is_refused_by_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(BenchFileError, match=message):
        read_bench_file(changed(BENCH, tmp_path, old, new))


PAIR = 'nodes = [1, 2]\njoints = ["j1", "j2"]'


def of_two(folder: Path, pair: str = PAIR) -> Path:
    """A copy of the bench file whose first two boards are one with two motors."""
    first, second = (f'node = {node}\njoint = "j{node}"\nurl = "unix:"' for node in (1, 2))
    return changed(BENCH, folder, f"{first}\n\n[[board]]\n{second}", f'{pair}\nurl = "unix:"')


def test_a_board_may_have_two_motors(tmp_path: Path) -> None:
    first, *others = read_bench_file(of_two(tmp_path)).boards
    assert [(motor.node, motor.joint, motor.joint_index) for motor in first.motors] == [(1, "j1", 0), (2, "j2", 1)]
    assert first.shares_line
    assert not any(board.shares_line or board.partner for board in others)
    backwards = read_bench_file(of_two(tmp_path, 'nodes = [9, 8]\njoints = ["j2", "j1"]')).boards[0]
    assert [(motor.node, motor.joint_index) for motor in backwards.motors] == [(9, 1), (8, 0)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nodes = [1, 2]", "nodes = [1]", r"nodes = \[1\] must be a list of 2 numbers"),
        ("nodes = [1, 2]", "nodes = [1, 2, 3]", r"nodes = \[1, 2, 3\] must be a list of 2 numbers"),
        ("nodes = [1, 2]", "nodes = [1, 2.5]", "nodes = 2.5 must be a whole number from 1 to 254"),
        ("nodes = [1, 2]", "nodes = [1, 1]", r"nodes = \[1, 1\] must differ; each motor has its own"),
        ("nodes = [1, 2]", "nodes = [1, 3]", "node 3 has two boards"),
        ("nodes = [1, 2]", "node = 1", "has node or joint beside nodes and joints; write node and joint for one motor"),
        ('"j1", "j2"', '"j1"', r"joints = \['j1'\] must name 2 joints, one for each of nodes = \[1, 2\]"),
        ('"j1", "j2"', '"j2", "j2"', r"joints = \['j2', 'j2'\] must differ"),
        ('"j1", "j2"', '"j1", "j6"', "joint j6 has two boards"),
        ('"j1", "j2"', '"j1", "elbow"', "joints = 'elbow': robot 'cobot6' has j1, j2, j3"),
    ],
)
def test_a_wrong_board_of_two_motors_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in PAIR
    with pytest.raises(BenchFileError, match=message):
        read_bench_file(of_two(tmp_path, PAIR.replace(old, new)))


def test_boards_of_a_line_share_its_speed(tmp_path: Path) -> None:
    bus = BENCH.with_name("cobot6_bus.toml")
    with pytest.raises(
        BenchFileError, match="line 'base' has baud 115200 and 921600; boards of a line share its speed"
    ):
        read_bench_file(changed(bus, tmp_path, "baud = 921600", "baud = 115200"))


def test_a_line_is_as_fast_as_a_boards_uart_unless_it_says_otherwise(tmp_path: Path) -> None:
    bus = BENCH.with_name("cobot6_bus.toml")
    described = read_bench_file(changed(bus, tmp_path, 'line = "base"\nbaud = 921600', 'line = "tip"'))
    assert [len(line) for line in described.lines] == [1, 2, 3]
    assert {board.baud for board in described.boards} == {921600}
    assert {board.baud for board in read_bench_file(BENCH).boards} == {None}  # no line, no limit


def test_common_ticks_are_those_of_boards_without_clocks_of_their_own() -> None:
    common = {name: read_bench_file(BENCH.with_name(f"{name}.toml")).common_ticks for name in BENCHES}
    assert common == {"cobot6": True, "cobot6_bus": True, "cobot6_clocks": False}


def test_a_plant_file_may_leave_out_supply_and_windings(tmp_path: Path) -> None:
    text = COBOT6_PLANT.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("source_", "winding_", "ambient_"))]
    assert len(lines) == len(text.splitlines()) - 5
    path = tmp_path / "plain.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert read_plant_file(path, COBOT6).power == read_plant_file(COBOT6_PLANT, COBOT6).power


def test_a_missing_bench_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchFileError, match=r"bench file .*none.toml cannot be read: No such file"):
        read_bench_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "j3"', 'name = "j9"', "describes the joints j1, j2, j9, .* but robot 'cobot6' has j1, j2, j3"),
        ("mass_kg = 3.96", "mass_kg = -3.96", "cobot6.toml: joint 'j1': mass_kg = -3.96 must be above 0"),
        ("xx = 0.0113", "xx = 0.1113", "joint 'j1': no body has this inertia: principal inertias .* triangle"),
        ("load_friction = 0.05", "load_friction = -0.05", "joint 'j1': load_friction = -0.05 must not be below 0"),
        ("stiffness_Nm_rad = 24000\n", "", "joint 'j1': 'stiffness_Nm_rad' is missing"),
        ("steps_per_tick = 2", "steps_per_tick = 0", "steps_per_tick = 0 must be a whole number of at least 1"),
        ("current_noise_mA = 40 ", "current_noise_A = 40 ", "sensors: 'current_noise_mA' is missing"),
        ("version = 1", "version = 3", "version = 3 is not known"),
        ("source_resistance_mOhm = 100", "source_resistance_mOhm = -1", "source_resistance_mOhm = -1 must not be"),
        ("winding_time_constant_s = 60", "winding_time_constant_s = 0", "drive: winding_time_constant_s = 0 must be"),
    ],
)
def test_a_wrong_plant_file_is_refused_by_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(BenchFileError, match=message):
        read_plant_file(changed(COBOT6_PLANT, tmp_path, old, new), COBOT6)


def test_the_true_arm_differs_from_its_drawing_as_real_arms_do() -> None:
    """Identification must find what the drawing does not say: masses 5 to 15 % off, of bodies that can exist."""
    truth = read_plant_file(COBOT6_PLANT, COBOT6)
    for joint, part in zip(COBOT6.joints, truth.joints, strict=True):
        assert part.link.physical_fault is None
        assert part.link.mass is not None
        assert joint.link.mass is not None
        assert 0.05 < abs(part.link.mass / joint.link.mass - 1.0) < 0.15
        moments = np.diag(np.array(part.link.inertia_about_center_of_mass))
        drawn = np.diag(np.array(joint.link.inertia_about_center_of_mass))
        assert (np.abs(moments / drawn - 1.0) < 0.16).all()
        assert part.current_range > COBOT6.drives[joint.parent + 1].current_limit  # converters see what motors can do


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(BoardStartError, match=r"board folder .*flash cannot be written: .*none.py"):
        prepare_flash(tmp_path / "flash", {}, tmp_path / "none.py")


def test_a_folder_with_a_long_name_still_gets_a_control_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    control = ControlSocket(folder / "control")
    path = control.path
    assert path.is_socket()
    assert len(str(path)) < 108
    control.close()
    assert not path.parent.exists() or path.parent == folder


def test_a_plant_that_is_a_link_to_itself_is_named(tmp_path: Path) -> None:
    bench = changed(BENCH, tmp_path, 'plant = "../virtual_bench/plants/cobot6.toml"', 'plant = "plant.toml"')
    (tmp_path / "plant.toml").symlink_to(tmp_path / "plant.toml")
    with pytest.raises(BenchFileError, match=r"plant file .*plant\.toml cannot be read: Too many levels of symbolic"):
        read_bench_file(bench)


TERMS_BENCHES = Path(__file__).parent / "benches"
SYNC = "[link]\nsync_s = 0.01\n"
WIRES = '[[wire]]\nfrom = "host.sync"\nto = "j1.sync"\n'
MEASURED = {"motor", "current", "link_encoder", "torque_sensor", "supply", "temperature", "flash"}
ASKED = {"faults", "outputs", "power"}
REPORT, SYNC_EDGES = struct.Struct("<10i"), 2  # of the board program report.py
IMPLIED = {"fault_transport", "several_boards"}


def test_the_live_file_says_what_the_bench_has(tmp_path: Path) -> None:
    with virtual_bench(TERMS_BENCHES / "unix6.toml", out=tmp_path) as live:
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
    bench = read_bench_file(TERMS_BENCHES / "unix6.toml")
    assert [bench.with_boards_at(url).terms.clock for url in ("unix:", "qemu:")] == ["virtual", "icount"]
    assert read_bench_file(TERMS_BENCHES / "qemu2.toml").terms.clock == "icount"
