"""Encoder and current-sensor drivers on MicroPython; the bus is an object that keeps the sensor's registers.

The bus itself, its pins and its timing are what no machine here can run.
"""

import math
import random

import pytest

from firmware.boards.tests.interpreter import run

AS5047P = '''
from drivers.as5047p import As5047p
from drivers.errors import SensorFault

class Sensor:
    """AS5047P as its data sheet describes it: answers come a frame later; parity both ways; errors latch until read."""
    def __init__(self):
        self.registers = {0x3FFF: 0, 0x3FFC: 0x0180, 0x0001: 0}
        self.next = 0
        self.selected = False
        self.frames = 0
        self.damage = lambda word: word
    def value(self, level):
        self.selected = not level
    def write_readinto(self, sent, into):
        assert self.selected and len(sent) == len(into) == 2
        self.frames += 1
        word = self.damage(self.next)
        into[0], into[1] = word >> 8, word & 255
        request = sent[0] << 8 | sent[1]
        address = request & 0x3FFF
        if bin(request).count("1") & 1:
            self.registers[1] |= 4
        elif not request & 0x4000:
            raise AssertionError("the driver must not write")
        answer = 0 if address == 0 else self.registers[address]
        error = 0x4000 if self.registers[1] and address != 1 else 0
        if address == 1:
            self.registers[1] = 0
        answer |= error
        self.next = answer | 0x8000 if bin(answer).count("1") & 1 else answer

def tell(function, *args):
    try:
        return function(*args)
    except SensorFault as error:
        return str(error)
'''


def test_as5047p_reads_every_angle() -> None:
    """In one reading, not a frame late, whatever the parity."""
    program = (
        AS5047P
        + """
sensor = Sensor()
encoder = As5047p(sensor, sensor)
wrong = []
for angle in range(16384):
    sensor.registers[0x3FFF] = angle
    if encoder.read() != angle:
        wrong.append(angle)
answer = [wrong[:5], encoder.failures.total, encoder.COUNTS]
"""
    )
    assert run(program) == [[], 0, 16384]


def test_as5047p_keeps_the_last_good_angle_and_gives_up_after_three() -> None:
    program = (
        AS5047P
        + """
sensor = Sensor()
encoder = As5047p(sensor, sensor)
sensor.registers[0x3FFF] = 4000
answer = [encoder.read()]
sensor.registers[0x3FFF] = 5000
good = sensor.damage
sensor.damage = lambda word: word ^ 0x0010
answer += [encoder.read(), encoder.read(), tell(encoder.read), encoder.read()]
sensor.damage = good
answer += [encoder.read(), encoder.failures.total]
"""
    )
    first, held, held_again, gone, after, again, total = run(program)
    assert (first, held, held_again, after, again, total) == (4000, 4000, 4000, 4000, 5000, 4)
    assert gone.startswith("AS5047P: 3 bad readings in a row, the last: parity (0x")


def test_as5047p_clears_the_error_flag() -> None:
    """A request damaged on its way sets the flag for all that follows until it is read."""
    program = (
        AS5047P
        + """
sensor = Sensor()
encoder = As5047p(sensor, sensor)
sensor.registers[0x3FFF] = 77
encoder.read()
sensor.registers[1] = 4
sensor.registers[0x3FFF] = 78
answer = [encoder.read(), encoder.read(), sensor.registers[1], encoder.failures.total]
"""
    )
    assert run(program) == [77, 78, 0, 1]


@pytest.mark.parametrize(
    ("diagnostics", "what"),
    [(0x0980, "too weak"), (0x0500, "too strong"), (0x0380, "overflow"), (0x0080, "not ready")],
)
def test_as5047p_tells_what_is_wrong_with_the_magnet(diagnostics: int, what: str) -> None:
    sensor = "sensor = Sensor()\nsensor.registers[0x3FFC] = diagnostics\n"
    program = AS5047P + sensor + "answer = tell(As5047p, sensor, sensor)"
    assert what in run(program, diagnostics=diagnostics)


