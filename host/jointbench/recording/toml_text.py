"""Provenance as TOML text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import tomli_w

from jointbench.errors import RunError


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of nested mappings, lists, strings, numbers, booleans and arrays; keys whose value is None are left out.

    >>> print(toml_text({"name": "arm", "limit": None, "bench": {"seed": 1}}), end="")
    name = "arm"
    <BLANKLINE>
    [bench]
    seed = 1

    Raises:
        RunError: a value has no TOML form.
    """
    return tomli_w.dumps(_plain_table(values, ""))


def _plain_table(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    return {key: _plain(value, f"{path}{key}") for key, value in values.items() if value is not None}


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    match value:
        case bool() | int() | float() | str():
            return value
        case Mapping():
            return _plain_table(cast(Mapping[str, Any], value), f"{path}.")
        case list() | tuple():
            return [_plain(item, path) for item in cast(list[Any], value)]
        case _:
            raise RunError(f"{path} = {value!r} cannot be written to run.toml; use text, numbers, lists or tables")
