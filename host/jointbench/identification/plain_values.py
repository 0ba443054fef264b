"""Between what results hold and what JSON knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from jointbench.arrays import Array


def plain(value: Any) -> Any:
    """What JSON knows: no arrays, no tuples, and null in place of numbers that are not finite."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast(list[Any], value)]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def floats(values: Sequence[Any], missing: float) -> Array:
    """Floats of any depth, null as `missing`."""
    array = np.array(values, dtype=np.float64)  # null has become nan
    return np.where(np.isnan(array), missing, array)


def check_type(value: Any, hint: Any, where: str) -> None:
    """Refuse a value that is not what the type of a record's field says, to any depth.

    Args:
        value: of the field, or the record.
        hint: its type: of numbers, texts, tuples, literals and records, or None beside one of them.
        where: it is, for the message.

    Raises:
        TypeError: names the field.
    """
    parts: tuple[Any, ...] = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        if value is None:
            return
        hint = next(part for part in parts if part is not NoneType)
        parts = get_args(hint)
    if is_dataclass(hint) and isinstance(value, cast(type, hint)):
        for name, of_field in get_type_hints(hint).items():
            check_type(getattr(value, name), of_field, f"{where}.{name}")
    elif get_origin(hint) is tuple and isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        kinds = parts[:1] * len(items) if Ellipsis in parts else parts
        if len(items) != len(kinds):
            raise TypeError(f"{where} has {len(items)} entries, and must have {len(kinds)}")
        for number, (item, kind) in enumerate(zip(items, kinds, strict=True)):
            check_type(item, kind, f"{where}[{number}]")
    elif get_origin(hint) is Literal:
        if value not in parts:
            raise TypeError(f"{where} is {value!r}, and must be one of {', '.join(map(repr, parts))}")
    else:
        kinds = (int, float) if hint is float else hint if hint in (bool, int, str) else ()
        if not isinstance(value, cast(type, kinds)) or (isinstance(value, bool) and hint is not bool):
            raise TypeError(f"{where} is {value!r}, and must be of type {getattr(hint, '__name__', hint)}")


def frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values whose lists, of any depth, are tuples again, as frozen records have them."""

    def tuples(value: Any) -> Any:
        return tuple(tuples(item) for item in cast(list[Any], value)) if isinstance(value, list) else value

    return {key: tuples(value) for key, value in values.items()}