@pytest.mark.parametrize(("level", "what"), [(0xFFFF, "AS5047P: "), (0x0000, "no sensor on the line?")])
def test_as5047p_is_not_taken_for_granted(level: int, what: str) -> None:
    """A line with nobody on it: MISO pulled up, or down."""
    program = AS5047P + "sensor = Sensor()\nsensor.damage = lambda word: level\nanswer = tell(As5047p, sensor, sensor)"
    assert what in run(program, level=level)


AS5600 = '''
from drivers.as5600 import As5600
from drivers.errors import SensorFault

class Bus:
    """AS5600: an address pointer that stays where it is after the angle is read, and moves on elsewhere."""
    def __init__(self):
        self.registers = {0x0B: 0x20, 0x0C: 0, 0x0D: 0}
        self.pointer = 0
        self.broken = 0
        self.transfers = 0
    def _use(self, address):
        self.transfers += 1
        if self.broken or address != 0x36:
            self.broken -= 1
            self.pointer = 0x0B
            raise OSError(5)
    def set(self, angle):
        self.registers[0x0C], self.registers[0x0D] = angle >> 8, angle & 255
    def writeto(self, address, data):
        self._use(address)
        self.pointer = data[0]
    def readfrom_into(self, address, into):
        self._use(address)
        for k in range(len(into)):
            into[k] = self.registers[self.pointer]
            self.pointer = 0x0C if self.pointer == 0x0D else self.pointer + 1
    def readfrom_mem_into(self, address, register, into):
        self.writeto(address, bytes([register]))
        self.readfrom_into(address, into)

def tell(function, *args):
    try:
        return function(*args)
    except SensorFault as error:
        return str(error)
'''


def test_as5600_reads_every_angle_in_one_transfer() -> None:
    program = (
        AS5600
        + """
bus = Bus()
encoder = As5600(bus)
encoder.read()
before = bus.transfers
wrong = []
for angle in range(4096):
    bus.set(angle)
    if encoder.read() != angle:
        wrong.append(angle)
answer = [wrong[:5], bus.transfers - before, encoder.COUNTS]
"""
    )
    assert run(program) == [[], 4096, 4096]


def test_as5600_survives_a_disturbed_bus_and_gives_up_on_a_dead_one() -> None:
    program = (
        AS5600
        + """
bus = Bus()
encoder = As5600(bus)
bus.set(100)
answer = [encoder.read()]
bus.set(200)
bus.broken = 2
answer += [encoder.read(), encoder.read(), encoder.read()]
bus.broken = 3
answer += [encoder.read(), encoder.read(), tell(encoder.read), encoder.read()]
bus.set(0x1234)
answer += [encoder.read(), encoder.failures.total]
"""
    )
    *read, last, total = run(program)
    assert [*read[:6], read[7], last, total] == [100, 100, 100, 200, 200, 200, 200, 200, 6]
    assert read[6].startswith("AS5600: 3 bad readings in a row, the last: the bus (0x0005)")


@pytest.mark.parametrize(
    ("status", "what"), [(0x00, "no magnet"), (0x30, "too weak"), (0x28, "too strong"), (None, "no answer at I2C")]
)
def test_as5600_tells_what_is_wrong(status: int | None, what: str) -> None:
    program = (
        AS5600
        + """
bus = Bus()
if status is None:
    bus.broken = 1
else:
    bus.registers[0x0B] = status
answer = tell(As5600, bus)
"""
    )
    assert what in run(program, status=status)


