"""The line on USB on MicroPython, over a USBDevice whose transfers the test ends."""

from firmware.boards.tests.interpreter import ALLOCATED, run

USB = """
import sys, gc
class BuiltIn:
    desc_dev, desc_cfg = bytes(18), bytes([9, 2, 75, 0, 2]) + bytes(70)
    itf_max, ep_max, str_max = 2, 3, 5
class USBDevice:
    BUILTIN_DEFAULT = BuiltIn
    def __init__(self):
        self.on, self.way, self.data = False, bytearray(2), [None, None]
    def active(self, on):
        self.on = on
    def config(self, *parts):
        self.parts = parts
    def submit_xfer(self, endpoint, buffer):
        way = endpoint >> 7
        if self.way[way]:
            raise OSError(16)
        self.way[way], self.data[way] = 1, buffer
        return True
    def end(self, way, count):
        self.way[way] = 0
        self.parts[6](endpoints[way], 0, count)
class Machine:
    pass
usb, endpoints = USBDevice(), (4, 0x84)
sys.modules["machine"] = Machine
Machine.USBDevice = staticmethod(lambda: usb)
from drivers.rp2_usb_line import UsbLine
line = UsbLine()
opened, reset, control = usb.parts[3:6]
def arrive(data):
    usb.data[0][: len(data)] = data
    usb.end(0, len(data))
"""


def test_the_console_stays_and_the_line_is_two_interfaces_behind_it() -> None:
    device, configuration, names, on = run(
        USB + "answer = [len(usb.parts[0]), list(usb.parts[1]), usb.parts[2], usb.on]"
    )
    assert (device, names, on) == (18, {"5": "Jointbench line"}, True)
    parts, rest = [], configuration
    while rest:
        parts.append(rest[: rest[0]]) if rest[0] else rest.clear()
        rest = rest[rest[0] :] if rest else []
        if len(parts) == 1:
            rest = configuration[75:]  # what is built in is zeros here
    assert parts[0][2:5] == [len(configuration) & 255, len(configuration) >> 8, 4]
    assert [part[2] for part in parts if part[1] == 4] == [2, 3]  # interfaces
    assert [part[2] for part in parts if part[1] == 5] == [0x83, 0x04, 0x84]  # endpoints


def test_what_the_host_does_not_fetch_leaves_no_room_and_holds_nothing_up() -> None:
    program = (
        USB
        + """
answer = [line.room()]
opened(None)
answer.append(line.room())
line.send(b"x" * 127, 127)
answer += [line.room(), bytes(usb.data[1]).decode()]
usb.end(1, 127)
answer.append(line.room())
line.send(b"z", 1)
reset()
usb.way[1] = 0
answer.append(line.room())
opened(None)
answer.append(line.room())
"""
    )
    # Never whole packets alone, which would not end the transfer for the host.
    assert run(program) == [0, 127, 0, "x" * 127, 127, 0, 127]


def test_what_arrives_is_kept_until_it_is_asked_for_and_the_host_waits_when_there_is_no_more_room() -> None:
    program = (
        USB
        + """
opened(None)
taken, into, number = b"", bytearray(512), 0
def packet():
    global number
    number += 1
    arrive(bytes([number]) * 64)
for _ in range(8):
    packet()
answer = [usb.way[0]]  # the host's next packet is not asked for
for k in range(40):
    count = line.receive(into, 61)
    taken += into[:count]
    while usb.way[0]:
        packet()
answer += [len(taken), taken == b"".join([bytes([k]) * 64 for k in range(1, 60)])[: len(taken)]]
"""
    )
    assert run(program) == [0, 40 * 61, True]


def test_a_turn_of_it_allocates_nothing() -> None:
    program = (
        USB
        + ALLOCATED
        + """
opened(None)
data, into = bytes(127), memoryview(bytearray(512))
def turn():
    if line.room():
        line.send(data, 100)
        usb.end(1, 100)
    usb.end(0, 64)
    line.receive(into, 512)
answer = [allocated(turn), allocated(lambda: [1])]
"""
    )
    turns, careless = run(program)
    assert turns == 0
    assert careless > 0


def test_as_a_console_it_is_read_and_written_a_piece_at_a_time() -> None:
    program = (
        USB
        + """
opened(None)
from drivers.rp2_usb_line import Console
console, into, sent = Console(line), bytearray(8), b""
def flush():
    global sent
    if usb.way[1]:
        sent += bytes(usb.data[1])
        usb.end(1, 1)
line.flush = flush
answer = [console.readinto(into), console.ioctl(3, 5)]
arrive(b"abc")
answer += [console.ioctl(3, 5), console.readinto(into), into[:3].decode(), console.write(bytes(300))]
flush()
answer.append(len(sent))
"""
    )
    assert run(program) == [None, 0, 1, 3, "abc", 300, 300]


def test_its_requests_are_answered_and_others_are_not() -> None:
    program = (
        USB
        + """
def ask(kind, request, stage=1):
    found = control(stage, memoryview(bytes([kind, request, 0, 0, 2, 0, 7, 0])))
    return found if found in (True, False) else list(found)
answer = [ask(0xA1, 0x21), ask(0x21, 0x22), ask(0x21, 0x22, 3), ask(0x21, 0x55), ask(0x01, 0x0B)]
"""
    )
    coding, *others = run(program)
    assert len(coding) == 7
    assert others == [True, True, False, False]
