"""The board files with the configurations of docs/boards.md: their parts fit together, ENABLE is low first of all."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from firmware.boards.tests.conftest import ROOT
from firmware.boards.tests.interpreter import run

PROGRAM = """
import sys, json, os, struct
sys.path.append(tests)
from fake_port import log, one_pulse, outputs, tell, main_output
import drivers.configuration
drivers.configuration.FILE = folder + "/config.json"
from drivers.errors import WiringError
try:
    board = __import__(port).Board()
    built = len(log)
    beats = [one_pulse.pass_us(2)[-1]]
    inputs = []
    for _ in range(3):
        received = board.wait_tick()
        board.apply()
        inputs.append(list(struct.unpack_from("<8i32H", board.inputs)))
    disarmed = len(log)
    beats.append(one_pulse.pass_us(2)[-1])
    outputs(board, 3 if "brake" in board.config else 1, 500)
    board.watchdog(500)
    board.wait_tick()
    board.apply()
    armed = len(log)
    beats.append(one_pulse.pass_us(2)[-1])
    moe = main_output[17]
    board.disable()
    beats.append(one_pulse.pass_us(2)[-1])
    board.flush()
    spans = log[:built], log[built:disarmed], log[disarmed:armed], log[armed:]
    spans = [[tell(event) for event in span] for span in spans]
    answer = [spans, inputs, board.facts, list(board.outputs[:12]), board.room(), moe, main_output[17], beats]
except WiringError as error:
    answer = str(error)
"""


def examples() -> dict[str, dict[str, Any]]:
    """config.json of each port, as docs/boards.md gives it."""
    text = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")
    found = re.findall(r"^## [^\n]*\(`(\w+)`\)\n.*?```json\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    return {port: json.loads(example) for port, example in found}


def start(port: str, config: dict[str, Any], folder: Any) -> Any:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return run(PROGRAM, port=port, tests=str(ROOT / "firmware/boards/tests"), folder=str(folder))


def test_every_port_has_its_example() -> None:
    assert set(examples()) == {"rp2", "stm32", "esp32"}


DRIVES = {
    "esp32": [
        None,
        {"kind": "analog", "dac": 25, "full_current_mA": 5000},
        {"kind": "uart", "uart": 2, "tx": 32, "rx": 33},
    ],
    "stm32": [
        None,
        {"kind": "analog", "dac": 1, "full_current_mA": 5000},
        {"kind": "uart", "uart": 4},
        {"kind": "can", "can": 1},
        {"kind": "pwm_direction", "timer": 1, "channel": 1, "pwm": "A8", "direction": "C7",
         "loop": {"resistance_ohm": 0.8, "inductance_mH": 0.9, "supply_V": 24}},
    ],
}  # fmt: skip


@pytest.mark.parametrize(("port", "drive"), [(port, drive) for port, drives in DRIVES.items() for drive in drives])
def test_a_board_from_its_example(port: str, drive: dict[str, Any] | None, tmp_path: Any) -> None:
    config = examples()[port]
    enable = config["pins"]["enable"]
    if drive:
        config["drive"] = drive
    config.pop("heartbeat", None)  # test_stm32_heartbeat.py
    (built, disarmed, armed, ended), inputs, facts, outputs, room, moe, moe_after, _ = start(port, config, tmp_path)
    assert built[0] == [enable, 0]  # before anything else is touched
    assert [enable, 1] not in built + disarmed
    assert armed[-1] == [enable, 1]
    assert any(event[0] == "watchdog" for event in armed if isinstance(event, list))
    assert [enable, 0] in ended
    assert ended.index([enable, 0]) < ended.index("flushed") < ended.index("console")
    assert (["uart irq", "notify", 1] in ended) is (port == "esp32")  # whose interpreter does not look by itself
    assert outputs[4:] == [0] * 8
    assert [tick[0] - inputs[0][0] for tick in inputs] == [0, 1, 2]
    for tick in inputs:
        assert tick[4] == 65533  # the motor's counter
        assert tick[5] == 1234  # the link encoder
        assert tick[6] == (2050 if "supply" in config["analog"] else 0)
        assert tick[8:] == [2050] * 32
    assert facts["current.zero"] == 16 * 2050 - 32768
    assert room > 0
    voltage = config["drive"]["kind"] in ("pwm_direction", "half_bridges")
    assert facts.get("hard.missed_ticks") == (5 if voltage else None)
    if config["drive"]["kind"] == "half_bridges":
        assert moe & 0x8C00 == 0x8C00
        assert moe_after & 0x8C00 == 0x0C00
        _gates_never_float(built, [*config["drive"]["high"], *config["drive"]["low"]])


def _gates_never_float(log: list[Any], pins: list[str]) -> None:
    """Low before the timer gets them; when it does it drives them, MOE off, to idle levels of 0 (RM0090, table 94)."""
    for pin in pins:
        low, handed_over = [event for event in log if isinstance(event, list) and event[0] == pin]
        assert low == [pin, 0]
        assert handed_over[:4] == [pin, "alt", 1, 1]
        bdtr, cr2 = handed_over[4:]
        assert (bdtr & 0x8C00, cr2 & 0x7F00) == (0x0C00, 0)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"pins": {}}, "config.json: pins.enable is missing"),
        ({"node": 0}, "node is 0; it must be a number from 1 to 254"),
        ({"drive": {"kind": "stepper"}}, "drive.kind is 'stepper'; known are pwm_direction"),
        ({"motor_encoder": {"kind": "quadrature"}}, "motor_encoder.a is missing"),
        ({"analog_samples": 3}, "analog_samples is 3"),
        ({"analog_samples": 2}, "of a tick's 2000 us, more than half: take fewer samples"),
        ({"facts": {"board.tick_period": 1000}}, "of a tick's 1000 us, more than half"),
        ({"link_encoder": {"kind": "as5047p", "spi": 1}}, "link_encoder.select is missing"),
        (
            {"pins": {"enable": 4, "sync": 21, "stop": 21}},
            "pins.stop is 21, which another of pins has; give it its own",
        ),
    ],
)
def test_a_configuration_that_cannot_be(change: dict[str, Any], what: str, tmp_path: Any) -> None:
    assert what in start("esp32", examples()["esp32"] | change, tmp_path)


@pytest.mark.parametrize("port", ["stm32", "esp32"])
def test_each_tick_reads_the_pins_that_keep_the_motor_off(port: str, tmp_path: Any) -> None:
    config = examples()[port]
    config.pop("heartbeat", None)
    config["pins"] |= {"stop": "s", "fault": "f", "limit_high": "h"}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    program = (
        PROGRAM.split("    built = ")[0]
        + """
    answer = []
    for held in ((), ("s",), ("f",), ("h",), ("s", "f", "h"), ()):
        fake_port.low.clear()
        fake_port.low.update(held)
        board.wait_tick()
        answer.append(struct.unpack_from("<i", board.inputs, 116)[0])