def test_as5048_is_an_as5047p_with_another_diagnostics_register() -> None:
    """Every angle in one reading; bits of 0x3FFD; a register of the AS5047P alone is never asked for."""
    program = (
        AS5047P
        + """
from drivers.as5048 import As5048
sensor = Sensor()
del sensor.registers[0x3FFC]
sensor.registers[0x3FFD] = 0x0180
encoder = As5048(sensor, sensor)
wrong = []
for angle in range(0, 16384, 5):
    sensor.registers[0x3FFF] = angle
    if encoder.read() != angle:
        wrong.append(angle)
answer = [wrong]
for diagnostics in (0x0080, 0x0380, 0x0580, 0x0980):
    sensor.registers[0x3FFD] = diagnostics
    answer.append(tell(encoder.check))
"""
    )
    wrong, *told = run(program)
    assert wrong == []
    for words, what in zip(told, ("not ready", "overflow", "too strong", "too weak"), strict=True):
        assert words.startswith("AS5048: ")
        assert what in words


MT6701 = '''
from drivers.mt6701 import Mt6701
from drivers.errors import SensorFault

class Sensor:
    """MT6701's SSI as its data sheet describes it, the CRC by long division bit by bit."""
    def __init__(self):
        self.angle, self.status, self.selected = 0, 0, False
        self.damage = lambda frame: frame
    def value(self, level):
        self.selected = not level
    def readinto(self, into):
        assert self.selected and len(into) == 3
        told, crc = self.angle << 4 | self.status, 0
        for k in range(17, -1, -1):
            fed = crc >> 5 ^ told >> k & 1
            crc = crc << 1 & 0x3F ^ 3 * fed
        frame = self.damage(told << 6 | crc)
        into[0], into[1], into[2] = frame >> 16, frame >> 8 & 255, frame & 255

def tell(function, *args):
    try:
        return function(*args)
    except SensorFault as error:
        return str(error)
'''


def test_mt6701_reads_every_angle_and_no_single_wrong_bit_passes() -> None:
    program = (
        MT6701
        + """
sensor = Sensor()
encoder = Mt6701(sensor, sensor)
wrong = []
for angle in range(16384):
    sensor.angle = angle
    if encoder.read() != angle:
        wrong.append(angle)
sensor.status = 4  # its push button, which is no fault
answer = [wrong, encoder.read(), encoder.failures.total]
sensor.status, sensor.angle = 0, 5000
encoder.read()
passed = 0
for bit in range(24):
    sensor.damage = lambda frame: frame ^ 1 << bit
    passed += encoder.read() != 5000
    sensor.damage = lambda frame: frame
    encoder.read()
answer += [passed, encoder.failures.total]
"""
    )
    assert run(program) == [[], 16383, 0, 0, 24]


@pytest.mark.parametrize(
    ("status", "what"), [(8, "loss of track"), (1, "too strong"), (2, "too weak"), (None, "wrong CRC")]
)
def test_mt6701_tells_what_is_wrong_and_gives_up_after_three(status: int | None, what: str) -> None:
    """At boot, and while it runs: None is a cut line, which its pull-up holds at 1."""
    program = (
        MT6701
        + """
sensor = Sensor()
encoder = Mt6701(sensor, sensor)
sensor.angle = 77
encoder.read()
if status is None:
    sensor.damage = lambda frame: 0xFFFFFF
else:
    sensor.status = status
sensor.angle = 78
answer = [encoder.read(), encoder.read(), tell(encoder.read), encoder.read(), tell(Mt6701, sensor, sensor)]
"""
    )
    first, second, fault, after, boot = run(program, status=status)
    assert (first, second, after) == (77, 77, 77)
    assert fault.startswith("MT6701: 3 bad readings in a row")
    assert boot.startswith("MT6701: ")
    assert what in boot


