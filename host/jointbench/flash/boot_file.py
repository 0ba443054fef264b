"""The first statements a board carries out: its outputs switched off, with its own pins written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from jointbench.errors import FlashError
from jointbench.flash.kinds import Kind

_FORM = '"safe_outputs" must be a list of ["pin", PIN, LEVEL] and ["mem32", ADDRESS, VALUE]'


def boot_file(config: Mapping[str, Any], kind: Kind) -> bytes:
    """The statements for a board with this config.json, one line each.

    Args:
        config: its `safe_outputs` list pins to be driven to a level and words to be written, in that order; without
            it, `pins.enable` goes low.
        kind: says what to do where `config` says neither.

    Raises:
        FlashError: `safe_outputs` has another form, or the board is wired and `pins` names no `enable`.
    """
    pins: Any = config.get("pins")
    enable = cast(Mapping[str, Any], pins).get("enable") if isinstance(pins, Mapping) else None
    outputs: Any = config.get("safe_outputs")
    if outputs is None:
        outputs = [list(each) for each in kind.safe_outputs or ()] if enable is None else [["pin", enable, 0]]
    if not isinstance(outputs, Sequence) or isinstance(outputs, str):
        raise FlashError(f"config.json: {_FORM}")
    statements = "".join(_statement(output) for output in cast(Sequence[Any], outputs))
    if enable is None and kind.safe_outputs is None:
        raise FlashError(
            f"config.json: pins.enable is missing: without it nothing would switch the motor of a board of kind "
            f"{kind.name!r} off. Name the pin that ENABLE of its power stage is wired to; docs/boards.md has an example"
        )
    return statements.encode()


def _statement(output: Any) -> str:
    match output:
        case ["pin", int() | str() as pin, 0 | 1 as level]:
            return f"import machine; machine.Pin({pin!r}, machine.Pin.OUT, value={int(level)})\n"
        case ["mem32", int() as address, int() as value]:
            return f"import machine; machine.mem32[{address:#x}] = {value}\n"
        case _:
            raise FlashError(f"config.json: {_FORM}; it has {output!r}")
