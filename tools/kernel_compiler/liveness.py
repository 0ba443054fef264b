"""Which registers still matter where, and so which must not share a machine register."""

from __future__ import annotations

from tools.kernel_compiler.machine import Part, Program, Reg

Neighbours = dict[Reg, set[Reg]]


def live_at_end(program: Program) -> dict[Part, set[Reg]]:
    """Registers that are read after each part."""
    live: dict[Part, set[Reg]] = {part: set() for part in program.parts}
    changed = True
    while changed:
        changed = False
        for part in reversed(program.parts):
            after: set[Reg] = set()
            for target in part.targets:
                after |= _live_at_start(target, live[target])
            if after != live[part]:
                live[part] = after
                changed = True
    return live


def _live_at_start(part: Part, after: set[Reg]) -> set[Reg]:
    live = set(after)
    for ins in reversed(part.code):
        live -= set(ins.d)
        live |= set(ins.u)
    return live


def neighbours(program: Program) -> Neighbours:
    """Registers that hold different things at the same time. A copy and its source do not."""
    found: Neighbours = {}
    at_end = live_at_end(program)
    for part in program.parts:
        live = set(at_end[part])
        for ins in reversed(part.code):
            for each in (*ins.d, *ins.u):
                found.setdefault(each, set())
            others = live - set(ins.u) if ins.op == "mov" else set(live)
            if ins.op == "ldrd":
                # An early Cortex-M3 may lose the base when such a load into it is interrupted (erratum 602117).
                others |= set(ins.u)
            for each in ins.d:
                for other in others | set(ins.d):
                    if other is not each:
                        found[each].add(other)
                        found.setdefault(other, set()).add(each)
            live -= set(ins.d)
            live |= set(ins.u)
    return found


def loop_weights(program: Program) -> dict[Part, int]:
    """How much an instruction of each part counts: 10 for every loop around it."""
    order = {part: index for index, part in enumerate(program.parts)}
    weights = {part: 1 for part in program.parts}
    for part in program.parts:
        for target in part.targets:
            if order[target] <= order[part]:  # the source's order: only loops go back
                for index in range(order[target], order[part] + 1):
                    weights[program.parts[index]] *= 10
    return weights
