"""Sensors of a lab at the chip's pins, as their data sheets have them: what a program reads, and what it does wrongly.

A device notes whatever its data sheet does not allow: clocks that are too fast, selects that are too short, readings of
what is not ready (`Rp2040Board.violations`).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil_tests.test_rp2040_board import FACTS, POWER, Chip, StartChip, need_rp2040
from hil_tests.test_rp2040_board import start_chip as start_chip  # a fixture
from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.rp2040.board import Rp2040Board, find_rp2040
from hil_tests.virtual_bench.rp2040.wiring import board_config, read_wiring
from jointbench.bench.flash import Image, build_image
from jointwire import BY_NAME, Frame, FrameReader, MessageType, decode_samples, encode_frame

SPI0 = {"spi": 0, "sck": 18, "mosi": 19, "miso": 20, "select": 21}
SPI1 = {"spi": 1, "sck": 10, "mosi": 11, "miso": 12, "select": 13}
DRIVERS = (
    "absolute_encoder", "as5047p", "as5048", "spi_bus", "configuration", "failures", "errors", "rp2_chip",
    "hx711", "rp2_quadrature", "rp2_quadrature_program", "rp2_ring", "rp2_index", "index_pulse",
)  # fmt: skip
READER = """
import json
with open("config.json") as file:
    config = json.load(file)
from drivers import hx711, rp2_chip
from drivers.absolute_encoder import absolute_encoder
from drivers.errors import SensorFault
from drivers.rp2_quadrature import Quadrature
def registers(pin, number):
    bit = 1 << number
    return rp2_chip.PIN_SET, bit, rp2_chip.PIN_CLEAR, bit, rp2_chip.PIN_LOOK, bit
def told(function, *args):
    try:
        return function(*args)
    except SensorFault as error:
        return str(error)
link = absolute_encoder(config, "link_encoder")
bridge = hx711.Hx711(config, "torque", "torque", registers, machine.freq())
motor = Quadrature(6, 0, bytearray(116))
motor.watch_index(config, config["facts"], 0)
other = Quadrature(10, 0, bytearray(116), 1)
other.watch_index(config["partner"], config["partner"]["facts"], 0)
def torque():
    while True:
        while not bridge.ready():
            pass
        start = time.ticks_us()
        value = bridge.read()
        if bridge.fresh:
            return value, time.ticks_diff(time.ticks_us(), start)
say("ready")
while True:
    if line.any():
        letter = line.read(1)
        if letter == b"a":
            say(link.read())
        if letter == b"t":
            say(*torque())
        if letter == b"m":
            say(told(motor.read))
        if letter == b"o":
            say(told(other.read))
        if letter == b"f":  # faster than either sensor takes
            fast = machine.SPI(0, 20000000, polarity=0, phase=1, sck=Pin(18), mosi=Pin(19), miso=Pin(20))
            link._spi = fast
            say(told(link.read))
        if letter == b"e":  # what is not there yet
            while not bridge.ready():
                pass
            bridge.read()
            say(hx711.clock_out(bridge._pins, 25))
        if letter == b"s":  # a pulse too long, as by an interrupt
            Pin(2).value(1)
            time.sleep_us(70)
            Pin(2).value(0)
            say(bridge.ready())
