"""Syntax tree -> graph: locals become values, joins of control become phis.

Source of the method: Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", CC 2013.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tools.kernel_compiler.errors import NotAKernel
from tools.kernel_compiler.graph import Block, Graph, Value, signed
from tools.kernel_compiler.simplify import simplified
from tools.kernel_compiler.source import POINTERS, Kernel, constant, pointer_cast

_MEMORY = "(memory)"  # no local can have this name
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "asr", ast.FloorDiv: "div",
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


def build(kernel: Kernel) -> Graph:
    """The graph of a kernel.

    Raises:
        NotAKernel: the kernel uses what the language does not have; the error names the line.
    """
    builder = _Builder(kernel)
    builder.statements(kernel.body)
    if builder.open:
        builder.give_back(builder.const(0))
    builder.graph.sweep()
    return builder.graph


class _Builder:
    """Walks the statements; `block` is where values go, `open` whether control can get there."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.graph = Graph(kernel.name, len(kernel.arguments))
        self.types = dict(kernel.arguments)
        self.defined: dict[Block, dict[str, Value]] = {}
        self.unsealed: dict[Block, dict[str, Value]] = {}
        self.block = self.start([])
        self.open = True
        for index, (name, _) in enumerate(kernel.arguments):
            self.write(name, self.value("arg", [], index))
        self.write(_MEMORY, self.value("memory", []))

    # Blocks

    def start(self, predecessors: Sequence[Block], sealed: bool = True) -> Block:
        block = Block(len(self.graph.blocks))
        self.graph.blocks.append(block)
        self.defined[block] = {}
        if not sealed:
            self.unsealed[block] = {}
        for each in predecessors:
            self.link(each, block)
        return block

    def link(self, source: Block, target: Block) -> None:
        source.targets.append(target)
        target.predecessors.append(source)

    def seal(self, block: Block) -> None:
        for name, phi in self.unsealed.pop(block).items():
            phi.args = [self.read(name, each) for each in block.predecessors]

    def go_on_in(self, block: Block) -> None:
        self.block = block
        self.open = bool(block.predecessors)

    # Locals

    def write(self, name: str, value: Value) -> None:
        self.defined[self.block][name] = value

    def read(self, name: str, block: Block) -> Value:
        found = self.defined[block].get(name)
        if found is not None:
            return found
        if block in self.unsealed:
            found = self.unsealed[block][name] = self.phi(block)
        elif len(block.predecessors) == 1:
            found = self.read(name, block.predecessors[0])
        elif not block.predecessors:  # assigned on no way here
            found = Value("const", [], block)
            block.values.append(found)
        else:
            found = self.defined[block][name] = self.phi(block)
            found.args = [self.read(name, each) for each in block.predecessors]
            if len(set(found.args)) == 1 and found not in found.args:  # the same by every way
                block.values.remove(found)
                found = found.args[0]
        self.defined[block][name] = found
        return found

    def phi(self, block: Block) -> Value:
        value = Value("phi", [], block)
        block.values.insert(0, value)
        return value

    # Values

    def const(self, number: int) -> Value:
        return self.value("const", [], signed(number))

    def value(self, op: str, args: list[Value], number: int = 0, width: int = 4) -> Value:
        value = Value(op, args, self.block, number, width)
        better = simplified(value, self)
        if better is None:
            self.block.values.append(value)
            return value
        return better

    # Expressions

    def expression(self, node: ast.expr) -> Value:
        number = constant(node, self.kernel.constants)
        if number is not None:
            if not -(1 << 30) <= number < 1 << 30:
                raise NotAKernel(node, f"constant {number}", "-2^30 .. 2^30 - 1, what viper takes for an integer")
            return self.const(number)
        match node:
            case ast.Name(id=name):
                if name not in self.types:
                    raise NotAKernel(node, f"name {name!r}", "locals assigned above, arguments, const() names")
                return self.read(name, self.block)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.value("sub", [self.const(0), self.expression(operand)])
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                a, b = self.expression(left), self.expression(right)
                return self.value("sub", [a, self.value("mul", [self.value("div", [a, b]), b])])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self.value(_BINARY[type(op)], [self.expression(left), self.expression(right)])
            case ast.Subscript():
                address, offset, width = self.address(node)
                return self.value("load", [address, self.read(_MEMORY, self.block)], offset, width)
            case ast.Call(args=[argument]) if pointer_cast(node) or ast.unparse(node.func) == "int":
                return self.expression(argument)
            case _:
                raise NotAKernel(
                    node, f"expression {ast.unparse(node)}", "+ - * << >> & | ^ // % p[i] ptr32() and names"
                )

    def address(self, node: ast.Subscript) -> tuple[Value, int, int]:
        """Where an element lies: an address, an offset in bytes that is constant, and the element's size."""
        kind = self.types.get(node.value.id) if isinstance(node.value, ast.Name) else pointer_cast(node.value)
        if kind not in POINTERS:
            raise NotAKernel(node, f"index into {ast.unparse(node.value)}", "a local of type ptr32, ptr16 or ptr8")
        width = POINTERS[kind]
        base, offset = _apart(self.expression(node.value))
        index, elements = _apart(self.expression(node.slice))
        offset = signed(offset + elements * width)
        if index.is_const():
            return base, signed(offset + index.number * width), width
        scaled = self.value("shl", [index, self.const(width >> 1)])
        return self.value("add", [base, scaled]), offset, width

    # Statements

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            if not self.open:
                return  # after a return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.expression(value), pointer_cast(value) or self._type(value))
            case ast.AugAssign(target=target, op=op, value=value):
                now = ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target
                self.assign(target, self.expression(ast.copy_location(ast.BinOp(now, op, value), node)), "int")
            case ast.If(test=test, body=body, orelse=orelse):
                self.branch(test, body, orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self.loop(test, body)
            case ast.Return(value=value):
                self.give_back(self.const(0) if value is None else self.expression(value))
            case ast.Pass():
                pass
            case _:
                raise NotAKernel(node, ast.unparse(node).splitlines()[0], "assignments, if, while, return")

    def _type(self, node: ast.expr) -> str:
        return self.types.get(node.id, "int") if isinstance(node, ast.Name) else "int"

    def assign(self, target: ast.expr, value: Value, kind: str) -> None:
        if isinstance(target, ast.Name):
            if self.types.setdefault(target.id, kind) != kind:
                raise NotAKernel(target, f"{target.id} as {kind}", f"{self.types[target.id]}, as it was assigned first")
            self.write(target.id, value)
        elif isinstance(target, ast.Subscript):
            address, offset, width = self.address(target)
            before = self.read(_MEMORY, self.block)
            self.write(_MEMORY, self.value("store", [address, value, before], offset, width))
        else:
            raise NotAKernel(target, f"assignment to {ast.unparse(target)}", "a local or p[i]")

    def give_back(self, value: Value) -> None:
        self.block.result = value
        self.open = False

    def branch(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        yes, no = self.condition(test)
        ends: list[Block] = []
        for block, nodes in ((yes, body), (no, orelse)):
            self.go_on_in(block)
            self.statements(nodes)
            if self.open:
                ends.append(self.block)
        self.go_on_in(self.start(ends))

    def loop(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        head = self.start([self.block], sealed=False)
        self.go_on_in(head)
        yes, no = self.condition(test)
        self.go_on_in(yes)
        self.statements(body)
        if self.open:
            self.link(self.block, head)
        self.seal(head)
        self.go_on_in(no)

    def condition(self, test: ast.expr) -> tuple[Block, Block]:
        """End the block with a branch: where it goes when `test` holds, and when it does not."""
        match test:
            case ast.BoolOp(op=op, values=values):
                return self._both_or_either(isinstance(op, ast.And), values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yes, no = self.condition(operand)
                return no, yes
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                return self._compare(_COMPARED[type(op)], self.expression(left), self.expression(right))
            case _:
                return self._compare("ne", self.expression(test), self.const(0))

    def _both_or_either(self, both: bool, tests: Sequence[ast.expr]) -> tuple[Block, Block]:
        decided: list[Block] = []
        going_on: Block | None = None
        for test in tests:
            if going_on is not None:
                self.go_on_in(going_on)
            yes, no = self.condition(test)
            going_on, early = (yes, no) if both else (no, yes)
            decided.append(early)
        assert going_on is not None
        join = self.start([])
        for each in decided:
            self.link(each, join)
        return (going_on, join) if both else (join, going_on)

    def _compare(self, condition: str, a: Value, b: Value) -> tuple[Block, Block]:
        self.block.condition, self.block.compared = condition, [a, b]
        source = self.block
        return self.start([source]), self.start([source])


def _apart(value: Value) -> tuple[Value, int]:
    """A sum with a constant as its two parts; the constant is 0 where there is none."""
    if value.op == "add" and value.args[1].is_const():
        return value.args[0], value.args[1].number
    return value, 0
