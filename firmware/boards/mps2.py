"""Emulated board: a Cortex-M3 inside QEMU (machine mps2-an385), with a mailbox in memory as its hardware.

The PSRAM at 0x21000000 is a file of the host. A tick: the bench writes the inputs there and sends a byte to UART 1,
for which the core sleeps (WFI); the board writes the outputs and sends the byte back. The byte counts ticks asked for,
so one that a reset left over is told from the next. With "partner" in config.json inputs and outputs are there twice,
one after the other, and the first say what is received and sent. Time is the mailbox's alone. How long the board's own
work takes is counted in instructions, of which this core is said to do one with each clock of its 25 MHz; a real one
waits for its flash besides.

wait_tick() is 44 instructions when the tick is already there, send() a store; nothing is allocated. The watchdog is
the bench's: it resets a board that hangs.
"""

import json
import struct

import machine
import micropython
from micropython import const
from uctypes import bytearray_at

LAYOUT = const(0x4A420004)  # "JB", version 4
INPUTS = const(128)  # bytes of a motor: those of the Hal, then how many are received, and the time
TIME_US = const(4)
NOW_US = const(124)
OUTPUTS = const(16)  # bytes of a motor; the fourth word counts those to be sent
LINE = const(512)  # bytes the line takes in a tick, each way

MAILBOX = const(0x21000000)  # words: layout, bytes of a tick's inputs, starts since power on, phase (the image's)
ASKED = const(16)  # ticks asked for
OWED = const(20)  # not 0 while one is taken and not answered
WATCHDOG = const(24)  # milliseconds, 0 for none
BEGUN = const(28)  # COUNTER when the tick was taken
OUTPUTS_AT = const(0x21000100)
SENT_AT = const(0x2100010C)
INPUTS_AT = const(0x21000400)
RECEIVED_AT = const(0x21000478)

COUNTER = const(0x40028018)  # 25 MHz of QEMU's time: under -icount shift=7 an instruction is 128 ns, 3.2 counts
TURNS = const(4000)  # of a loop of two instructions, which tells whether it is so

UART = const(0x40005000)  # UART 1; its receive interrupt is bit 2 of the NVIC's registers
CONTROL = const(0x40005008)
BAUD_DIVISOR = const(0x40005010)
INTERRUPT_SET = const(0xE000E100)
INTERRUPT_MASK = const(0xE000E180)
INTERRUPT_UNPEND = const(0xE000E280)


class Partner:
    """The board's second motor."""

    def __init__(self, config):
        self.node, self.facts = config["node"], config["facts"]
        self.inputs = bytearray_at(INPUTS_AT + INPUTS, INPUTS)
        self.outputs = bytearray_at(OUTPUTS_AT + OUTPUTS, OUTPUTS)