"""


def ask(chip: Chip, letter: str, **pins: Any) -> list[str]:
    """What the program says to a letter."""
    chip.said = b""
    chip.run(line=[[chip.time_ns, letter.encode().hex()]], **pins)
    return chip.until("\n")[-1].split()


@pytest.mark.slow
def test_sensors_are_read_as_their_data_sheets_ask_and_what_breaks_that_is_caught(start_chip: StartChip) -> None:
    """AS5048, HX711 at gain 64 and 80 a second, quadrature of two motors with index pulses."""
    wiring = {
        "link_encoder": {"kind": "as5048", **SPI0},
        "motor_encoder": {"kind": "quadrature", "a": 6, "pio": 0, "index": 8, "index_width": 4},
        "analog": {"current": 26},
        "torque": {"kind": "hx711", "clock": 2, "data": 3, "rate": 80, "gain": 64},
    }
    partner = {
        "pins": {"enable": 13},
        "motor_encoder": {"kind": "quadrature", "a": 10, "index": 12},
        "facts": {"encoder.motor_counts": 4096},
    }
    chip = start_chip(READER, wiring, DRIVERS, {"facts": {"encoder.motor_counts": 16384}, "partner": partner})
    chip.inputs |= {"bridges": [0], "slip": 0, "partner": {"count": 0.5}}
    chip.run(count=0.5)
    chip.until("ready")

    for link in (0, 1, 5461, 8191, 16383):
        assert ask(chip, "a", link=link) == [str(link)]
    for bridge in (-8_000_000, -77, 0, 1, 4_194_303, 8_388_607):
        for _ in range(20):  # a conversion has begun with the value before
            chip.run(bridges=[bridge])
        value, took_us = map(int, ask(chip, "t"))
        assert value in (bridge // 2, round(bridge / 2), -(-bridge // 2))  # gain 64, of what is told for 128
        assert took_us < 150  # the time for which the interrupts are off is within

    position, turn = 0.5, 16384
    for way in (3 * turn, -2 * turn, 2 * turn):  # 8 counts a millisecond past its index pulses, both ways
        for _ in range(12):
            position += way / 12
            chip.run(count=position)
        assert ask(chip, "m") == [str(int(position) % 65536)]
    for count in range(1, 30):  # three turns and a half of the other motor, which this one knows nothing of
        chip.run(partner={"count": 500.5 * count})
    assert ask(chip, "o") == [str(int(500.5 * 29))]
    assert ask(chip, "m") == [str(int(position) % 65536)]
    assert chip.board.violations == []
    for _ in range(12):  # 30 edges of A and B went past
        position += turn / 8
        chip.run(count=position, slip=30)
    said = " ".join(ask(chip, "m"))
    assert said.startswith("motor encoder: index pulse ")
    assert "counts from where it belongs" in said
    assert ask(chip, "o") == [str(int(500.5 * 29))]
    for count in range(30, 50):
        chip.run(partner={"count": 500.5 * count, "slip": 30})
    assert " ".join(ask(chip, "o")).startswith("motor encoder: index pulse ")
    assert ask(chip, "m") == [str(int(position) % 65536)]

    assert ask(chip, "e") == ["-1"]  # DOUT was high all the time
    assert chip.board.violations[0] == "HX711 at 3: 28 pulses, 27 it knows"
    chip.run(20)  # another conversion
    chip.board.violations.clear()
    assert ask(chip, "s") == ["False"]  # it sleeps, and starts anew
    assert chip.board.violations == []  # 70 us of sleep are no fault of the converter's
    ask(chip, "f", link=1000)
    assert chip.board.violations[0] == "AS5048: clocked at 12000000 Hz, 10000000 it takes"


PROGRAM = """
from board import Board
board = Board()
board.disable()
from jointboard import app
app.run(board)
"""


@pytest.fixture(scope="module")
def image() -> Image:
    """The firmware, compiled."""
    need_rp2040()
    return build_image("rp2", architecture="armv6m")


@pytest.fixture
def board(tmp_path: Path, image: Image) -> Iterator[Any]:
    """A chip with the whole firmware, but for its loader, and a configuration."""
    boards: list[Rp2040Board] = []

    def start(config: dict[str, Any]) -> Chip:
        files = {**image.files, "main.py": PROGRAM.encode(), "config.json": json.dumps(config).encode()}
        boards.append(Rp2040Board(find_rp2040(), tmp_path / f"board{len(boards)}", files, config))
        chip = Chip(boards[-1])
        chip.inputs = {"analog": {"current": [2048] * 16}, "count": 0.5, "link": 0, "bridges": [0] * 4}
        return chip

    yield start
    for each in boards:
        each.close()


def stream(chip: Chip, ticks: int, node: int) -> list[Frame]:
    """Have it stream from its first answer on; its frames."""
    ping = encode_frame(MessageType.PING, node, 0, nonce=7)
    for _ in range(30):
        chip.run(100, line=[[chip.time_ns, ping.hex()]])
        if chip.said:
            break
    chip.run(100)  # until it has answered all those of before it had started
    write = encode_frame(MessageType.WRITE, node, 1, register=BY_NAME["stream.always"].id, value=1)
    chip.run(20, line=[[chip.time_ns, write.hex()]])
    chip.run(ticks)
    return [chunk.content for chunk in FrameReader().feed(chip.said) if isinstance(chunk.content, Frame)]


def column(frames: list[Frame], name: str) -> np.ndarray:
    """Values of a channel in all its blocks."""
    blocks = [decode_samples(frame) for frame in frames if frame.type is MessageType.DATA and not frame.body.late_us]
    return np.concatenate([block.columns[name] for block in blocks])


def tick_numbers(frames: list[Frame]) -> np.ndarray:
    """Of the samples that `column` gives."""
    bodies = [frame.body for frame in frames if frame.type is MessageType.DATA and not frame.body.late_us]
    return np.concatenate([np.arange(body.first_tick, body.first_tick + body.count) for body in bodies])


@pytest.mark.slow
def test_a_foots_four_cells_are_streamed_with_their_age(board: Any) -> None:
    """HX711s at 80 a second with oscillators of their own: the plant's forces, and how long each was held."""
    cells = [{"clock": 2 * k + 2, "data": 2 * k + 3} for k in range(4)]
    config = {
        "node": 13, "uid": "0123456789abcdef", "pins": {"enable": 22},
        "line": {"kind": "uart", "uart": 0, "tx": 0, "rx": 1, "baud": 921600},
        "foot": {"kind": "hx711", "rate": 80, "shift": 8, "cells": cells}, "facts": {"force.scale": 10_000},
    }  # fmt: skip
    chip = board(config)
    forces = [312.5, 148.25, 0.5, -20.0]  # [N] at 10 mN a count
    chip.inputs["bridges"] = [100 * force * 256 for force in forces]
    frames = stream(chip, 300, 13)
    assert chip.board.violations == []
    assert {frame.body.channels for frame in frames if frame.type is MessageType.DATA} == {0x4780}
    for corner, force in enumerate(forces, start=1):
        assert set(column(frames, f"foot_force_{corner}").tolist()) == {round(100 * force)}
    age = column(frames, "force_age")
    fresh = np.flatnonzero(age == 0)
    assert len(fresh) > 10
    np.testing.assert_array_equal(np.diff(age)[np.diff(age) != 1] < 0, True)  # it counts up until there is a new one
    # The slowest oscillator is 3 % slow: 12.9 ms a conversion, in steps of the four ticks in which each is looked at.
    assert np.diff(fresh).mean() == pytest.approx(12.9, abs=0.6)
    assert np.diff(fresh)[1:].min() >= 9  # the first conversion had been waiting for the board to look
    assert np.diff(fresh).max() <= 17


