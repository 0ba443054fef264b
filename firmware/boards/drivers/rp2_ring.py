"""Endless DMA from one register into a ring of memory: the newest values are always there, at no cost to the processor.

Two channels take turns, each starting the other after TRANSFERS: a channel alone would end after some hours.
"""

from uctypes import addressof

import rp2
from micropython import const

TRANSFERS = const(1 << 27)  # a multiple of every ring's size, within the RP2350's 28 bits


class Ring:
    """`address` of the ring, aligned to its size; `channels` are the two channels' register addresses.

    Args: the register's address; DREQ that paces it; bytes of a value; bytes of the ring, a power of 2.
    """

    def __init__(self, register, request, width, size):
        self._memory = bytearray(2 * size)
        self.address = (addressof(self._memory) + size - 1) & ~(size - 1)
        first, second = self._dmas = rp2.DMA(), rp2.DMA()
        for dma, other in ((first, second), (second, first)):
            ctrl = dma.pack_ctrl(
                size=width >> 1,
                inc_read=False,
                ring_size=_log2(size),
                ring_sel=True,
                treq_sel=request,
                chain_to=other.channel,  # pyright: ignore[reportAttributeAccessIssue] (the stubs lack it)
            )
            dma.config(read=register, write=self.address, count=TRANSFERS, ctrl=ctrl, trigger=False)
        self.channels = [addressof(dma.registers) for dma in self._dmas]  # pyright: ignore[reportAttributeAccessIssue] (the stubs lack it)

    def start(self):
        self._dmas[0].active(1)

    def close(self):
        for dma in self._dmas:
            dma.active(0)
            dma.close()


def _log2(size):
    bits = 0
    while 1 << bits < size:
        bits += 1
    return bits
