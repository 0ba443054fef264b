"""Every value is computed once, and loaded once while no store can have changed it; clamps are one instruction."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tools.kernel_compiler.graph import Block, Graph, Value, latest


def optimise(graph: Graph, reach: int) -> None:
    """Rewrite a graph into a cheaper one that computes the same.

    Args:
        graph: changed in place.
        reach: values after its last use that a loaded one is kept; later it is loaded again. What is kept long has
            to be put on the stack, and that costs more than loading it from where it is.
    """
    _share(graph, reach)
    graph.sweep()
    while _saturate(graph):
        graph.sweep()


def immediate_dominators(graph: Graph) -> dict[Block, Block | None]:
    """For each block the last one that every way to it passes, None for the first.

    Source: Cooper, Harvey & Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
    """
    order = _reverse_postorder(graph.blocks[0])
    rank = {block: index for index, block in enumerate(order)}
    idom: dict[Block, Block] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            best: Block | None = None
            for each in block.predecessors:
                if each not in idom:
                    continue
                other = each
                while best is not None and best is not other:
                    if rank[best] > rank[other]:
                        best = idom[best]
                    else:
                        other = idom[other]
                best = other
            assert best is not None
            if idom.get(block) is not best:
                idom[block] = best
                changed = True
    return {block: None if block is order[0] else idom[block] for block in order}


def _reverse_postorder(first: Block) -> list[Block]:
    order: list[Block] = []
    seen = {first}
    stack = [(first, iter(first.targets))]
    while stack:
        block, targets = stack[-1]
        for each in targets:
            if each not in seen:
                seen.add(each)
                stack.append((each, iter(each.targets)))
                break
        else:
            order.append(block)
            stack.pop()
    return order[::-1]


def _share(graph: Graph, reach: int) -> None:
    """Value numbering, scoped by dominance."""
    known: dict[Block, dict[Hashable, Value]] = {}
    used: dict[Value, int] = {}  # when each was last asked for
    by: dict[Value, Value] = {}  # what stands for a value that need not be computed again
    clock = 0
    for block, above in immediate_dominators(graph).items():
        known[block] = dict(known[above]) if above is not None else {}
        for value in list(block.values):
            clock += 1
            value.args = [latest(each, by) for each in value.args]
            for each in value.args:
                used[each] = clock
            if value.op in ("phi", "store", "arg", "memory"):
                continue
            memory: Value | None = None
            if value.op == "load":
                memory = _last_change(value, value.args[1], {})
                if memory.op == "store" and _same_place(memory, value):
                    stored = latest(memory.args[1], by)
                    if stored.op == "const" or clock - used.get(stored, clock) <= reach:
                        by[value] = stored
                        used[stored] = clock
                        continue
            address = value.args[:1] if value.op == "load" else value.args
            key = (value.op, value.number, value.width, *map(id, address), id(memory))
            if value.op == "const":
                key = (value.op, value.number)
            before = known[block].get(key)
            if before is None or (value.op == "load" and clock - used.get(before, 0) > reach):
                known[block][key] = value
            else:
                by[value] = before
                used[before] = clock
            used[value] = clock
    graph.replace(by)


def _last_change(load: Value, memory: Value, found: dict[Value, Value]) -> Value:
    """The memory that a load may as well read: stores that surely go elsewhere are looked through.

    `found` keeps what is known of joins, itself for one that is being looked at: a way round a loop changes nothing.
    """
    while memory.op == "store" and _elsewhere(memory, load):
        memory = memory.args[2]
    if memory.op != "phi":
        return memory
    if memory not in found:
        found[memory] = memory
        ways = {_last_change(load, each, found) for each in memory.args} - {memory}
        if len(ways) == 1:
            way = ways.pop()
            under_way = way.op == "phi" and found.get(way) is way
            found[memory] = memory if under_way else way
    return found[memory]


def _elsewhere(store: Value, load: Value) -> bool:
    """Do they touch different bytes of what one address points to?"""
    apart = store.number + store.width <= load.number or load.number + load.width <= store.number
    return store.args[0] is load.args[0] and apart


def _same_place(store: Value, load: Value) -> bool:
    return store.args[0] is load.args[0] and store.number == load.number and store.width == load.width == 4


@dataclass(frozen=True)
class _Clamp:
    """A branch that does no more than to clamp a value: to -2^(bits - 1) .. 2^(bits - 1) - 1, or to 0 .. 2^bits - 1."""

    op: str  # "ssat" or "usat"
    bits: int
    of: Value
    phi: Value  # what it gives


def _saturate(graph: Graph) -> bool:
    """Find a clamp; make it one instruction."""
    for block in graph.blocks:
        clamp = _two_bounds(block, graph) or _one_look(block)
        if clamp is not None:
            clamped = Value(clamp.op, [clamp.of], block, clamp.bits)
            block.values.append(clamped)
            _skip(block, clamp.phi.block, clamped, clamp.phi, graph)
            return True
    return False


def _two_bounds(block: Block, graph: Graph) -> _Clamp | None:
    """Of `if x > 2^n - 1: x = 2^n - 1` at the end of this block, followed by `if x < -2^n: x = -2^n` (or 0)."""
    upper = _bound(block, "gt")
    lower = None if upper is None else _bound(upper.block, "lt")
    if upper is None or lower is None or upper.block.compared[0] is not upper:
        return None
    if any(value is not upper and value.op != "const" for value in upper.block.values):
        return None  # something else happens between the two
    high, low = block.compared[1].number, upper.block.compared[1].number
    if high & (high + 1) or low not in (0, -1 - high):
        return None
    readers = [each for other in graph.blocks for value in other.values for each in value.args if each is upper]
    readers += [each for other in graph.blocks for each in other.read() if each is upper]
    if len(readers) != 2:  # the second comparison and the second phi
        return None
    return _Clamp("usat" if low == 0 else "ssat", high.bit_length() + (low != 0), block.compared[0], lower)


def _one_look(block: Block) -> _Clamp | None:
    """Of `if (x + 2^n) >> (n + 1): x = (2^n - 1) ^ (x >> 31)` at the end of this block."""
    if block.condition != "ne" or not block.compared[1].is_const(0):
        return None
    beyond, other = block.targets
    join = next(iter(beyond.targets), None)
    way = _way(block, other, join)
    if join is None or beyond.predecessors != [block] or set(join.predecessors) != {beyond, way}:
        return None
    if beyond.condition is not None or len(phis := list(join.phis)) != 1:
        return None
    looked_at = block.compared[0]
    bounded, x = (phis[0].args[join.predecessors.index(each)] for each in (beyond, way) if each is not None)
    if any(value not in (bounded, *bounded.args) and value.op != "const" for value in beyond.values):
        return None  # something else happens on the way
    if looked_at.op != "asr" or bounded.op != "xor" or not bounded.args[1].is_const():
        return None
    total, high = looked_at.args[0], bounded.args[1].number
    bits = high.bit_length() + 1
    if high < 1 or high & (high + 1) or not _shifted(bounded.args[0], x, 31) or not _shifted(looked_at, total, bits):
        return None
    one_look = total.op == "add" and total.args[0] is x and total.args[1].is_const(high + 1)
    return _Clamp("ssat", bits, x, phis[0]) if one_look else None


def _shifted(value: Value, x: Value, bits: int) -> bool:
    """Is a value x >> bits?"""
    return value.op == "asr" and value.args[0] is x and value.args[1].is_const(bits)


def _bound(block: Block, condition: str) -> Value | None:
    """The phi of `if x <condition> c: x = c` that ends this block."""
    if block.condition != condition or not block.compared[1].is_const():
        return None
    taken, other = block.targets
    join = next(iter(taken.targets), None)
    ways = [_way(block, each, join) for each in (taken, other)]
    if join is None or set(join.predecessors) != set(ways) or len(phis := list(join.phis)) != 1:
        return None
    bounded, unchanged = (phis[0].args[join.predecessors.index(each)] for each in ways if each is not None)
    if unchanged is block.compared[0] and bounded.is_const(block.compared[1].number):
        return phis[0]
    return None


def _way(block: Block, target: Block, join: Block | None) -> Block | None:
    """The block from which control reaches `join` when `block` goes to `target` and nothing happens on the way."""
    if target is join:
        return block
    plain = target.targets == [join] and target.predecessors == [block] and target.condition is None
    return target if plain and all(value.op == "const" for value in target.values) else None


def _skip(block: Block, join: Block, clamped: Value, phi: Value, graph: Graph) -> None:
    """Let `block` go on in `join` at once, with `clamped` for what the join's phi was."""
    graph.replace({phi: clamped})
    join.values.remove(phi)
    for each in block.targets:
        each.predecessors.remove(block)
    block.condition, block.compared, block.targets = None, [], [join]
    join.predecessors = [block]
