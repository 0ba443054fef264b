"""The whole RP2 board file on a simulated RP2040, with the configuration of docs/boards.md; its ADC driver alone."""

import json
import struct
import sys
from pathlib import Path
from typing import Any
import pytest
from firmware.boards.tests.simulated_rp2040 import WATCHDOG, Chip
from firmware.boards.tests.test_board_files import examples
from firmware.boards.tests.simulated_rp2040 import CLOCK_HZ
from hil_tests.virtual_bench.dynamixel import Dynamixel
from hil_tests.virtual_bench.smart_drive import Present

ENABLE, PWM, DIRECTION, SYNC, A = 22, 16, 17, 14, 6
UART1_DIVISOR = 0x40038024
LEGS = {"kind": "half_bridges", "high": [8, 10], "dead_time_ns": 500, "frequency_Hz": 20000,
        "loop": {"resistance_ohm": 0.8, "inductance_mH": 0.9, "supply_V": 24}}  # fmt: skip

TICK = CLOCK_HZ // 1000
PINS = {"current": 27, "torque": 26, "supply": 29, "temperature": 28}
ROLES = list(PINS)


def start(rp2040: tuple[Chip, Any], folder: Path, **changes: Any) -> Any:
    """A board with the example's configuration, but for an absolute encoder; its current sensor reads mid-scale."""
    chip, load = rp2040
    config = examples()["rp2"] | changes
    del config["link_encoder"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    load("configuration").FILE = str(folder / "config.json")
    load("current_sense").BLOCKS = 4  # simulating 64 ms takes seconds
    chip.values = {0: 2048, 1: 1000, 2: 3000}
    return load("board").Board()


def tick(board: Any, enable: int, current_mA: int) -> list[int]:
    """Wait for a tick and put out what it would have computed; the Hal's inputs."""
    board.wait_tick()
    struct.pack_into("<3i", board.outputs, 0, 0, enable, current_mA)
    board.apply()
    return list(struct.unpack_from("<8i32H4iI", board.inputs))


def test_it_boots_off_and_ticks(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    chip, board = rp2040[0], start(rp2040, tmp_path)
    assert chip.log[0] == (ENABLE, 0)
    assert (ENABLE, 1) not in chip.log
    assert board.facts["current.zero"] == 0
    assert board.facts["encoder.capture_clock"] == 6_250_000
    assert (board.reset_cause, board.encoder_source, board.sync_input) == (3, 2, True)
    first = tick(board, 0, 0)
    chip.pins((A, 0))  # the pads pull up: from A 1, B 1 that is forward
    chip.interrupts[SYNC](None)
    second = tick(board, 0, 0)
    assert second[0] - first[0] == 1
    assert second[1] - first[1] == 1000
    assert (second[4], second[2]) == (1, 1)
    assert first[1] <= second[3] <= second[1]
    assert second[8:24] == [2048] * 16
    assert second[24:40] == [1000] * 16
    assert second[6] == 3000


def test_the_pin_that_a_chips_erratum_lets_go_of_is_refused_as_enable(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"pins\.enable is 15, .* \(erratum RP2040-E5\); take another pin"):
        start(rp2040, tmp_path, pins={"enable": 15, "sync": SYNC})


@pytest.mark.parametrize(
    ("drive", "what"),
    [
        ({"frequency_Hz": 20500}, "20500: the 16 samples of the current span 1000 us, 20.50 periods of the PWM"),
        ({"frequency_Hz": 32000}, "span 1000 us, 32 periods of the PWM, so all fall on one point of its ripple"),
    ],
)
@pytest.mark.parametrize("kind", ["pwm_direction", "half_bridges"])
def test_a_pwm_whose_ripple_would_alias_into_the_current_is_refused(
    rp2040: tuple[Chip, Any], tmp_path: Path, kind: str, drive: dict[str, int], what: str
) -> None:
    with pytest.raises(Exception, match=what):
        start(rp2040, tmp_path, drive={**LEGS, "pwm": PWM, "direction": DIRECTION, "kind": kind, **drive})


ANALOG = {"kind": "analog", "pwm": 16, "full_current_mA": 5000}
PARTNER = {
    "node": 2, "pins": {"enable": 3}, "motor_encoder": {"kind": "quadrature", "a": 8}, "analog": {"current": 29},
    "drive": {"kind": "pwm_direction", "pwm": 4, "direction": 5},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"drive": ANALOG, "partner": PARTNER}, "with a partner both motors need .* drive.kind pwm_direction or half_"),
        ({"partner": {**PARTNER, "analog": {"current": 26}}}, "analog pins are .* and .*; they must differ"),
        ({"partner": {**PARTNER, "pins": {"enable": 15}}}, r"erratum RP2040-E5"),
        ({"partner": {**PARTNER, "drive": ANALOG}}, r"partner: .*config.json: drive.kind is 'analog'"),
    ],
)
def test_a_second_motor_that_cannot_be_is_refused(
    rp2040: tuple[Chip, Any], tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    with pytest.raises(Exception, match=what):
        start(rp2040, tmp_path, **changes)


@pytest.mark.parametrize(("outside", "refused"), [(None, True), (0, False)], ids=["nothing", "a resistor"])
def test_an_rp2350_takes_no_sync_line_that_nothing_outside_holds_low(
    rp2040: tuple[Chip, Any], outside: int | None, refused: bool
) -> None:
    """An RP2040 does: its own pull-down holds."""
    chip, load = rp2040
    board = load("board")
    if outside is not None:
        chip.outside[SYNC] = outside
    board.held_low(SYNC)
    assert (SYNC, "read") not in chip.log
    board.rp2_chip.IS_RP2350 = True
    if refused:
        with pytest.raises(
            Exception, match=r"pins\.sync 14: .* \(erratum RP2350-E9\); put 4\.7 kOhm from it to ground"
        ):
            board.held_low(SYNC)
    else:
        assert board.held_low(SYNC).pull == board.Pin.PULL_DOWN


def test_a_chip_that_has_its_own_heartbeat_takes_no_charge_pump(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    with pytest.raises(Exception, match="charge_pump: ENABLE of an RP2 is a heartbeat by itself; wire it directly"):
        start(rp2040, tmp_path, charge_pump=True)


def test_the_drive_follows_the_current_and_ends_off(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    chip, board = rp2040[0], start(rp2040, tmp_path)
    chip.log.clear()
    tick(board, 1, 500)
    duty = chip.log[-2]
    assert [event for event in chip.log if event[0] == ENABLE] == [(ENABLE, 1)]
    assert chip.log[-1] == (ENABLE, 1)
    assert duty[0] == PWM
    assert duty[1] > 0
    assert (DIRECTION, 1) in chip.log
    board.disable()
    assert chip.log[-2:] == [(ENABLE, 0), (PWM, 0)]


def test_half_bridges_keep_their_dead_time(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    """Within a leg the low switch's level lies above the high one's, whatever the duty; off is both open."""
    chip, board = rp2040[0], start(rp2040, tmp_path, drive=LEGS)
    frequency = [event for event in chip.log if event[0] in (8, 9, 10, 11) and len(event) == 4]
    assert frequency == [(8, 40000, 0, False), (9, 40000, 65535, True), (10, 40000, 0, False), (11, 40000, 65535, True)]
    dead = 500e-9 * 40000 * 65535  # of a half period, in duty_u16
    for current in (0, 300, -300, 5000, -5000, 32000, -32000):
        board.drive.off()  # the integral of the current before would still hold its direction
        for _ in range(3):
            chip.log.clear()
            tick(board, 1, current)
            level = dict(event for event in chip.log if event[0] in (8, 9, 10, 11))
            assert level[9] - level[8] == level[11] - level[10] == pytest.approx(dead, abs=1)
            assert all(0 <= value <= 65535 for value in level.values())
            difference = level[8] - level[10]
            assert difference * current >= 0
            assert abs(level[8] + level[9] + level[10] + level[11] - 4 * 32768) < 8  # the legs mirror each other
    chip.log.clear()
    board.disable()
    assert chip.log == [(ENABLE, 0), (8, 0), (9, 65535), (10, 0), (11, 65535)]


def test_half_bridges_keep_their_dead_time_between_two_writes(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    """A slice may take over what was written for one switch before the other's comes: that, too, must leave the gap."""
    chip, board = rp2040[0], start(rp2040, tmp_path, drive=LEGS)
    dead = 500e-9 * 40000 * 65535
    level = {8: 0, 9: 65535, 10: 0, 11: 65535}
    for enable, current in ((1, 32000), (1, -32000), (1, 32000), (0, 0), (1, -32000), (1, -30000), (1, 0), (0, 0)):
        chip.log.clear()
        tick(board, enable, current)
        for pin, value in [event for event in chip.log if event[0] in level]:
            level[pin] = value
            assert min(level[9] - level[8], level[11] - level[10]) >= dead - 1


def test_the_watchdog_is_stopped_when_the_program_ends(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    chip, board = rp2040[0], start(rp2040, tmp_path)
    board.watchdog(500)
    assert chip.read(WATCHDOG) & 1 << 30
    board.flush()
    assert not chip.read(WATCHDOG) & 1 << 30
    assert chip.log[-2:] == [("flushed",), ("console", "Uart")]  # over which the host now flashes it


def test_what_was_said_while_the_board_started_is_not_typed(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    """The first byte of a frame is its COBS code, and 4 is the Ctrl-D that resets the interpreter."""
    board = start(rp2040, tmp_path)
    board.line.uart.unread = b"\x04\x01C\x01\x00"
    board.flush()
    assert board.line.uart.unread == b""


def test_a_line_that_other_boards_share_is_no_console(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    chip, board = rp2040[0], start(rp2040, tmp_path, facts={"board.shared_line": 1})
    board.flush()
    assert chip.log[-1] == ("flushed",)


def test_an_encoder_fault_is_an_exception_of_the_tick(rp2040: tuple[Chip, Any], tmp_path: Path) -> None:
    chip, board = rp2040[0], start(rp2040, tmp_path)
    tick(board, 0, 0)
    chip.pins((A, 0), (A + 1, 0))
    with pytest.raises(OSError, match="A and B changed at once"):
        board.wait_tick()
    tick(board, 0, 0)


def block(chip: Chip, pin: int) -> list[int]:
    """The newest 16 values of an input among whole rounds, as the chip converted them."""
    done = chip.converted[:-1] if chip.mcu.adc.busy else chip.converted
    whole = len(done) - len(done) % len({channel for channel, _ in done})
    return [value for channel, value in done[:whole] if channel == pin - 26][-16:]


@pytest.mark.parametrize("roles", [ROLES[:1], ROLES[:2], ROLES[:3], ROLES, ["current", "supply"]])
def test_each_block_holds_the_newest_samples_of_its_input(rp2040: tuple[Chip, Any], roles: list[str]) -> None:
    chip, load = rp2040
    load("rp2_ring").TRANSFERS = 256  # a multiple of every ring; changes over several times in this test
    adc = load("rp2_adc").RoundRobinAdc([{role: PINS[role] for role in roles}], 1000)
    assert adc.rate_Hz == 16000
    for cycles in (2 * TICK, TICK, TICK, 3 * TICK + 4000, TICK - 1111, TICK, 5 * TICK):
        chip.run(cycles)
        inputs = bytearray(116)
        adc.measure(inputs)
        words = struct.unpack_from("<8i32H", inputs)
        assert list(words[8:24]) == block(chip, PINS["current"])
        assert list(words[24:40]) == (block(chip, PINS["torque"]) if "torque" in roles else [0] * 16)
        assert words[6] == (block(chip, PINS["supply"])[-1] if "supply" in roles else 0)
        assert words[7] == (block(chip, PINS["temperature"])[-1] if "temperature" in roles else 0)


def test_a_tick_holds_sixteen_rounds(rp2040: tuple[Chip, Any]) -> None:
    """Three inputs take a fourth along."""
    chip, load = rp2040
    load("rp2_adc").RoundRobinAdc([{role: PINS[role] for role in ROLES[:3]}], 500)
    chip.run(TICK)
    before = len(chip.converted)
    chip.run(10 * TICK)
    assert len(chip.converted) - before == pytest.approx(10 * 2 * 64, abs=1)


def test_a_lost_sample_is_a_fault(rp2040: tuple[Chip, Any]) -> None:
    chip, load = rp2040
    adc = load("rp2_adc").RoundRobinAdc([PINS], 1000)
    chip.run(TICK)
    adc.measure(bytearray(116))
    chip.mcu.dma.channels[0].abort()
    chip.run(TICK)
    for _ in range(3):  # it stays one until a reset, but a board that fails in every tick could not be talked to
        with pytest.raises(load("errors").SensorFault, match="a sample was lost"):
            adc.measure(bytearray(116))
        adc.measure(bytearray(116))


@pytest.mark.parametrize(
    ("pins", "what"),
    [
        ({"torque": 26}, "current it must have"),
        ({"current": 26, "force": 27}, "force"),
        ({"current": 25}, "26 to 29"),
        ({"current": 26, "torque": 26}, "must differ"),
    ],
)
def test_pins_that_cannot_be(rp2040: tuple[Chip, Any], pins: dict[str, int], what: str) -> None:
    chip, load = rp2040
    with pytest.raises(load("errors").WiringError, match=what):
        load("rp2_adc").RoundRobinAdc([pins], 1000)


@pytest.mark.parametrize("de", [None, 2])
def test_a_servo_is_motor_and_sensors(
    rp2040: tuple[Chip, Any], tmp_path: Path, de: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a bus of its own, with or without a pin that turns the transceiver round; no ADC and no PWM is touched."""
    servo = Dynamixel(5)
    chip, load = rp2040
    machine = sys.modules["machine"]

    class Bus(machine.UART):
        def __init__(self, number: int, **settings: Any) -> None:
            super().__init__(number, **settings)
            chip.write(UART1_DIVISOR, 7)  # and 52 64ths of the 125 MHz, for 1 Mbaud
            chip.write(UART1_DIVISOR + 4, 52)

        def write(self, data: Any, count: int) -> None:
            self.unread += servo.hear(bytes(data[:count]))

        def readinto(self, into: Any, most: int) -> int:
            data = self.read(most)
            into[: len(data)] = data
            return len(data)

    monkeypatch.setattr(machine, "UART", Bus)
    servo.see(Present(0.0, 1234, 12.0, 40.0))
    config = {
        "node": 1, "pins": {"enable": ENABLE}, "line": examples()["rp2"]["line"],
        "drive": {"kind": "dynamixel", "id": 5, "uart": 1, "tx": 4, "rx": 5, "de": de},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    load("configuration").FILE = str(tmp_path / "config.json")
    load("smart_drive")
    load("dynamixel")
    load("rp2_driver_enable")
    board = load("board").Board()
    assert ("uart", 1, 1_000_000) in chip.log
    assert board.facts["current.scale"] == 168_125
    tick(board, 0, 0)
    assert not servo.torque_is_on
    tick(board, 1, 0)
    inputs = tick(board, 1, 538)
    assert inputs[4:8] == [1234, 1234, 120, 40]
    assert servo.torque_is_on
    assert servo.goal_current == pytest.approx(0.538)
    board.disable()
    assert not servo.torque_is_on