@pytest.mark.parametrize("counts", [4096, 16384])
def test_an_absolute_encoder_counts_on_over_its_zero(counts: int) -> None:
    """Random moves of less than half a turn, 20 turns to and fro; the count is modulo 2^16."""
    generator = random.Random(counts)
    position, path = 1000, [1000]
    for k in range(400):
        position += generator.randint(-counts // 2 + 1, counts // 2 - 1) + (300 if k < 200 else -300)
        path.append(position)
    program = """
from drivers.turns import Turns
class Encoder:
    COUNTS = counts
    def read(self):
        return angles.pop(0)
turns = Turns(Encoder())
answer = [turns.read() for _ in range(len(angles))]
"""
    legal = [path[0]]
    for a, b in zip(path, path[1:], strict=False):
        step = max(-counts // 2 + 1, min(counts // 2 - 1, b - a))
        legal.append(legal[-1] + step)
    found = run(program, counts=counts, angles=[p % counts for p in legal])
    assert found == [p & 0xFFFF for p in legal[1:]]


ZERO = """
from drivers.current_sense import zero_offset
from drivers.errors import ZeroFault
import math
class Motor:
    def __init__(self):
        self.tick = 0
    def block(self):
        self.tick += 1
        return readings[self.tick % len(readings)]
    def count(self):
        return (65535 + flicker * (self.tick & 1) + (self.tick // 64 * 2 if self.tick < moves_until else 0)) & 0xFFFF
motor = Motor()
try:
    answer = [zero_offset(motor.block, motor.count), motor.tick]
except ZeroFault as error:
    answer = [str(error), motor.tick]
"""


def test_the_zero_is_the_mean_at_rest() -> None:
    generator = random.Random(3)
    readings = [round(generator.gauss(-321.4, 40)) for _ in range(64)]
    zero, ticks = run(ZERO, readings=readings, moves_until=0, flicker=1)
    assert zero == math.floor(sum(readings) / 64 + 0.5)
    assert ticks == 64


def test_the_zero_waits_for_the_motor_to_rest() -> None:
    zero, ticks = run(ZERO, readings=[5], moves_until=600, flicker=0)
    assert zero == 5
    assert ticks > 600


@pytest.mark.parametrize(
    ("readings", "moves_until", "what"),
    [
        ([0], 10**6, "the motor moves"),
        ([3300], 0, "reads 3300 counts"),
        ([-32768], 0, "reads -32768 counts"),
        ([-900, 900], 0, "moves by 1800 counts"),
    ],
)
def test_what_is_no_zero(readings: list[int], moves_until: int, what: str) -> None:
    assert what in run(ZERO, readings=readings, moves_until=moves_until, flicker=0)[0]


BURSTS = """
import sys
class Module:
    pass
pyb = sys.modules["pyb"] = Module()
class ADC:
    results = []
    def __init__(self, pin):
        pass
    @staticmethod
    def read_timed_multi(adcs, blocks, timer):
        for block in blocks:
            for k in range(16):
                block[k] = 1000 + len(ADC.results)
        return ADC.results.pop(0)
pyb.ADC, pyb.Pin, pyb.Timer = ADC, lambda name: name, lambda number, freq: None
from drivers.stm32_adc import TimedAdc
from drivers.errors import WiringError
import struct
"""


def test_a_slot_that_an_interrupt_has_eaten_is_counted_and_no_fault() -> None:
    """However many in a row: what was sampled, some us late, is what the tick gets."""
    program = (
        BURSTS
        + """
ADC.results = [False, True]
adc = TimedAdc({"current": "C0", "torque": "C1"}, 80000, 6)
inputs = bytearray(116)
ADC.results = [True] + [False] * 9 + [True]
answer = []
for _ in range(11):
    adc.measure(inputs)
    answer.append([adc.eaten, struct.unpack_from("<32H", inputs, 32)[0]])
"""
    )
    assert run(program) == [[min(k, 9), 1011 - k] for k in range(11)]


def test_a_rate_that_every_burst_misses_is_refused_at_boot() -> None:
    program = (
        BURSTS
        + """
ADC.results = [False] * 100
try:
    answer = TimedAdc({"current": "C0", "torque": "C1"}, 200000, 6).eaten
except WiringError as error:
    answer = str(error)
"""
    )
    assert "analog_rate_Hz 200000 is faster than this chip converts 2 inputs" in run(program)
