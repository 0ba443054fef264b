"""Smart drives as joints: emulated ones against their makers' libraries, and boards that have one as their motor."""

import os
import pty
import re
import shutil
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dynamixel_sdk as sdk
import numpy as np
import pytest

import jointbench as jb
from firmware.boards.tests.interpreter import ALLOCATED, BOARDS, run
from firmware.tests.driver import BoardProcess, Outputs, flash, play, swing
from hil_tests.link_helpers import HERE
from hil_tests.virtual_bench import vesc, virtual_bench
from hil_tests.virtual_bench.dynamixel import GOAL_CURRENT, TORQUE, WATCHDOG, Dynamixel, crc16
from hil_tests.virtual_bench.kinds import SERVOS
from hil_tests.virtual_bench.smart_drive import Present, SmartDrive
from hil_tests.virtual_bench.vesc import Vesc
from jointbench.bench import open_bench
from jointbench.recording import Recorder, open_run
from jointwire import MessageType, Refusal, State, Trip, decode_samples

BENCH = HERE / "benches" / "dynamixel6.toml"
COUNTS = 4096  # a turn
SERVO = {"servo.kp": 8000, "servo.kd": 2400, "limit.current": 3000, "limit.following": 200}
PRESENT = Present(current=-2.69e-3, position=0x00FDFFFF, supply=12.0, temperature=31.0)  # with FF FF FD in it


@pytest.fixture
def servo() -> Dynamixel:
    servo = Dynamixel(3, *SERVOS["XM430-W350"])
    servo.see(PRESENT)
    return servo


