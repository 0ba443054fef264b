"""Eight samples as one number of compiled code: what is done to it is done to all eight at once.

The compiler finds such vectors in plain loops, too, but gives up where it cannot prove that arrays do not overlap, as
in the dearest of them: this way the machine's vector instructions are used for certain, whatever their width. Arrays
must be C-contiguous float64 (see batch.py): these operations know where an array begins, and nothing of its strides.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, lower_cast, models, register_model
from numpy.typing import NDArray

from jointbench.dynamics.batch import LANES
from jointbench.dynamics.kernels.compiled import instruction

_DOUBLE, _INT32, _INT64 = ir.DoubleType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_HALF = LANES // 2

Doubles: TypeAlias = NDArray[np.float64]
At: TypeAlias = np.uint64 | int
"""Where something is in an array: unsigned, which spares the check for indices from the end."""


class Lanes:
    """As the type checker sees it; there is none outside compiled code."""

    def __add__(self, other: Number) -> Lanes: ...
    def __radd__(self, other: float) -> Lanes: ...
    def __sub__(self, other: Number) -> Lanes: ...
    def __rsub__(self, other: float) -> Lanes: ...
    def __mul__(self, other: Number) -> Lanes: ...
    def __rmul__(self, other: float) -> Lanes: ...


Number: TypeAlias = Lanes | float


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes")

    def can_convert_from(self, typingctx: Any, other: Any) -> Any:
        """A float is eight equal ones."""
        return Conversion.safe if isinstance(other, types.Float) else None


_LANES_TYPE = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


@lower_cast(types.Float, _LanesType)
def _spread(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(_INT32, 0))
    return _shuffle(builder, one, one, [0] * LANES)


def _operator(function: Any, instruction: str) -> None:
    class _Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if _LANES_TYPE in args and all(arg is _LANES_TYPE or isinstance(arg, types.Float) for arg in args):
                return signature(_LANES_TYPE, _LANES_TYPE, _LANES_TYPE)
            return None

    infer: Any = infer_global
    infer(function)(_Template)

    @lower_builtin(function, _LANES_TYPE, _LANES_TYPE)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=("contract",))


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")


@instruction
def load(typingctx: Any, array: Any, at: Any) -> Any:
    """Lanes of array[at:at + LANES]."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_vector_at(builder, _element(context, builder, sig.args[0], *args)), align=8)

    return _LANES_TYPE(array, at), codegen


@instruction
def load_strided(typingctx: Any, array: Any, at: Any, stride: Any) -> Any:
    """Lanes of array[at + k * stride], k = 0 … LANES - 1."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, at, stride = args
        # Not by way of memory: a wide load of what was just stored narrowly waits for all of it.
        value = ir.Constant(_VECTOR, ir.Undefined)
        for k in range(LANES):
            one = builder.load(_element(context, builder, sig.args[0], array, at))
            value = builder.insert_element(value, one, ir.Constant(_INT32, k))
            at = builder.add(at, stride)
        return value

    return _LANES_TYPE(array, at, stride), codegen


@instruction
def store(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """Set array[at:at + LANES]."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _vector_at(builder, _element(context, builder, sig.args[0], *args[:2])), align=8)
        return context.get_dummy_value()

    return types.void(array, at, _LANES_TYPE), codegen


@instruction
def load_ten(typingctx: Any, array: Any, at: Any, stride: Any) -> Any:
    """Ten lanes: those of array[at + k * stride:], k = 0 … 9."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, at, stride = args
        value = context.get_constant_undef(sig.return_type)
        for k in range(10):
            one = builder.load(_vector_at(builder, _element(context, builder, sig.args[0], array, at)), align=8)
            value = builder.insert_value(value, one, k)
            at = builder.add(at, stride)
        return value

    return types.UniTuple(_LANES_TYPE, 10)(array, at, stride), codegen


@instruction
def store_ten(typingctx: Any, array: Any, at: Any, stride: Any, values: Any) -> Any:
    """Set array[at + k * stride:][:LANES] to the k-th of ten lanes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, at, stride, values = args
        for k in range(10):
            pointer = _vector_at(builder, _element(context, builder, sig.args[0], array, at))
            builder.store(builder.extract_value(values, k), pointer, align=8)
            at = builder.add(at, stride)
        return context.get_dummy_value()

    return types.void(array, at, stride, values), codegen


