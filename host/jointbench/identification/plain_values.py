"""Between what results hold and what JSON knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from jointbench.robot import Array


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


def frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values whose lists, of any depth, are tuples again, as frozen records have them."""

    def tuples(value: Any) -> Any:
        return tuple(tuples(item) for item in cast(list[Any], value)) if isinstance(value, list) else value

    return {key: tuples(value) for key, value in values.items()}
