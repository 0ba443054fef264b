"""Blocks of rows that were computed once and are kept: a few in memory, many in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from jointbench.arrays import Array
from jointbench.identification.rows import Block, JointRows
from jointbench.memory_mapping import AppendBuffer, read_rows
from jointbench.signals import Motion


@dataclass(frozen=True, eq=False)
class ObservedBlock:
    """Rows of a stretch and the motion they belong to, filtered position and derivatives."""

    rows: Block
    motion: Motion


class BlocksInFile:
    """Blocks whose numbers lie in a file without a name; each time they are asked for they are read again."""

    def __init__(self, blocks: Iterable[ObservedBlock]) -> None:
        """Write them.

        Raises:
            OSError: the disk takes no more.
        """
        buffer = AppendBuffer(np.float64)
        self._heads: list[tuple[Block, list[tuple[int, ...]]]] = []
        for block in blocks:
            arrays = _arrays(block)
            for each in arrays:
                buffer.append(each)
            emptied = tuple(JointRows(which, np.empty((len(which), 0))) for which, _ in block.rows.joints)
            head = replace(block.rows, joints=emptied, torque=np.empty((0, block.rows.torque.shape[1])))
            self._heads.append((head, [each.shape for each in arrays]))
        self._numbers = buffer.to_array()

    def __iter__(self) -> Iterator[ObservedBlock]:
        start = 0
        for head, shapes in self._heads:
            arrays: list[Array] = []
            for shape in shapes:
                stop = start + int(np.prod(shape))
                arrays.append(read_rows(self._numbers, slice(start, stop)).reshape(shape))
                start = stop
            torque, q, dq, ddq, *columns = arrays
            joints = tuple(JointRows(which, each) for (which, _), each in zip(head.joints, columns, strict=True))
            yield ObservedBlock(replace(head, joints=joints, torque=torque), Motion(q, dq, ddq))


def _arrays(block: ObservedBlock) -> list[Array]:
    motion = block.motion
    return [block.rows.torque, motion.q, motion.dq, motion.ddq, *(columns for _, columns in block.rows.joints)]