@instruction
def store_rows(typingctx: Any, array: Any, at: Any, stride: Any, values: Any) -> Any:
    """Set array[at + k * stride:][:10] to lane k of ten values, for each lane."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, at, stride, values = args
        columns = [builder.extract_value(values, k) for k in range(10)]
        for half in (0, _HALF):
            rows = [_shuffle(builder, column, column, range(half, half + _HALF)) for column in columns]
            first, second = _transposed(builder, rows[:_HALF]), _transposed(builder, rows[_HALF : 2 * _HALF])
            pairs = _exchange(builder, rows[8], rows[9], 1)
            for k in range(_HALF):
                last = _shuffle(builder, pairs[k & 1], pairs[k & 1], [k & 2, k & 2 | 1])
                row = _element(context, builder, sig.args[0], array, at)
                for behind, value in ((0, first[k]), (_HALF, second[k]), (2 * _HALF, last)):
                    pointer = builder.gep(row, [ir.Constant(_INT64, behind)])
                    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=8)
                at = builder.add(at, stride)
        return context.get_dummy_value()

    return types.void(array, at, stride, values), codegen


@instruction
def load_rows(typingctx: Any, array: Any, at: Any, stride: Any) -> Any:
    """Ten lanes whose lane k is that of array[at + k * stride:][:10]: what `store_rows` stores."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, at, stride = args
        halves: list[list[Any]] = []
        for _ in (0, _HALF):
            blocks: list[list[Any]] = [[], [], []]
            for _ in range(_HALF):
                row = _element(context, builder, sig.args[0], array, at)
                for part, (behind, width) in enumerate(((0, _HALF), (_HALF, _HALF), (2 * _HALF, 2))):
                    pointer = builder.gep(row, [ir.Constant(_INT64, behind)])
                    pointer = builder.bitcast(pointer, ir.VectorType(_DOUBLE, width).as_pointer())
                    blocks[part].append(builder.load(pointer, align=8))
                at = builder.add(at, stride)
            first, second, last = blocks
            # Two of a row's elements are left: those of rows 0 and 2, 1 and 3 side by side, then as above.
            pairs = [_shuffle(builder, last[k], last[k + 2], range(4)) for k in (0, 1)]
            last = _exchange(builder, pairs[0], pairs[1], 1)
            halves.append([*_transposed(builder, first), *_transposed(builder, second), *last])
        value = context.get_constant_undef(sig.return_type)
        for k, (low, high) in enumerate(zip(*halves, strict=True)):
            value = builder.insert_value(value, _shuffle(builder, low, high, range(LANES)), k)
        return value

    return types.UniTuple(_LANES_TYPE, 10)(array, at, stride), codegen


@instruction
def zeros(typingctx: Any) -> Any:
    """Ten lanes of nothing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.get_constant_null(sig.return_type)

    return types.UniTuple(_LANES_TYPE, 10)(), codegen


def _element(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [at])


def _vector_at(builder: Any, pointer: Any) -> Any:
    return builder.bitcast(pointer, _VECTOR.as_pointer())


def _shuffle(builder: Any, a: Any, b: Any, picked: Sequence[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT32, len(picked)), list(picked)))


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """A square of half lanes: a matrix of blocks is transposed by transposing its blocks and exchanging two of them."""
    rows = list(rows)
    for width in (1, 2):
        for k in range(_HALF):
            if not k & width:
                rows[k], rows[k | width] = _exchange(builder, rows[k], rows[k | width], width)
    return rows


def _exchange(builder: Any, a: Any, b: Any, width: int) -> tuple[Any, Any]:
    """Exchange the odd blocks of a with the even ones of b, blocks being `width` elements wide."""
    evens = [k if not k & width else _HALF + (k ^ width) for k in range(_HALF)]
    odds = [k | width if not k & width else _HALF + k for k in range(_HALF)]
    return _shuffle(builder, a, b, evens), _shuffle(builder, a, b, odds)
