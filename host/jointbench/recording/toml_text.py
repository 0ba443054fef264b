"""Plain data as TOML text: the standard library reads TOML but does not write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from jointbench.errors import RunError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of nested mappings, lists, strings, numbers and booleans; keys whose value is None are left out.

    >>> print(toml_text({"name": "arm", "board": [{"node": 1}]}), end="")
    name = "arm"
    <BLANKLINE>
    [[board]]
    node = 1

    Raises:
        RunError: a value has no TOML form.
    """
    return "\n".join(_table(values, ())).lstrip("\n") + "\n"


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    nested: list[str] = []
    for key, value in values.items():
        here = (*path, _key(key))
        if value is None:
            continue
        if isinstance(value, Mapping):
            nested += ["", f"[{'.'.join(here)}]", *_table(cast(Mapping[str, Any], value), here)]
        elif _is_table_list(value):
            for item in value:
                nested += ["", f"[[{'.'.join(here)}]]", *_table(item, here)]
        else:
            lines.append(f"{_key(key)} = {_scalar(value, '.'.join(here))}")
    return lines + nested


def _is_table_list(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(cast(Sequence[Any], value)) > 0
        and all(isinstance(item, Mapping) for item in cast(Sequence[Any], value))
    )


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _scalar(value: Any, where: str) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)  # inf and nan are TOML's own words for them
        case str():
            return _string(value)
        case list() | tuple():
            items = [_scalar(item, where) for item in cast(Sequence[Any], value)]
            return f"[{', '.join(items)}]"
        case _:
            raise RunError(f"{where} = {value!r} cannot be written to run.toml; use text, numbers, lists or tables")


def _string(text: str) -> str:
    """JSON's strings are TOML's, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