class Board:
    """Mailbox and UART 1 as a board's hardware (boards/__init__.py says what each part means)."""

    kind = "mps2"
    clock_Hz = 25000000
    adc = (16000, 12, 3300)
    encoder_source = 4  # emulated
    receive_buffer = LINE
    sync_input = True
    clock_at = INPUTS_AT + NOW_US

    def __init__(self):
        self.outputs = bytearray_at(OUTPUTS_AT, 2 * OUTPUTS)  # of however many motors
        self.disable()
        self.inputs = bytearray_at(INPUTS_AT, INPUTS)
        self.reset_cause = machine.reset_cause()
        words = machine.mem32
        words[BAUD_DIVISOR] = 16
        words[CONTROL] = 0b1011  # transmit, receive, interrupt when received
        words[MAILBOX + WATCHDOG] = 0
        words[MAILBOX + OWED] = 0  # a tick taken before this start is nobody's
        counts = 16 * (2 * TURNS + 1) // 5
        self._counts_instructions = all(0 <= counted(TURNS) - counts <= 1 for _ in range(2))
        with open("config.json") as file:
            config = json.load(file)
        self.node = config["node"]
        self.uid = bytes.fromhex(config["uid"])
        self.facts = config["facts"]
        motors = 2 if "partner" in config else 1
        if motors == 2:
            self.partner = Partner(config["partner"])
        self.INCOMING_AT, self.OUTGOING_AT = motors * INPUTS, motors * OUTPUTS
        self.outputs = bytearray_at(OUTPUTS_AT, self.OUTGOING_AT)
        self.incoming = bytearray_at(INPUTS_AT, self.INCOMING_AT + LINE)
        self.outgoing = bytearray_at(OUTPUTS_AT, self.OUTGOING_AT + LINE)
        words[MAILBOX] = LAYOUT
        words[MAILBOX + 4] = self.INCOMING_AT
        words[MAILBOX + 8] += 1

    def disable(self):
        outputs = self.outputs
        for motor in range(0, len(outputs), OUTPUTS):
            for k in range(motor + 4, motor + 12):
                outputs[k] = 0

    @staticmethod
    @micropython.asm_thumb
    def flush():
        """Answer the tick that was taken last, unless it is answered."""
        movwt(r1, MAILBOX)
        movwt(r2, UART)
        ldr(r3, [r1, OWED])
        cmp(r3, 0)
        beq(DONE)
        mov(r3, 0)
        str(r3, [r1, OWED])
        ldr(r3, [r1, ASKED])
        str(r3, [r2, 0])
        label(DONE)

    @staticmethod
    @micropython.asm_thumb
    def wait_tick():
        """Answer the last tick and sleep until the next; the number of received bytes."""
        movwt(r1, MAILBOX)
        movwt(r2, UART)
        movwt(r5, INTERRUPT_MASK)
        movwt(r6, INTERRUPT_UNPEND)
        ldr(r3, [r1, OWED])
        cmp(r3, 0)
        beq(WAIT)
        ldr(r3, [r1, ASKED])
        str(r3, [r2, 0])
        label(WAIT)
        cpsid(1)  # a byte that comes before the core sleeps still wakes it
        # Masked while the program works: its handler's frame on the stack would steer what a collection finds there.
        movwt(r4, INTERRUPT_SET)
        mov(r7, 4)
        str(r7, [r4, 0])
        mov(r7, 2)
        label(LOOK)
        ldr(r3, [r2, 4])
        and_(r3, r7)
        bne(TAKE)
        wfi()
        ldr(r3, [r2, 4])
        and_(r3, r7)
        bne(TAKE)
        cpsie(1)  # it was another interrupt's: the console's
        cpsid(1)
        b(LOOK)
        label(TAKE)
        str(r7, [r2, 12])  # taken back at the UART, then at the NVIC, before the next byte is let in
        mov(r7, 4)
        str(r7, [r6, 0])
        str(r7, [r5, 0])
        ldr(r3, [r2, 0])
        cpsie(1)
        movwt(r4, COUNTER)
        ldr(r4, [r4, 0])
        str(r4, [r1, BEGUN])
        ldrb(r4, [r1, ASKED])
        cmp(r3, r4)
        bne(WAIT)
        str(r7, [r1, OWED])
        movwt(r4, SENT_AT)
        mov(r3, 0)
        str(r3, [r4, 0])
        movwt(r4, RECEIVED_AT)
        ldr(r0, [r4, 0])

    def watchdog(self, timeout_ms):
        machine.mem32[MAILBOX + WATCHDOG] = timeout_ms  # the bench is the dog: it alone knows whether time goes on

    def before_erasing(self):
        pass  # its flash is memory

    def now_us(self):
        return struct.unpack_from("<I", self.inputs, NOW_US)[0]

    def stopwatch_us(self):
        """The tick's time, and a clock for each instruction since it was taken where QEMU counts those."""
        time = struct.unpack_from("<I", self.inputs, TIME_US)[0]
        if not self._counts_instructions:
            return time
        return time + worked() // (self.clock_Hz // 1000000)

    def apply(self):
        pass  # they go out with the tick's answer

    def room(self):
        return LINE

    @staticmethod
    @micropython.viper
    def send(count: int):
        ptr32(SENT_AT)[0] = count


# In machine code: COUNTER's value is another in each run, and some long integers take more instructions than others.
@micropython.asm_thumb
def worked():
    """Instructions since the tick was taken: 5 / 16 of the counts."""
    movwt(r1, COUNTER)
    ldr(r0, [r1, 0])
    movwt(r1, MAILBOX)
    ldr(r1, [r1, BEGUN])
    sub(r0, r0, r1)
    mov(r1, 5)
    mul(r0, r1)
    add(r0, 8)
    mov(r1, 4)
    lsr(r0, r1)


@micropython.asm_thumb
def counted(r0):
    """Counts that go by during twice as many instructions, and one."""
    movwt(r1, COUNTER)
    ldr(r2, [r1, 0])
    label(AGAIN)
    sub(r0, r0, 1)
    bne(AGAIN)
    ldr(r0, [r1, 0])
    sub(r0, r0, r2)


if __name__ == "__main__":
    board = Board()
    # The package is compiled only now: outputs come first.
    from jointboard import app

    app.run(board)
