"""A kernel as @micropython.asm_thumb function of an ARMv7-M board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.kernel_compiler.allocate import allocate
from tools.kernel_compiler.build import build
from tools.kernel_compiler.encode import Code, encode
from tools.kernel_compiler.errors import OutOfReach
from tools.kernel_compiler.layout import lay_out
from tools.kernel_compiler.liveness import loop_weights
from tools.kernel_compiler.machine import Part, Program, Reg
from tools.kernel_compiler.pairs import pair
from tools.kernel_compiler.select import opposite, select
from tools.kernel_compiler.source import Kernel
from tools.kernel_compiler.values import optimise

_CONDITIONS = {"eq": 0, "ne": 1, "mi": 4, "pl": 5, "ge": 10, "lt": 11, "gt": 12, "le": 13}
_RANGES = {
    "b": (-2048, 2046),
    "bcc": (-256, 254),
    "cbz": (0, 126),
    "b_w": (-(1 << 24), (1 << 24) - 2),
    "bcc_w": (-(1 << 20), (1 << 20) - 2),
}
_REACHES = (1 << 20, 120, 60, 30, 15, 8)  # how long loaded values are kept: each is tried, the cheapest stands
_SAVED = range(8, 12)  # of the registers a caller relies on, those that the assembler's own prologue leaves out


@dataclass
class _Branch:
    kind: str  # b, bcc, cbz
    target: Part
    condition: str = ""
    register: int = 0
    wide: bool = False

    @property
    def size(self) -> int:
        return 4 if self.wide else 2


@dataclass(frozen=True)
class Function:
    """A kernel in Thumb.

    Attributes:
        source: the asm_thumb function.
        codes: its instructions, prologue and epilogue of the assembler left out, as (label or None, code).
    """

    name: str
    source: str
    codes: tuple[Code, ...]


def compile_kernel(kernel: Kernel) -> Function:
    """Thumb of a kernel.

    Raises:
        NotAKernel: the kernel uses what the language does not have.
    """
    return min((_compile(kernel, reach) for reach in _REACHES), key=lambda each: each[0])[1]


def _compile(kernel: Kernel, reach: int) -> tuple[int, Function]:
    """Thumb of a kernel, and what it costs: its instructions, those in a loop tenfold."""
    graph = build(kernel)
    optimise(graph, reach)
    program = select(graph)
    pair(program)
    place = allocate(program)
    weights = loop_weights(program)
    cost = sum(weights[part] for part in program.parts for ins in part.code if ins.op not in ("entry", "return"))
    return cost, _Writer(kernel, program, place).write()


class _Writer:
    def __init__(self, kernel: Kernel, program: Program, place: Mapping[Reg, int]) -> None:
        self.kernel, self.program, self.place = kernel, program, place
        self.order = lay_out(program)
        used = {place[reg] for part in self.order for ins in part.code for reg in (*ins.d, *ins.u)}
        self.saved = sorted(used & set(_SAVED))
        self.end = Part(-1)

    def write(self) -> Function:
        items = [*self._frame(push=True), *self._body(), self.end, *self._frame(push=False)]
        self._stretch(items)
        places, _ = self._places(items)
        wanted = {each.target for each in items if isinstance(each, _Branch)}
        labels = {part: f"L{index}" for index, part in enumerate(part for part in places if part in wanted)}
        lines: list[str] = []
        codes: list[Code] = []
        at = 0
        for item in items:
            if isinstance(item, Part):
                if item in labels:
                    lines.append(f"label({labels[item]})")
                continue
            code = item if isinstance(item, Code) else self._branch_code(item, places[item.target] - at - 4, labels)
            lines.append(_line(code))
            codes.append(code)
            at += 2 * len(code.halfwords)
        arguments = ", ".join(f"r{index}" for index in range(len(self.kernel.arguments)))
        head = f"@micropython.asm_thumb\ndef {self.kernel.name}({arguments}):\n"
        return Function(self.kernel.name, head + "".join(f"    {line}\n" for line in lines), tuple(codes))

    def _frame(self, push: bool) -> list[Code]:
        """Save or restore what the assembler does not, and make room for the slots."""
        codes: list[Code] = []
        if self.saved:
            registers = sum(1 << each for each in self.saved)
            text = "{" + ", ".join(f"r{each}" for each in self.saved) + "}"
            if len(self.saved) == 1:
                words = (0xF84D, 0x0D04 | self.saved[0] << 12) if push else (0xF85D, 0x0B04 | self.saved[0] << 12)
            else:
                words = (0xE92D if push else 0xE8BD, registers)
            codes.append(Code(words, f"{'push.w' if push else 'pop.w'} {text}"))
        if self.program.slots:
            size = self.program.slots
            opcode, text = (0xB080, "sub") if push else (0xB000, "add")
            codes.append(Code((opcode | size,), f"{text} sp, #{4 * size}"))
        return codes if push else codes[::-1]

    def _body(self) -> list[Code | _Branch | Part]:
        items: list[Code | _Branch | Part] = []
        for part, following in zip(self.order, [*self.order[1:], None], strict=True):
            items.append(part)
            code = list(part.code)
            branch: _Branch | None = None
            if part.condition is not None:
                condition, target = part.condition, part.targets[0]
                if target is following:
                    condition, target = opposite(condition), part.targets[1]
                branch = _Branch("bcc", target, condition)
                if condition in ("eq", "ne") and code and code[-1].op == "cmp" and code[-1].imm == 0:
                    register = self.place[code[-1].u[0]]
                    if register < 8 and self._near(target, part):
                        code.pop()
                        branch = _Branch("cbz", target, condition, register)
                rest = part.targets[1] if branch.target is part.targets[0] else part.targets[0]
            else:
                rest = part.targets[0] if part.targets else self.end
            for ins in code:
                items += encode(ins, self.place)
            if branch is not None:
                items.append(branch)
            if rest is not following and not (rest is self.end and following is None):
                items.append(_Branch("b", rest))
        return items

    def _near(self, target: Part, part: Part) -> bool:
        """Is a part surely within the forward reach of cbz, whatever its branches become?"""
        start, stop = self.order.index(part), self.order.index(target)
        if stop <= start:
            return False
        size = 4
        for each in self.order[start + 1 : stop]:
            size += 8 + sum(2 * len(code.halfwords) for ins in each.code for code in encode(ins, self.place))
        return size <= _RANGES["cbz"][1]

    def _places(self, items: list[Code | _Branch | Part]) -> tuple[dict[Part, int], list[tuple[_Branch, int]]]:
        places: dict[Part, int] = {}
        branches: list[tuple[_Branch, int]] = []
        at = 0
        for item in items:
            if isinstance(item, Part):
                places[item] = at
            elif isinstance(item, _Branch):
                branches.append((item, at))
                at += item.size
            else:
                at += 2 * len(item.halfwords)
        return places, branches

    def _stretch(self, items: list[Code | _Branch | Part]) -> None:
        """Widen branches until all reach."""
        changed = True
        while changed:
            places, branches = self._places(items)
            changed = False
            for branch, at in branches:
                low, high = _RANGES[branch.kind]
                if not branch.wide and not low <= places[branch.target] - at - 4 <= high:
                    branch.wide = changed = True

    def _branch_code(self, branch: _Branch, offset: int, labels: Mapping[Part, str]) -> Code:
        label = labels[branch.target]
        if branch.kind == "cbz":
            if branch.wide:
                raise OutOfReach(f"cbz over {offset} bytes")
            opcode, text = (0xB100, "cbz") if branch.condition == "eq" else (0xB900, "cbnz")
            halfword = opcode | (offset >> 6 & 1) << 9 | (offset >> 1 & 31) << 3 | branch.register
            return Code((halfword,), f"{text} r{branch.register}, {label}")
        if branch.kind == "b":
            if not branch.wide:
                return Code((0xE000 | offset >> 1 & 0x7FF,), f"b {label}", f"b({label})")
            sign = offset >> 24 & 1
            j1, j2 = ~(offset >> 23 ^ sign) & 1, ~(offset >> 22 ^ sign) & 1
            words = (0xF000 | sign << 10 | offset >> 12 & 0x3FF, 0x9000 | j1 << 13 | j2 << 11 | offset >> 1 & 0x7FF)
            return Code(words, f"b.w {label}")
        number = _CONDITIONS[branch.condition]
        if not branch.wide:
            return Code(
                (0xD000 | number << 8 | offset >> 1 & 0xFF,),
                f"b{branch.condition} {label}",
                f"b{branch.condition}({label})",
            )
        words = (
            0xF000 | (offset >> 20 & 1) << 10 | number << 6 | offset >> 12 & 0x3F,
            0x8000 | (offset >> 18 & 1) << 13 | (offset >> 19 & 1) << 11 | offset >> 1 & 0x7FF,
        )
        return Code(words, f"b{branch.condition}.w {label}", f"b{branch.condition}_w({label})")


def _line(code: Code) -> str:
    if code.named is not None:
        return code.named
    return f"data(2, {', '.join(f'0x{each:04X}' for each in code.halfwords)})  # {code.text}"
