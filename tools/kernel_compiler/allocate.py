"""Machine registers for a program: copies are merged, what is left is coloured, what has no colour goes to the stack.

Source of the method: Chaitin, "Register Allocation and Spilling via Graph Coloring", 1982; Briggs, 1992.
"""

from __future__ import annotations

from tools.kernel_compiler.liveness import Neighbours, loop_weights, neighbours
from tools.kernel_compiler.machine import LR, Ins, Program, Reg

# In the order they are taken: low ones have shorter instructions; r8..r11 must be saved; lr is saved by the assembler.
MACHINE_REGISTERS = (0, 1, 2, 3, 4, 5, 6, 7, 12, LR, 8, 9, 10, 11)


def allocate(program: Program) -> dict[Reg, int]:
    """A machine register for each register of the program, which gets the stack traffic that this takes."""
    while True:
        classes = _Classes(program)
        colours, uncoloured = _colour(classes, program)
        if not uncoloured:
            _drop_copies(program, classes)
            return {reg: colours[classes.find(reg)] for reg in classes.parent}
        for each in uncoloured:
            _spill(program, {reg for reg in classes.parent if classes.find(reg) is each})


class _Classes:
    """Registers that copies connect and nothing keeps apart: each class gets one machine register."""

    def __init__(self, program: Program) -> None:
        self.near: Neighbours = neighbours(program)
        self.parent = {reg: reg for reg in self.near}
        self.fixed = dict(program.fixed)
        for part in program.parts:
            for ins in part.code:
                if ins.op == "mov":
                    self._merge(self.find(ins.d[0]), self.find(ins.u[0]))

    def find(self, reg: Reg) -> Reg:
        while self.parent[reg] is not reg:
            reg = self.parent[reg]
        return reg

    def _merge(self, a: Reg, b: Reg) -> None:
        if a is b or b in self.near[a] or (a in self.fixed and b in self.fixed and self.fixed[a] != self.fixed[b]):
            return
        place = self.fixed.get(a, self.fixed.get(b))
        near = self.near[a] | self.near[b]
        if place is not None:
            if any(self.fixed.get(each) == place for each in near):
                return
            self.fixed[a] = place
        self.parent[b] = a
        self.near[a] = near
        for each in self.near.pop(b):
            self.near[each].discard(b)
            self.near[each].add(a)
        a.short = False


def _colour(classes: _Classes, program: Program) -> tuple[dict[Reg, int], list[Reg]]:
    near = {reg: set(others) for reg, others in classes.near.items()}
    cost = _costs(program, classes)
    stack: list[Reg] = []
    left = [reg for reg in sorted(near, key=lambda reg: reg.number) if reg not in classes.fixed]
    while left:
        free = [reg for reg in left if len(near[reg]) < len(MACHINE_REGISTERS)]
        chosen = free[0] if free else min(left, key=lambda reg: cost[reg] / (1 + len(near[reg])))
        left.remove(chosen)
        stack.append(chosen)
        for other in near[chosen]:
            near[other].discard(chosen)
    colours = dict[Reg, int]()
    colours.update({classes.find(reg): place for reg, place in classes.fixed.items() if classes.find(reg) in near})
    uncoloured: list[Reg] = []
    for reg in reversed(stack):
        taken = {colours[other] for other in classes.near[reg] if other in colours}
        choice = next((place for place in MACHINE_REGISTERS if place not in taken), None)
        if choice is None:
            uncoloured.append(reg)
        else:
            colours[reg] = choice
    return colours, uncoloured


def _costs(program: Program, classes: _Classes) -> dict[Reg, float]:
    """Stack traffic that spilling each class would take."""
    weights = loop_weights(program)
    cost = dict.fromkeys(classes.near, 0.0)
    for part in program.parts:
        for ins in part.code:
            for reg in (*ins.d, *ins.u):
                cost[classes.find(reg)] += float("inf") if reg.short else weights[part]
    return cost


def _spill(program: Program, members: set[Reg]) -> None:
    """Keep these registers, one class, on the stack; a constant is made anew at each use instead."""
    made = [ins for part in program.parts for ins in part.code if members & set(ins.d)]
    constant = made[0] if len(made) == 1 and made[0].op == "const" else None
    slot = program.slots
    program.slots += constant is None
    for part in program.parts:
        code: list[Ins] = []
        at_hand: Reg | None = None  # holds the value since the instruction before
        for ins in part.code:
            if ins is constant or (ins.op == "mov" and members >= {*ins.d, *ins.u}):
                continue
            read, written = members & set(ins.u), members & set(ins.d)
            if read:
                reg = at_hand or program.reg(short=True)
                if at_hand is None:
                    again = ("const", constant.imm) if constant else ("get_slot", slot)
                    code.append(Ins(again[0], [reg], [], again[1], keeps_flags=True))
                ins.u = [reg if each in read else each for each in ins.u]
                at_hand = reg
            code.append(ins)
            if written:
                reg = at_hand = program.reg(short=True)
                ins.d = [reg if each in written else each for each in ins.d]
                code.append(Ins("put_slot", [], [reg], slot, keeps_flags=True))
            elif not read:
                at_hand = None
        part.code = code


def _drop_copies(program: Program, classes: _Classes) -> None:
    for part in program.parts:
        part.code = [
            ins for ins in part.code if ins.op != "mov" or classes.find(ins.d[0]) is not classes.find(ins.u[0])
        ]
