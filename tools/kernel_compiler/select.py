"""Graph -> instructions: what one Thumb-2 instruction does of several values is done by one."""

from __future__ import annotations

from tools.kernel_compiler.graph import OPPOSITE, SWAPPED, WORD, Block, Graph, Value
from tools.kernel_compiler.machine import Ins, Part, Program, Reg, modified_immediate

_ALU = {"add": "add", "sub": "sub", "and": "and", "or": "orr", "xor": "eor"}
_SHIFTS = {"shl": "lsl", "asr": "asr"}
_LOADS = {4: "ldr", 2: "ldrh", 1: "ldrb"}
_STORES = {4: "str", 2: "strh", 1: "strb"}
_FLAGGED = {"add", "sub", "rsb", "and", "orr", "eor", "lsl", "asr"}  # can compare their result with zero by the way
_FAR = 4096  # beyond the reach of a load's or store's offset


def select(graph: Graph) -> Program:
    """The instructions of a graph, over any number of registers."""
    return _Selector(graph).run()


class _Selector:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.program = Program(graph.name)
        self.parts: dict[Block, Part] = {}
        self.regs: dict[Value, Reg] = {}
        self.constants: dict[int, Reg] = {}  # of the part being written
        self.code: list[Ins] = []
        self.memory = _memory_values(graph)
        self.uses = _uses(graph)
        self.folded: set[Value] = set()

    def run(self) -> Program:
        for block in self.graph.blocks:
            self.parts[block] = Part(len(self.parts))
            self.program.parts.append(self.parts[block])
            self._plan(block)
        for block in self.graph.blocks:
            self._enter(block)
            for value in block.values:
                if value not in self.folded:
                    self._value(value)
            self._leave(block)
        for block in self.graph.blocks:
            self._carry_phis(block)
        return self.program

    # What is folded into what

    def _plan(self, block: Block) -> None:
        for value in block.compared:
            zero = block.compared[1].is_const(0) and block.condition in ("eq", "ne")
            shifted = _is_shift(value) and not any(each.is_const() for each in block.compared)
            if self._alone(value, block) and ((zero and value.op == "and") or shifted):
                self.folded.add(value)
                break
        for value in reversed(block.values):
            if value not in self.folded:
                self._plan_value(value, block)

    def _plan_value(self, value: Value, block: Block) -> None:
        if value.op in ("load", "store"):
            if value.number == 0:
                self._plan_address(value.args[0], block)
            return
        if len(value.args) != 2 or value.op == "phi":
            return
        for position in (1, 0):
            inner = value.args[position]
            if self._alone(inner, block) and _folds(value, position, inner):
                self.folded.add(inner)
                return

    def _plan_address(self, address: Value, block: Block) -> None:
        """Let a load or store add base and index itself, and shift the index."""
        if address.op != "add" or address.args[1].is_const() or not self._alone(address, block):
            return
        self.folded.add(address)
        index = address.args[1]
        if _is_shift(index) and index.op == "shl" and index.args[1].number < 4 and self._alone(index, block):
            self.folded.add(index)

    def _alone(self, value: Value, block: Block) -> bool:
        return self.uses.get(value) == 1 and value.block is block

    # Registers and constants

    def _emit(
        self, op: str, d: Reg | None, u: list[Reg], imm: int | None = None, shift: tuple[str, int] | None = None
    ) -> None:
        self.code.append(Ins(op, [] if d is None else [d], u, imm, shift))

    def reg(self, value: Value) -> Reg:
        if value.op == "const":
            return self._constant(value.number)
        return self.regs[value]

    def _constant(self, number: int) -> Reg:
        if number not in self.constants:
            self.constants[number] = self.program.reg()
            self._emit("const", self.constants[number], [], number)
        return self.constants[number]

    def _second(self, value: Value) -> tuple[Reg, tuple[str, int] | None]:
        """An operand that may be shifted on the way."""
        if value in self.folded:
            return self.reg(value.args[0]), (_SHIFTS[value.op], value.args[1].number)
        return self.reg(value), None

    # Values

    def _value(self, value: Value) -> None:
        if value.op in ("const", "memory", "phi", "arg"):
            return
        if value.op == "store":
            self._memory(value, _STORES[value.width])
            return
        target = self.regs[value] = self.program.reg()
        match value.op:
            case "load":
                self._memory(value, _LOADS[value.width])
            case "ssat" | "usat":
                self._emit(value.op, target, [self.reg(value.args[0])], value.number)
            case "div":
                self._emit("udiv", target, [self.reg(each) for each in value.args])
            case "mul":
                self._multiply(target, *value.args)
            case "shl" | "asr":
                self._shift(target, value)
            case _:
                self._alu(target, value)

    def _memory(self, value: Value, op: str) -> None:
        address, offset = value.args[0], value.number
        stored = [self.reg(value.args[1])] if value.op == "store" else []
        target = None if stored else self.regs[value]
        if address in self.folded:
            index, shift = self._second(address.args[1])
            self._emit(op, target, [self.reg(address.args[0]), index, *stored], None, shift or ("lsl", 0))
            return
        base = self.reg(address)
        if not 0 <= offset < _FAR:
            base, offset = self._sum(base, offset), 0
        self._emit(op, target, [base, *stored], offset)

    def _sum(self, base: Reg, number: int) -> Reg:
        target = self.program.reg()
        self._emit("add", target, [base, self._constant(number)])
        return target

    def _multiply(self, target: Reg, a: Value, b: Value) -> None:
        if b.is_const():
            number = b.number
            for op, power in (("add", number - 1), ("rsb", number + 1)):
                if power > 1 and power & (power - 1) == 0:
                    self._emit(op, target, [self.reg(a), self.reg(a)], None, ("lsl", power.bit_length() - 1))
                    return
        self._emit("mul", target, [self.reg(a), self.reg(b)])

    def _shift(self, target: Reg, value: Value) -> None:
        inner, amount = value.args
        if inner in self.folded:  # shl then asr: a field, its sign extended
            left = inner.args[1].number
            lowest, bits = amount.number - left, 32 - amount.number
            self._emit("sbfx", target, [self.reg(inner.args[0])], lowest << 8 | bits)
        elif amount.is_const():
            self._emit(_SHIFTS[value.op], target, [self.reg(inner)], amount.number)
        else:
            self._emit(_SHIFTS[value.op], target, [self.reg(inner), self.reg(amount)])

    def _alu(self, target: Reg, value: Value) -> None:
        a, b = value.args
        op = value.op
        product = next((each for each in (a, b) if each in self.folded and each.op == "mul"), None)
        if product is not None:
            factors = [self.reg(each) for each in product.args]
            self._emit("mla" if op == "add" else "mls", target, [*factors, self.reg(b if product is a else a)])
        elif op == "and" and b.is_const() and _is_mask(b.number):
            lowest, inner = (a.args[1].number, a.args[0]) if a in self.folded else (0, a)
            self._emit("ubfx", target, [self.reg(inner)], lowest << 8 | b.number.bit_length())
        elif op == "sub" and (a in self.folded or _fits(a)):
            first = self.reg(b)
            if a.is_const():
                self._emit("rsb", target, [first], a.number)
            else:
                register, shift = self._second(a)
                self._emit("rsb", target, [first, register], None, shift)
        elif op == "add" and b.is_const() and (0 < b.number < _FAR or _fits(b)):
            self._emit("add", target, [self.reg(a)], b.number)
        elif op == "add" and b.is_const() and (0 < -b.number < _FAR or modified_immediate(-b.number) is not None):
            self._emit("sub", target, [self.reg(a)], -b.number)
        elif op != "add" and _fits(b):
            self._emit(_ALU[op], target, [self.reg(a)], b.number & WORD)
        else:
            if a in self.folded:
                a, b = b, a
            register, shift = self._second(b)
            self._emit(_ALU[op], target, [self.reg(a), register], None, shift)

    # Blocks

    def _enter(self, block: Block) -> None:
        part = self.parts[block]
        self.code, self.constants = part.code, {}
        if block is self.graph.blocks[0]:
            entering = [self.program.reg() for _ in range(self.graph.n_arguments)]
            self.program.fixed.update({reg: index for index, reg in enumerate(entering)})
            self.code.append(Ins("entry", entering))
            for value in block.values:
                if value.op == "arg":
                    self.regs[value] = self.program.reg()
                    self._emit("mov", self.regs[value], [entering[value.number]])
        for phi in block.phis:
            if phi not in self.memory:
                self.regs[phi] = self.program.reg()

    def _leave(self, block: Block) -> None:
        part = self.parts[block]
        part.targets = [self.parts[each] for each in block.targets]
        if block.condition is not None:
            part.condition = self._compare(block.condition, *block.compared)
        elif block.result is not None:
            result = self.program.reg()
            self.program.fixed[result] = 0
            if block.result.is_const():
                self._emit("const", result, [], block.result.number)
            else:
                self._emit("mov", result, [self.reg(block.result)])
            self._emit("return", None, [result])

    def _compare(self, condition: str, a: Value, b: Value) -> str:
        if a in self.folded and a.op == "and":
            mask = a.args[1]
            if _fits(mask):
                self._emit("tst", None, [self.reg(a.args[0])], mask.number & WORD)
            else:
                self._emit("tst", None, [self.reg(a.args[0]), self.reg(mask)])
            return condition
        if a in self.folded or (a.is_const() and not b.is_const()):
            a, b, condition = b, a, SWAPPED[condition]
        if b.is_const(0) and condition in ("eq", "ne", "lt", "ge") and self._by_the_way(self.reg(a)):
            return {"lt": "mi", "ge": "pl"}.get(condition, condition)
        if _fits(b):
            self._emit("cmp", None, [self.reg(a)], b.number & WORD)
        elif b.is_const() and modified_immediate(-b.number) is not None:
            self._emit("cmn", None, [self.reg(a)], -b.number & WORD)
        else:
            register, shift = self._second(b)
            self._emit("cmp", None, [self.reg(a), register], None, shift)
        return condition

    def _by_the_way(self, register: Reg) -> bool:
        """Let the instruction that gave `register` compare it with zero, when there is one in this part that can."""
        for index, each in enumerate(self.code):
            if each.d == [register] and each.op in _FLAGGED:
                if each.imm is not None and each.op not in ("lsl", "asr") and modified_immediate(each.imm) is None:
                    return False
                each.sets_flags = True
                for later in self.code[index + 1 :]:
                    later.keeps_flags = True
                return True
        return False

    def _carry_phis(self, block: Block) -> None:
        """Copy each phi's sources to a register of its own at the end of the blocks before; from there at its start."""
        phis = [phi for phi in block.phis if phi not in self.memory]
        if not phis:
            return
        carriers = [self.program.reg() for _ in phis]
        for index, each in enumerate(block.predecessors):
            self.code, self.constants = self._edge(self.parts[each], self.parts[block]).code, {}
            for phi, carrier in zip(phis, carriers, strict=True):
                source = phi.args[index]
                if source.is_const():
                    self._emit("const", carrier, [], source.number)
                else:
                    self._emit("mov", carrier, [self.reg(source)])
        arrivals = [Ins("mov", [self.regs[phi]], [carrier]) for phi, carrier in zip(phis, carriers, strict=True)]
        self.parts[block].code[:0] = arrivals

    def _edge(self, source: Part, target: Part) -> Part:
        """The part that only runs on the way from one part to the other."""
        if len(source.targets) == 1:
            return source
        between = Part(len(self.program.parts), targets=[target])
        source.targets[source.targets.index(target)] = between
        self.program.parts.insert(self.program.parts.index(source) + 1, between)
        return between