@pytest.fixture
def port(servo: Dynamixel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The maker's port at a pseudo-terminal with the servo behind it; it waits as long as a busy machine takes."""
    monkeypatch.setattr(sdk.port_handler, "LATENCY_TIMER", 5000)
    bus, line = pty.openpty()

    def serve() -> None:
        while True:
            try:
                heard = os.read(bus, 1024)
            except OSError:
                return
            os.write(bus, servo.hear(heard))

    threading.Thread(target=serve, daemon=True).start()
    port = sdk.PortHandler(os.ttyname(line))
    port.openPort()
    port.setBaudRate(1_000_000)
    yield port
    port.closePort()
    os.close(line)


def test_the_makers_library_talks_to_the_emulated_servo(servo: Dynamixel, port: Any) -> None:
    """It pings, reads, writes, and reads several at once; a packet that needs stuffing too."""
    handler = sdk.Protocol2PacketHandler()
    assert handler.ping(port, 3) == (1020, sdk.COMM_SUCCESS, 0)
    assert handler.read4ByteTxRx(port, 3, 132) == (PRESENT.position, sdk.COMM_SUCCESS, 0)
    assert handler.read2ByteTxRx(port, 3, 126)[0] == 0xFFFF
    assert handler.write1ByteTxRx(port, 3, 11, 0) == (sdk.COMM_SUCCESS, 0)
    assert handler.write1ByteTxRx(port, 3, TORQUE, 1) == (sdk.COMM_SUCCESS, 0)
    assert handler.write2ByteTxRx(port, 3, GOAL_CURRENT, 100) == (sdk.COMM_SUCCESS, 0)
    assert servo.goal_current == pytest.approx(0.269)
    assert handler.write1ByteTxRx(port, 3, 11, 3)[1] == sdk.ERRNUM_ACCESS  # not while its torque is on
    assert handler.write2ByteTxRx(port, 3, GOAL_CURRENT, 1194)[1] == sdk.ERRNUM_DATA_LIMIT
    together = sdk.GroupSyncRead(port, handler, 126, 21)
    assert together.addParam(3)
    assert together.txRxPacket() == sdk.COMM_SUCCESS
    assert together.getData(3, 146, 1) == 31


class Written:
    """A port of the maker's library that keeps what is written to it."""

    is_using = False

    def __init__(self) -> None:
        self.data = b""

    def clearPort(self) -> None:  # noqa: N802 - the library's name
        pass

    def setPacketTimeout(self, _length: int) -> None:  # noqa: N802 - the library's name
        pass

    def writePort(self, packet: list[int]) -> int:  # noqa: N802 - the library's name
        self.data += bytes(packet)
        return len(packet)


def test_each_packet_of_a_board_is_what_the_makers_library_sends() -> None:
    """Byte for byte; so is the CRC, whose check value is that of CRC-16/UMTS."""
    handler, written = sdk.Protocol2PacketHandler(), Written()
    handler.write1ByteTxOnly(written, 7, 98, 1)
    written.is_using = False
    handler.write1ByteTxOnly(written, 7, 68, 1)
    written.is_using = False
    handler.write1ByteTxOnly(written, 7, 64, 1)
    written.is_using = False
    handler.write2ByteTxOnly(written, 7, 102, 0)
    written.is_using = False
    handler.write2ByteTxOnly(written, 7, 102, -743 & 0xFFFF)
    written.is_using = False
    handler.readTx(written, 7, 126, 21)
    program = """
from drivers import dynamixel as d
sent = bytearray()
class Bus:
    def any(self):
        return 0
    def write(self, data, count):
        sent.extend(bytes(data[:count]))
d.Dynamixel._set_up = lambda self, config: None
servo = d.Dynamixel(Bus(), {"drive": {"id": 7, "kind": "dynamixel"}})
servo._gain, servo.limit = (1000 << 15) // 2690, 1193
servo.command(0)
servo.command(-2000)
answer = [list(sent), d.crc16(b"123456789", 0, 9, d.POLYNOMIAL)]
"""
    sent, check = run(program)
    assert bytes(sent) == written.data
    assert check == crc16(b"123456789") == 0xFEE8


def test_a_tick_at_a_drive_takes_no_memory(servo: Dynamixel) -> None:
    """Power on or off, with an answer that is whole, or echoed as well."""
    servo.hear(_write(68, b"\x01"))
    whole, echo = servo.hear(_read(126, 21)), _read(126, 21)
    drive = Vesc()
    drive.see(PRESENT)
    told = drive.hear(VESC_ASK)
    program = (
        ALLOCATED
        + """
from drivers import dynamixel, vesc
import struct
class Bus:
    answer = b""
    def any(self):
        return len(self.answer)
    def readinto(self, into, most):
        for k in range(len(self.answer)):
            into[k] = self.answer[k]
        return len(self.answer)
    def write(self, data, count):
        pass
dynamixel.Dynamixel._set_up = lambda self, config: None
bus = Bus()
servo = dynamixel.Dynamixel(bus, {"drive": {"id": 3}})
servo._gain, servo.limit = 1000, 1193
bus.answer = bytes(told)
drive = vesc.Vesc(bus, {"drive": {}})
inputs = bytearray(128)
outputs = bytearray(12)
bytes_taken, shown = [], []
for one, answers in ((servo, (bytes(whole), bytes(echo) + bytes(whole))), (drive, (bytes(told), bytes(told)))):
    def tick():
        one.measure(inputs)
        one.apply(outputs)
    for power in (0, 1):
        outputs[4] = power
        for bus.answer in answers:
            bytes_taken.append(allocated(tick))
    shown.append(struct.unpack_from("<4i16H", inputs, 16))
answer = [bytes_taken, shown]
"""
    )
    taken, shown = run(program, whole=list(whole), echo=list(echo), told=list(told))
    assert taken == [0] * 8
    within = PRESENT.position % vesc.COUNTS
    places = ((PRESENT.position & 0xFFFF, PRESENT.position % COUNTS, 120, 31), (within, within, 120, 310))
    for (*place, current), expected, count in zip([(*row[:4], row[4:]) for row in shown], places, (-1, 0), strict=True):
        assert tuple(place) == expected
        assert current == [2048 + count] * 16  # -2.69 mA are a count of the one, and none of the other


VESC_ASK = vesc.packet(struct.pack(">BI", 50, 0x18122))


def _packet(instruction: int, parameters: bytes) -> bytes:
    packet = b"\xff\xff\xfd\x00" + struct.pack("<BHB", 3, len(parameters) + 3, instruction) + parameters
    return packet + struct.pack("<H", crc16(packet))


def _write(register: int, value: bytes) -> bytes:
    return _packet(3, struct.pack("<H", register) + value)


def _read(register: int, size: int) -> bytes:
    return _packet(2, struct.pack("<HH", register, size))


class ServoBoard(BoardProcess):
    """A board with a servo that a test sees, cuts off and moves: `hear` answers its bus."""

    def __init__(self, folder: Path, hear: Callable[[bytes], bytes]) -> None:
        answers, self._to_bus = os.pipe()
        self._from_bus, asks = os.pipe()
        self.hear = hear
        super().__init__(folder, (answers, asks))
        os.close(answers)
        os.close(asks)
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    def _serve(self) -> None:
        while head := os.read(self._from_bus, 2):
            answer = self.hear(os.read(self._from_bus, int.from_bytes(head, "little")))
            os.write(self._to_bus, len(answer).to_bytes(2, "little") + answer)

    def close(self) -> int:
        status = super().close()
        self._server.join()
        os.close(self._to_bus)
        os.close(self._from_bus)
        return status


def start(folder: Path, hear: Callable[[bytes], bytes], kind: str = "dynamixel", **drive: Any) -> ServoBoard:
    """The firmware with this drive, if a servo the third, as its motor."""
    flash(folder)
    shutil.copytree(BOARDS / "drivers", folder / "drivers", ignore=shutil.ignore_patterns("__pycache__"))
    config = (folder / "config.json").read_text(encoding="utf-8")
    added = f', "drive": {{"kind": "{kind}", "id": 3' + "".join(f', "{key}": {drive[key]}' for key in drive) + "}}"
    (folder / "config.json").write_text(config[:-1] + added, encoding="utf-8")
    return ServoBoard(folder, hear)


@pytest.fixture
def board(tmp_path: Path, servo: Dynamixel) -> Iterator[ServoBoard]:
    board = start(tmp_path, servo.hear)
    board.run(1)
    yield board
    board.close()


@pytest.fixture(params=["dynamixel", "vesc"])
def driven(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ServoBoard, Dynamixel | Vesc]]:
    """A board with a drive of each make."""
    drive = Dynamixel(3) if request.param == "dynamixel" else Vesc()
    drive.see(PRESENT)
    board = start(tmp_path, drive.hear, request.param)
    board.run(1)
    yield board, drive
    board.close()


