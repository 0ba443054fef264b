"""A kernel as a graph of values, each assigned once (SSA), in blocks that end in a jump, a branch or a return.

Memory is a value too: a store makes a new one from the one before, and a load names the one it reads. So what may pass
what is plain from the graph, and a load is found again exactly as long as no store can have changed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

WORD = 0xFFFFFFFF
OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "ge": "le", "le": "ge"}


def signed(number: int) -> int:
    """The 32-bit integer a number wraps to."""
    return ((number + 0x80000000) & WORD) - 0x80000000


@dataclass(eq=False, repr=False)
class Value:
    """What one operation gives.

    op: const (number) · arg (number: which) · memory (as it was at the start) · phi ·
        add sub mul and or xor shl asr div · ssat usat (number: bits) ·
        load (args address, memory; number: offset, width) · store (args address, value, memory)
    """

    op: str
    args: list[Value]
    block: Block
    number: int = 0
    width: int = 4

    def is_const(self, number: int | None = None) -> bool:
        """Is it a constant (this one)?"""
        return self.op == "const" and (number is None or self.number == number)


@dataclass(eq=False, repr=False)
class Block:
    """Values in order, then how it ends.

    Attributes:
        condition: of a branch: "eq", "lt", … of two values; None for a jump or a return.
        targets: where it goes: when the condition holds, else; one for a jump; none for a return.
        result: what a return gives.
    """

    number: int
    values: list[Value] = field(default_factory=list[Value])
    predecessors: list[Block] = field(default_factory=list["Block"])
    condition: str | None = None
    compared: list[Value] = field(default_factory=list[Value])
    targets: list[Block] = field(default_factory=list["Block"])
    result: Value | None = None

    @property
    def phis(self) -> Iterator[Value]:
        """Those of its values that depend on where control came from."""
        return (value for value in self.values if value.op == "phi")

    def read(self) -> list[Value]:
        """What its end reads."""
        return [*self.compared, *([] if self.result is None else [self.result])]


@dataclass(eq=False, repr=False)
class Graph:
    """All blocks of a kernel, in the order of its source; the first is where it begins."""

    name: str
    n_arguments: int
    blocks: list[Block] = field(default_factory=list[Block])

    def replace(self, by: dict[Value, Value]) -> None:
        """Let everybody read by[value] instead of a value, and what stands for that one in turn."""
        for block in self.blocks:
            for value in block.values:
                value.args = [latest(each, by) for each in value.args]
            block.compared = [latest(each, by) for each in block.compared]
            block.result = None if block.result is None else latest(block.result, by)

    def sweep(self) -> None:
        """Drop blocks that cannot be reached, phis that have but one source, and values that nobody reads."""
        self._drop_unreachable()
        self._drop_plain_phis()
        needed: set[Value] = set()
        waiting = [value for block in self.blocks for value in block.read()]
        waiting += [value for block in self.blocks for value in block.values if value.op == "store"]
        while waiting:
            value = waiting.pop()
            if value not in needed:
                needed.add(value)
                waiting += value.args
        for block in self.blocks:
            block.values = [value for value in block.values if value in needed]

    def _drop_unreachable(self) -> None:
        reached: set[Block] = set()
        waiting = [self.blocks[0]]
        while waiting:
            block = waiting.pop()
            if block not in reached:
                reached.add(block)
                waiting += block.targets
        self.blocks = [block for block in self.blocks if block in reached]
        for block in self.blocks:
            kept = [index for index, each in enumerate(block.predecessors) if each in reached]
            if len(kept) != len(block.predecessors):
                block.predecessors = [block.predecessors[index] for index in kept]
                for phi in block.phis:
                    phi.args = [phi.args[index] for index in kept]

    def _drop_plain_phis(self) -> None:
        by: dict[Value, Value] = {}
        size = -1
        while size != len(by):
            size = len(by)
            for block in self.blocks:
                for phi in block.phis:
                    sources = {latest(each, by) for each in phi.args} - {phi}
                    if phi not in by and len(sources) == 1:
                        by[phi] = sources.pop()
        for block in self.blocks:
            block.values = [value for value in block.values if value not in by]
        self.replace(by)


def latest(value: Value, by: dict[Value, Value]) -> Value:
    """What stands for a value in the end."""
    while value in by:
        value = by[value]
    return value