@pytest.mark.slow
def test_a_torque_of_24_bits_and_a_thermistor_are_streamed(board: Any, tmp_path: Path) -> None:
    """ADS1220 at 330 a second, an MT6701 at the link, and an NTC at 61.2 degC, hotter than its divider is linear."""
    path = tmp_path / "wiring.json"
    ntc = {"ohm_25": 10000, "beta_K": 3950, "resistor_ohm": 10000, "side": "low"}
    path.write_text(json.dumps({
        "torque": {"kind": "ads1220", **SPI1, "ready": 15, "rate": 330, "gain": 64}, "ntc": ntc,
        "link_encoder": {"kind": "mt6701", **SPI0},
    }))  # fmt: skip
    facts = {**FACTS, "torque.scale": 1000, "current.scale": 251770, "board.channels": 0x87F}
    config = board_config({"node": 1, "uid": "0" * 16, "facts": facts}, read_wiring(path), POWER, 921600)
    assert "torque" not in config["analog"]
    chip = board(config)
    kelvin = 273.15 + 61.2
    ohm = 10000 * np.exp(3950 * (1 / kelvin - 1 / 298.15))
    torque = -12.345  # [N·m] at 1 mN·m a count
    chip.inputs |= {
        "analog": {"current": [2048] * 16, "supply": [3000], "temperature": [round(4096 * ohm / (ohm + 10000))]},
        "bridges": [1000 * torque * 256 * 128 / 64], "link": 9876,
    }  # fmt: skip
    stream(chip, 1, 1)
    write = encode_frame(MessageType.WRITE, 1, 3, register=BY_NAME["stream.channels"].id, value=0x3064)
    chip.said = b""
    chip.run(200, line=[[chip.time_ns, write.hex()]])
    frames = [chunk.content for chunk in FrameReader().feed(chip.said) if isinstance(chunk.content, Frame)]
    frames = [frame for frame in frames if frame.type is MessageType.DATA and frame.body.channels == 0x3064]
    assert chip.board.violations == []
    assert set(column(frames, "bridge_torque").tolist()) == {round(1000 * torque)}
    age, ticks = column(frames, "torque_age"), tick_numbers(frames)
    new = ticks[age == 0]  # in ticks, of which the drivers in Python miss some
    assert (new[-1] - new[0]) / (len(new) - 1) == pytest.approx(1000 / (330 * 1.02), abs=0.1)
    assert len(ticks) > 0.9 * (ticks[-1] - ticks[0])
    temperature = column(frames, "temperature")
    assert len(temperature) > 0
    np.testing.assert_allclose(0.01 * temperature, 61.2, atol=0.06)  # a count of the converter is 0.04 K there
    assert set(column(frames, "link_position").tolist()) == {9876 - config["facts"]["encoder.link_zero"]}


def test_an_absolute_encoder_at_the_motor_must_have_the_plants_counts(tmp_path: Path) -> None:
    path = tmp_path / "wiring.json"
    path.write_text(json.dumps({"motor_encoder": {"kind": "mt6701", **SPI1}}))
    with pytest.raises(BenchFileError, match="'mt6701' has 16384 counts a turn, the plant's motor encoder 4096"):
        board_config({"node": 1, "facts": FACTS}, read_wiring(path), POWER, 921600)


def test_a_torque_sensors_own_converter_takes_the_place_of_the_analogue_one(tmp_path: Path) -> None:
    path = tmp_path / "wiring.json"
    path.write_text(json.dumps({"torque": {"kind": "hx711", "clock": 2, "data": 3}}))
    assert read_wiring(path)["analog"] == {"current": 26, "supply": 28, "temperature": 29}
    path.write_text(json.dumps({"torque": {"kind": "ad7190"}}))
    with pytest.raises(BenchFileError, match=r"torque\.kind = 'ad7190' is not emulated; there are hx711, ads1220"):
        read_wiring(path)