def test_a_board_sets_up_a_servo_as_it_comes_from_the_factory(board: ServoBoard, servo: Dynamixel) -> None:
    """Current control, no delay, the shortest watchdog, torque off; and knows where it is and what it can give."""
    assert [servo[register] for register in (9, 11, 68, WATCHDOG, TORQUE)] == [0, 0, 1, 1, 0]
    assert board.write("stream.always", 1) is Refusal.OK
    board.run(130)
    samples = decode_samples(board.of(MessageType.DATA)[-1]).columns
    low = (PRESENT.position + COUNTS // 2) % COUNTS - COUNTS // 2
    assert samples["motor_position"][-1] == low
    assert samples["motor_current"][-1] == pytest.approx(-16, abs=1)  # a count of the servo's is 16 of a board's
    assert board.read("hard.current") == int(1193 * 2.69)
    assert board.read("current.scale") == round(1e9 * 2.69e-3 / 16)
    assert "link_position" not in samples


def test_it_plays_by_the_drives_current(driven: tuple[ServoBoard, Dynamixel | Vesc]) -> None:
    """What the drive is told is what the board asks for, in the drive's counts; STOP takes it away."""
    board, drive = driven
    mover = moved(board, drive)
    play(board)
    for _ in range(40):
        outputs = board.run(1)
        assert drive.outputs(outputs.enable)[0] == outputs.enable
        assert drive.outputs(1)[1] == pytest.approx(1e-3 * mover.asked_mA, abs=1.35e-3)
    assert board.state is State.RUNNING
    board.request(MessageType.STOP)
    board.run(2)
    assert drive.outputs(0) == (0, 0.0)


class Mover:
    """A motor of 1 count/tick² an ampere behind a servo's current, tick by tick."""

    def __init__(self, drive: SmartDrive) -> None:
        self._drive = drive
        self.asked_mA = 0
        self.position = self.velocity = 0.0

    def __call__(self, outputs: Outputs) -> int:
        self.asked_mA = outputs.command_mA if outputs.enable else 0
        current = self._drive.outputs(outputs.enable)[1]
        self.velocity += current
        self.position += self.velocity
        self._drive.see(Present(current, round(self.position), 12.0, 30.0))
        self._drive.wait(1e-3)
        return 0


def moved(board: ServoBoard, drive: SmartDrive) -> Mover:
    """A motion of 100 counts in 0.26 s, loaded into a board whose drive moves something."""
    board.plant = mover = Mover(drive)
    board.run(2)
    for name, value in SERVO.items():
        assert board.write(name, value) is Refusal.OK
    board.upload(swing(9, amplitude=100), 1)
    return mover


@pytest.mark.parametrize("way", ["silent", "stopped by itself", "garbled"])
def test_a_drive_that_vanishes_is_named_and_its_motor_off(
    driven: tuple[ServoBoard, Dynamixel | Vesc], way: str
) -> None:
    """In five ticks by the board, and by the drive's own timeout of 20 ms where nothing reaches it any more."""
    board, drive = driven
    moved(board, drive)
    play(board)
    board.run(20)
    assert drive.outputs(1)[0] == 1
    hears = drive.hear
    if way == "silent":
        board.hear = lambda _: b""
    elif way == "garbled":
        board.hear = lambda heard: hears(heard)[:-1]
    elif isinstance(drive, Dynamixel):
        drive.shut_down(0x20)
    else:
        drive.fault = 4
    board.run(5)
    assert board.state == State.FAULT
    assert [frame.body.trip for frame in board.of(MessageType.FAULT)] == [Trip.HARDWARE]
    name = "Dynamixel 3" if isinstance(drive, Dynamixel) else "VESC"
    assert f"{name}: 3 bad readings in a row" in board.errors
    board.run(20)
    assert drive.outputs(0)[1] == 0.0


def test_a_servo_that_lost_its_supply_is_told_all_again_before_it_moves(board: ServoBoard, servo: Dynamixel) -> None:
    """Else it would answer what nobody asks, and have no watchdog."""
    moved(board, servo)
    servo.lose_supply()
    assert servo[68] == 2
    board.run(5)
    assert board.state == State.LOADED  # one bad reading is no fault
    assert servo[68] == 1
    play(board)
    board.run(5)
    assert [servo[register] for register in (68, WATCHDOG, TORQUE)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("servo_there", "drive", "said"),
    [
        (None, {}, "Dynamixel 3 does not answer: check its supply, its id, its baud rate"),
        (Dynamixel(3, 1060), {}, "the Dynamixel 3 is model 1060, which is not known to control its current; known are"),
        (Dynamixel(3), {"unit_uA": 12}, "drive.unit_uA is 12; it must be a number from 500 to 10000"),
    ],
)
def test_a_board_without_a_servo_that_could_be_a_joints_says_why(
    tmp_path: Path, servo_there: Dynamixel | None, drive: dict[str, int], said: str
) -> None:
    board = start(tmp_path, servo_there.hear if servo_there else lambda _: b"", "dynamixel", **drive)
    assert board.process.wait(20) != 0
    assert said in board.errors
    board.close()


def test_a_board_without_a_vesc_says_so(tmp_path: Path) -> None:
    board = start(tmp_path, lambda _: b"", "vesc")
    assert board.process.wait(20) != 0
    assert "VESC does not answer: check its supply, its baud rate (UART app)" in board.errors
    board.close()


def test_a_vesc_turns_on_over_the_end_of_its_turn(tmp_path: Path) -> None:
    """Its position is within a turn; the board's goes on."""
    drive = Vesc()
    drive.see(Present(0.0, vesc.COUNTS - 3, 12.0, 30.0))
    board = start(tmp_path, drive.hear, "vesc")
    board.run(1)
    assert board.write("stream.always", 1) is Refusal.OK
    for ahead in range(-3, 140):
        drive.see(Present(0.0, vesc.COUNTS + 100 * ahead, 12.0, 30.0))
        board.run(1)
    columns = decode_samples(board.of(MessageType.DATA)[-1]).columns["motor_position"]
    assert columns[-1] - columns[0] == 100 * (len(columns) - 1)
    board.close()


def bench_of(make: str, folder: Path) -> Path:
    """The arm of servos with these, or with VESCs in their places, whose encoders have more counts.

    The default rule makes servos of that resolution as stiff as a board's own sensors would allow; what a drive
    measures is a tick older.
    """
    if make == "Dynamixel":
        return BENCH
    plant = (HERE / "virtual_bench" / "plants" / "dynamixel6.toml").read_text(encoding="utf-8")
    (folder / "plant.toml").write_text(plant.replace("_counts = 4096", f"_counts = {vesc.COUNTS}"), encoding="utf-8")
    bench = re.sub(r'drive = ".*"', 'drive = "VESC"', BENCH.read_text(encoding="utf-8"))
    bench = bench.replace("robots/", f"{BENCH.parent}/robots/").replace(
        "../virtual_bench/plants/dynamixel6.toml", "plant.toml"
    )
    bench += "".join(f"[servo.j{k}]\nstiffness_Nm_rad = 100\ndamping_Nms_rad = 1.8\n" for k in (1, 2, 3))
    (folder / "bench.toml").write_text(bench, encoding="utf-8")
    return folder / "bench.toml"


@pytest.mark.slow
@pytest.mark.parametrize("make", ["Dynamixel", "VESC"])
def test_an_arm_of_smart_drives_is_identified_by_default(tmp_path: Path, make: str) -> None:
    """Its first three joints; encoders of 4096 counts a turn of the joint leave the cut-off to prediction."""
    with (
        virtual_bench(bench_of(make, tmp_path), seed=1, out=tmp_path / "sim", modules=3) as live,
        open_bench(live) as bench,
    ):
        bench.connect()
        bench.configure()
        runs = list[Path]()
        for seed in (0, 3):
            motion = jb.random_excitation(bench.robot, period=10.016, seed=seed)
            bench.move_to(motion.evaluate(np.zeros(1))[0][0])
            runs.append(tmp_path / f"run{seed}")
            bench.play(motion, 1, Recorder(runs[-1], bench.provenance(repeats=1)))
            ledger = open_run(runs[-1]).ledger
            assert ledger is not None
            assert ledger.samples_lost == 0
    model = jb.fit(runs[0])
    if make == "Dynamixel":
        assert 5.0 < model.figures["cutoffs_chosen"][0] < 60.0
    validation = jb.validate(model, runs[1])
    # A step of 1.5 mrad lets a servo of 100 N·m/rad ask for 0.15 N·m, which all rows have; at 200 Hz, what boards'
    # recordings have by default, the model errs by half of the torque.
    assert validation.error_all.total_relative < 0.15
    assert validation.verdict.word == "identified"