def opposite(condition: str) -> str:
    """The condition that holds when the other does not."""
    return {"mi": "pl", "pl": "mi"}.get(condition) or OPPOSITE[condition]


def _is_shift(value: Value) -> bool:
    return value.op in _SHIFTS and value.args[1].is_const() and 0 < value.args[1].number < 32


def _is_mask(number: int) -> bool:
    return number > 0 and number & (number + 1) == 0


def _fits(value: Value) -> bool:
    return value.is_const() and modified_immediate(value.number) is not None


def _folds(user: Value, position: int, inner: Value) -> bool:
    """Can `user` do what `inner`, its operand at `position`, does?"""
    other = user.args[1 - position]
    if user.op in ("add", "sub") and inner.op == "mul" and not inner.args[1].is_const():
        return position == 1 or user.op == "add"
    if not _is_shift(inner):
        return False
    amount = inner.args[1].number
    if user.op == "asr":
        return inner.op == "shl" and position == 0 and other.is_const() and amount <= other.number < 32
    if user.op == "and" and other.is_const():
        return inner.op == "asr" and _is_mask(other.number) and amount + other.number.bit_length() <= 32
    return user.op in ("add", "sub", "and", "or", "xor") and not other.is_const()


def _memory_values(graph: Graph) -> set[Value]:
    found = {value for block in graph.blocks for value in block.values if value.op in ("store", "memory")}
    size = -1
    while size != len(found):
        size = len(found)
        found |= {phi for block in graph.blocks for phi in block.phis if any(each in found for each in phi.args)}
    return found


def _uses(graph: Graph) -> dict[Value, int]:
    """How often each value is read; by a phi, which reads elsewhere, counts as twice."""
    uses: dict[Value, int] = {}
    for block in graph.blocks:
        for value in block.values:
            for each in value.args:
                uses[each] = uses.get(each, 0) + (2 if value.op == "phi" else 1)
        for each in block.read():
            uses[each] = uses.get(each, 0) + 1
    return uses