except WiringError as error:
    answer = str(error)
"""
    )
    found = run(
        program.replace("from fake_port", "import fake_port\nfrom fake_port"),
        port=port,
        tests=str(ROOT / "firmware/boards/tests"),
        folder=str(tmp_path),
    )
    assert found == [0, 1, 2, 8, 11, 0]


@pytest.mark.parametrize("kind", ["pwm_direction", "half_bridges"])
def test_a_burst_that_is_no_whole_periods_of_the_pwm_is_refused(kind: str, tmp_path: Any) -> None:
    """100 kHz is what the burst had until its mean was looked at: 3.2 periods of 20 kHz."""
    config = examples()["stm32"] | {"analog_rate_Hz": 100000}
    config["drive"] |= {"kind": kind, "pwm": "A8", "channel": 1, "direction": "C7"}
    found = start("stm32", config, tmp_path)
    assert "drive.frequency_Hz 20000: the 16 samples of the current span 160 us, 3.20 periods of the PWM" in found
    assert "take a multiple of 6250 Hz" in found


@pytest.mark.parametrize(("given", "taken"), [(1000, 5), (2, 2)])
def test_a_voltage_may_stand_for_five_missed_ticks_whatever_the_configuration_says(
    given: int, taken: int, tmp_path: Any
) -> None:
    config = examples()["stm32"]
    config["facts"]["hard.missed_ticks"] = given
    assert start("stm32", config, tmp_path)[2]["hard.missed_ticks"] == taken


def test_no_configuration_at_all(tmp_path: Any) -> None:
    said = run(PROGRAM, port="esp32", tests=str(ROOT / "firmware/boards/tests"), folder=str(tmp_path))
    assert "cannot be read" in said
    assert "docs/boards.md" in said


BRAKES = {"esp32": 25, "stm32": "B1"}  # pins
TIMES = {"engage_ms": 40, "release_ms": 60}


@pytest.mark.parametrize("port", sorted(BRAKES))
@pytest.mark.parametrize("level", [1, 0])
def test_a_brake_is_engaged_but_while_the_tick_opens_it(port: str, level: int, tmp_path: Any) -> None:
    config, pin = examples()[port], BRAKES[port]
    config["pins"]["brake"], config["brake"] = pin, {**TIMES, "open_level": level}
    spans, _, facts, *_ = start(port, config, tmp_path)
    levels = [[event[1] for event in span if event[0] == pin] for span in spans]
    closed = 1 - level
    assert [set(each) for each in levels] == [{closed}, {closed}, {level}, {closed}]
    assert (facts["brake.engage_time"], facts["brake.release_time"]) == (40, 60)


@pytest.mark.parametrize(
    ("pins", "brake", "words"),
    [({"brake": 25}, None, "pins.brake is given, but no brake with engage_ms and release_ms"),
     ({}, TIMES, "pins.brake is missing"),
     ({"brake": 25}, {"engage_ms": 40}, "brake.release_ms is None; it must be a number from 1 to 2000"),
     ({"brake": 25}, {**TIMES, "engage_ms": 0.04}, "brake.engage_ms is 0.04; it must be a number from 1 to 2000"),
     ({"brake": 25}, {**TIMES, "open_level": 2}, "brake.open_level is 2; it must be a number from 0 to 1"),
     ({"brake": 4}, TIMES, "pins.brake is 4, which another of pins has; give it its own")],
)  # fmt: skip
def test_a_brake_that_cannot_be_is_refused(pins: Any, brake: Any, words: str, tmp_path: Any) -> None:
    config = examples()["esp32"]
    config["pins"].update(pins)
    config.update({} if brake is None else {"brake": brake})
    assert words in start("esp32", config, tmp_path)


@pytest.mark.parametrize("port", sorted(BRAKES))
def test_a_port_that_cannot_let_go_of_a_line_in_time_says_so(port: str, tmp_path: Any) -> None:
    config = examples()[port]
    config["line"]["de"] = BRAKES[port]
    assert "line.de: only the RP2 boards" in start(port, config, tmp_path)


@pytest.mark.parametrize(("name", "bit", "pulled_down"), [("stop", 1, 1), ("fault", 2, 0)])
def test_an_stm32_s_break_input_is_told_in_the_tick_after_it_was_low(
    name: str, bit: int, pulled_down: int, tmp_path: Any
) -> None:
    """Registers alone: BKE on, active low, no automatic restart (BDTR); BIF of SR, cleared by a 0."""
    config = examples()["stm32"]
    config["pins"][name] = "B12"
    config["drive"] |= {"break": name, "break_function": 1}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    program = (
        PROGRAM.split("    built = ")[0]
        + """
    wired = [tell(event) for event in log if event[0] == "B12"][-1][:4]
    answer = [main_output[17] & 0x7000, main_output[17] & 0x0C00, wired]
    for broken in (0, 0x80, 0):
        main_output[4] = 0x1F | broken
        board.wait_tick()
        answer += [struct.unpack_from("<i", board.inputs, 116)[0], main_output[4] & 0x80]
except WiringError as error:
    answer = str(error)
""".replace("event[0] == ", "isinstance(event, tuple) and event[0] == ")
    )
    found = run(program, port="stm32", tests=str(ROOT / "firmware/boards/tests"), folder=str(tmp_path))
    assert found == [0x1000, 0x0C00, ["B12", "alt", 1, pulled_down], 0, 0, bit, 0, 0, 0]


def test_a_break_input_without_its_pin_is_refused(tmp_path: Any) -> None:
    config = examples()["stm32"]
    config["drive"] |= {"break": "stop", "break_function": 1}
    assert "pins.stop is missing" in start("stm32", config, tmp_path)
    config["drive"] = {"kind": "uart", "uart": 4, "break": "stop"}
    assert "drive.break is of half_bridges, drive.kind is uart" in start("stm32", config, tmp_path)
