"""Counts instructions on the emulated board: with QEMU's -icount shift=0 one takes 1 ns, and a 25 MHz counter shows it.

The counter steps once in 40 instructions, so whatever is counted is repeated, from the same memory each time.
"""

import machine
import uctypes
from array import array
from micropython import const

COUNTER = const(0x40028018)  # FPGA I/O block of the MPS2 board
PER_STEP = const(40)
REPEATS = const(400)  # one step more or less is a tenth of an instruction

FROM, TO, WORDS, TURNS, BEGAN, ENDED, RESULT = const(5), const(6), const(7), const(8), const(9), const(10), const(11)


@micropython.asm_thumb
def restore(r0):
    """Copy the snapshot back; r0: the table below."""
    ldr(r1, [r0, 20])
    ldr(r2, [r0, 24])
    ldr(r3, [r0, 28])
    label(COPY)
    ldr(r4, [r1, 0])
    str(r4, [r2, 0])
    add(r1, 4)
    add(r2, 4)
    sub(r3, 1)
    bne(COPY)


@micropython.asm_thumb
def repeat(r0):
    """Words of the table at r0: function, four arguments, and what FROM … RESULT say."""
    mov(r4, r0)
    ldr(r5, [r4, 32])
    movwt(r6, 0x40028018)
    ldr(r0, [r6, 0])
    str(r0, [r4, 36])
    label(AGAIN)
    ldr(r0, [r4, 20])
    ldr(r1, [r4, 24])
    ldr(r2, [r4, 28])
    label(COPY)
    ldr(r3, [r0, 0])
    str(r3, [r1, 0])
    add(r0, 4)
    add(r1, 4)
    sub(r2, 1)
    bne(COPY)
    ldr(r0, [r4, 4])
    ldr(r1, [r4, 8])
    ldr(r2, [r4, 12])
    ldr(r3, [r4, 16])
    ldr(r7, [r4, 0])
    data(2, 0x47B8)  # blx r7
    str(r0, [r4, 44])
    sub(r5, 1)
    bne(AGAIN)
    ldr(r0, [r6, 0])
    str(r0, [r4, 40])


@micropython.asm_thumb
def align():
    """Go on at a known instruction within a step of the counter, wherever the board was before.

    A turn takes 41 instructions, so the counter is read one instruction later in its step each time, until it has
    stepped twice between two readings.
    """
    movwt(r1, 0x40028018)
    ldr(r2, [r1, 0])
    label(AGAIN)
    ldr(r3, [r1, 0])
    sub(r4, r3, r2)
    mov(r2, r3)
    cmp(r4, 2)
    beq(ALIGNED)
    mov(r4, 11)
    label(PAUSE)
    sub(r4, 1)
    bne(PAUSE)
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    nop()
    b(AGAIN)
    label(ALIGNED)


@micropython.asm_thumb
def nothing():
    pass


def entry(function):
    """Where the code of an asm_thumb function begins, as a branch takes it."""
    return machine.mem32[id(function) + 8] | 1


def code(binary):
    """The same of machine code in a bytearray."""
    return uctypes.addressof(binary) | 1


class Counter:
    """Counts functions that work on `memory`, whose content is the same before each call."""

    def __init__(self, memory):
        self._snapshot = bytes(memory)
        self._table = array("i", bytes(48))
        self._table[FROM] = uctypes.addressof(self._snapshot)
        self._table[TO] = uctypes.addressof(memory)
        self._table[WORDS] = len(memory) // 4
        self._table[TURNS] = REPEATS
        self.restore_at = uctypes.addressof(self._table)
        empty = self._steps(entry(nothing), (0, 0, 0, 0))
        self._around = empty - 2 * REPEATS // PER_STEP  # it saves and restores registers: two instructions
        self.result = 0

    def native(self, address, arguments):
        """Instructions of machine code, its own return included; `result` is what it gave."""
        steps = self._steps(address, arguments)
        return ((steps - self._around) * PER_STEP + REPEATS // 2) // REPEATS

    def called(self, function, argument):
        """Instructions of `events = function(argument)` in a Python function, everything included."""
        with_call = _called(function, argument, self.restore_at)
        without = _not_called(argument, self.restore_at)
        return ((with_call - without) * PER_STEP + REPEATS // 2) // REPEATS

    def once(self, function, argument):
        """Result of one call, on the memory as it is before each."""
        restore(self.restore_at)
        return function(argument)

    def _steps(self, address, arguments):
        table = self._table
        table[0] = address
        for index, each in enumerate(arguments):
            table[1 + index] = each
        repeat(self.restore_at)
        self.result = table[RESULT]
        return (table[ENDED] - table[BEGAN]) & 0xFFFFFFFF


def _called(function, argument, table):
    again = restore
    word = machine.mem32
    before = word[COUNTER]
    for _ in range(REPEATS):
        again(table)
        events = function(argument)
    return (word[COUNTER] - before) & 0xFFFFFFFF


def _not_called(argument, table):
    again = restore
    word = machine.mem32
    before = word[COUNTER]
    for _ in range(REPEATS):
        again(table)
    return (word[COUNTER] - before) & 0xFFFFFFFF
