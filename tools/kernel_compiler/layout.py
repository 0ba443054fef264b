"""Parts in a row: copies are gone, so empty parts vanish; a part that goes on in the next one needs no branch."""

from __future__ import annotations

from tools.kernel_compiler.machine import Part, Program


def lay_out(program: Program) -> list[Part]:
    """The parts in the order of their code; targets point past empty parts."""
    for part in program.parts:
        part.targets = [_destination(each) for each in part.targets]
        if part.condition is not None and part.targets[0] is part.targets[1]:
            part.condition, part.targets = None, part.targets[:1]
            if part.code and part.code[-1].op in ("cmp", "cmn", "tst"):
                part.code.pop()
    return _turn_loops(_in_order(_destination(program.parts[0])))


def _in_order(first: Part) -> list[Part]:
    """Every part before those it goes to, but for loops; of a branch, what happens when its condition holds is first.

    So the last alternative of an if, which kernels keep for what happens most of the time, runs into what follows.
    """
    order: list[Part] = []
    seen = {first}
    stack = [(first, iter(first.targets[::-1]))]
    while stack:
        part, targets = stack[-1]
        for each in targets:
            if each not in seen:
                seen.add(each)
                stack.append((each, iter(each.targets[::-1])))
                break
        else:
            order.append(part)
            stack.pop()
    return order[::-1]


def _turn_loops(order: list[Part]) -> list[Part]:
    """Put the condition of a loop behind its body: one branch a turn instead of two."""
    for head in list(order):
        at = order.index(head)
        last = max((index for index, each in enumerate(order) if index > at and head in each.targets), default=None)
        if last is None or head.condition is None or order[last].condition is not None:
            continue
        following = order[last + 1] if last + 1 < len(order) else None
        if following in head.targets and order[at + 1] in head.targets:
            order[at : last + 1] = [*order[at + 1 : last + 1], head]
    return order


def _destination(part: Part) -> Part:
    seen: set[Part] = set()
    while not part.code and part.condition is None and part.targets and part not in seen:
        seen.add(part)
        part = part.targets[0]
    return part
