"""Ticks, SYNC edges and the line's accounts on MicroPython, with a microsecond counter that the test moves."""

from firmware.boards.tests.interpreter import run

TIME = """
import sys, struct
class Time:
    now = start
    step = 0
    def ticks_us(self):
        self.now = (self.now + self.step) & 0x3FFFFFFF
        return self.now
time = Time()
class Module:
    pass
sys.modules["time"] = Module()
sys.modules["time"].ticks_us = lambda: time.ticks_us()
from drivers.clock import Clock
inputs = bytearray(116)
def tick():
    clock.wait(lead)
    clock.tick(inputs)
    return list(struct.unpack_from("<4I", inputs))
"""


def test_ticks_go_on_over_both_wraps() -> None:
    """ticks_us() wraps at 2^30, the board's clock at 2^32; a tick tells when it was due."""
    program = (
        TIME
        + """
clock = Clock(period)
time.step = 90001
told = [tick() for _ in range(5000)]
steps = [(b[0] - a[0], (b[1] - a[1]) & 0xFFFFFFFF) for a, b in zip(told, told[1:])]
answer = [told[0], told[-1], set(steps) == {(1, period)}]
"""
    )
    period = 1_000_000
    first, last, steady = run(program, start=0x3FFFFFFF - 5000, lead=0, period=period)
    assert first[:2] == [0, period]
    assert last[:2] == [4999, 5000 * period & 0xFFFFFFFF]
    assert steady


def test_a_missed_tick_shows_in_the_next_ones_number() -> None:
    program = (
        TIME
        + """
clock = Clock(1000)
answer = []
for late in (10, 400, 999, 1700, 0, 5300, 0):
    time.now += 1000
    answer.append(tick()[:2] + [time.now])
    time.now += late
"""
    )
    # Late by less than a period: the tick is only begun late. Later: those in between are missing from the numbers.
    time, due, number, expected = 0, 1000, 0, []
    for late in (10, 400, 999, 1700, 0, 5300, 0):
        time += 1000
        missed = max(0, time - due) // 1000
        number, due = number + missed, due + missed * 1000
        expected.append([number, due, time])
        number, due, time = number + 1, due + 1000, time + late
    assert run(program, start=0, lead=2**29) == expected


def test_measuring_begins_before_the_tick() -> None:
    program = (
        TIME
        + """
clock = Clock(1000)
time.step = 1
answer = []
for _ in range(3):
    clock.wait(lead)
    began = time.now
    while time.now % 1000:
        time.ticks_us()
    clock.tick(inputs)
    answer.append([began, struct.unpack_from("<I", inputs, 4)[0]])
"""
    )
    found = run(program, start=0, lead=250)
    assert [due - began for began, due in found] == [250, 250, 250]


def test_sync_edges_are_counted_and_timed() -> None:
    program = (
        TIME
        + """
clock = Clock(1000)
answer = []
for edges in ([], [100], [], [20, 900]):
    begin = time.now
    for after in edges:
        time.now = begin + after
        clock.edge(None)
    time.now = begin + 1000
    answer.append(tick())
"""
    )
    found = run(program, start=0, lead=0)
    assert [edges for _, _, edges, _ in found] == [0, 1, 1, 3]
    assert [time for _, _, _, time in found][1:] == [1100, 1100, 3900]


def test_an_edge_while_the_tick_is_told_is_of_that_moment() -> None:
    """The interrupt may come after the tick has looked at the time: the edge is later than that, by microseconds."""
    program = (
        TIME
        + """
clock = Clock(1000)
answer = [tick()]
looked = Time.ticks_us
def interrupted():
    now = looked(time)
    time.ticks_us = lambda: looked(time)
    time.now += 3
    clock.edge(None)
    return now
time.ticks_us = lambda: looked(time)
for _ in range(2):
    time.now += 500
    clock.wait(2 ** 29)
    time.ticks_us = interrupted
    clock.tick(inputs)
    answer.append(list(struct.unpack_from("<4I", inputs)) + [clock.now_us()])
"""
    )
    _, *told = run(program, start=0x3FFFFFFF - 700, lead=2**29)
    assert [edges for _, _, edges, _, _ in told] == [1, 2]
    assert [time for _, _, _, time, _ in told] == [now for *_, now in told]


def test_the_last_edge_stays_where_it_was_when_no_other_comes() -> None:
    """Also after more time than ticks_us() counts before it begins anew."""
    program = (
        TIME
        + """
clock = Clock(1000)
time.now += 100
clock.edge(None)
answer = []
for _ in range(5):
    answer.append(tick()[3])
    time.now = (time.now + 2 ** 28) & 0x3FFFFFFF
"""
    )
    assert run(program, start=0, lead=2**29) == [100] * 5


LINE = """
from drivers.uart_line import UartLine
from drivers.errors import WiringError
class Uart:
    def __init__(self):
        self.sent, self.waiting = 0, b""
    def any(self):
        return len(self.waiting)
    def readinto(self, into, count):
        into[:count] = self.waiting[:count]
        self.waiting = self.waiting[count:]
        return count
    def write(self, data, count):
        self.sent += count
uart = Uart()
"""


def test_the_line_is_never_given_more_than_it_buffers() -> None:
    """As much as there is room for: 1024 bytes once, then what 921600 baud carry in a tick; silence frees as much."""
    program = (
        LINE
        + """
line = UartLine(uart, 921600, 1000)
answer = []
for _ in range(5):
    line.receive(bytearray(1), 1)
    count = min(line.room(), 512)
    line.send(bytes(512), count)
    answer.append(count)
for _ in range(3):
    line.receive(bytearray(1), 1)
answer.append(line.room())
"""
    )
    assert run(program) == [512, 512, 184, 92, 92, 3 * 92]


def test_a_line_without_a_buffer_sends_what_its_patience_allows() -> None:
    program = LINE + "line = UartLine(uart, 921600, 1000, False, 300)\nanswer = [line.room(), line.room()]"
    assert run(program) == [27, 27]
    program = (
        LINE
        + """
line = UartLine(uart, 921600, 1000, False, 300)
answer = []
for _ in range(3):
    line.receive(bytearray(1), 1)
    answer.append(line.room())
    line.send(bytes(99), answer[-1])
"""
    )
    assert run(program) == [27, 27, 27]


def test_received_bytes_come_in_their_order_and_at_most_as_many_as_fit() -> None:
    program = (
        LINE
        + """
line = UartLine(uart, 921600, 1000)
into = bytearray(8)
view = memoryview(into)[3:]
answer = [line.receive(view, 5)]
uart.waiting = b"abcdefg"
answer += [line.receive(view, 5), into.decode(), line.receive(view, 5), into[3:5].decode()]
"""
    )
    assert run(program) == [0, 5, "\0\0\0abcde", 2, "fg"]


def test_a_line_too_slow_for_frames() -> None:
    program = (
        LINE
        + """
try:
    answer = UartLine(uart, 9600, 1000)
except WiringError as error:
    answer = str(error)
"""
    )
    assert "line.baud is 9600" in run(program)
