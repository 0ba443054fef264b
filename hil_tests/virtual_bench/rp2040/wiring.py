"""The config.json of an emulated RP2040 board: the wiring of docs/boards.md, and facts in its converters' counts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench.errors import BenchFileError
from hil_tests.virtual_bench.plant_file import PowerTruth
from jointwire import CHANNEL_BY_NAME

_WIRING: dict[str, Any] = {
    "pins": {"enable": 22, "sync": 14},
    "line": {"kind": "uart", "uart": 0, "tx": 0, "rx": 1},
    "motor_encoder": {"kind": "quadrature", "a": 6, "pio": 0},
    "link_encoder": {"kind": "as5047p", "spi": 0, "sck": 18, "mosi": 19, "miso": 20, "select": 21},
    "analog": {"current": 26, "torque": 27, "supply": 28, "temperature": 29},
    "drive": {"kind": "pwm_direction", "pwm": 16, "direction": 17, "frequency_Hz": 20000},
}
_OTHERS = ("torque", "ntc", "foot", "brake")  # entries that the example has not; a foot's board has no other sensors
# Of a board with two motors, which has no others: the converter's four inputs are both motors' current and torque.
_PARTNER: dict[str, Any] = {
    "pins": {"enable": 3},
    "motor_encoder": {"kind": "quadrature", "a": 8},
    "link_encoder": {"kind": "as5047p", "spi": 1, "sck": 10, "mosi": 11, "miso": 12, "select": 13},
    "analog": {"current": 28, "torque": 29},
    "drive": {"kind": "pwm_direction", "pwm": 4, "direction": 5, "frequency_Hz": 20000},
}
_OF_TWO: dict[str, Any] = {**_WIRING, "analog": {"current": 26, "torque": 27}, "partner": _PARTNER}
_EMULATED = {  # what is at the pins, by its entry in config.json
    "line": ("uart", "usb"),
    "motor_encoder": ("quadrature", "as5047p", "as5048", "mt6701"),
    "link_encoder": ("as5047p", "as5048", "mt6701", "as5600"),
    "torque": ("hx711", "ads1220"),
    "foot": ("hx711", "ads1220"),
    "drive": ("pwm_direction", "half_bridges"),
}
_CHANNELS = {"torque": "joint_torque", "supply": "bus_voltage", "temperature": "temperature"}  # by analog role
LINK_COUNTS = {"as5047p": 16384, "as5048": 16384, "mt6701": 16384, "as5600": 4096}
# The bench's counts of supply and temperature have 15 bits and begin at 0 V and 0 degC; a chip's converter has 12.
SLOW_SHIFT = 3
_SLOW_STEPS = 1 << SLOW_SHIFT


def read_wiring(path: Path | None, motors: int = 1) -> dict[str, Any]:
    """Entries of config.json about pins: those of a JSON file, and for the others the example's.

    A link encoder may be null, for a motor that has none. Of two motors the second one's are in "partner".

    Raises:
        BenchFileError: the file cannot be read, or has what is not emulated.
    """
    own: Any = {}
    if path is not None:
        try:
            own = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BenchFileError(f"wiring {path} cannot be read: {error}") from error
    if motors == 1:
        return _with_example(own, _WIRING, _OTHERS, f"wiring {path}")
    wiring = _with_example(own, _OF_TWO, ("brake",), f"wiring {path}")
    wiring["partner"] = _with_example(own.get("partner", {}), _PARTNER, ("brake",), f"wiring {path}: partner")
    return wiring


def _with_example(own: Any, example: Mapping[str, Any], others: tuple[str, ...], where: str) -> dict[str, Any]:
    known = (*example, *others)
    if not isinstance(own, dict) or not own.keys() <= set(known):
        raise BenchFileError(f"{where} must be an object with some of {', '.join(known)}")
    wiring: dict[str, Any] = {**example, **own}
    if wiring.get("torque") and "analog" not in own:
        wiring["analog"] = {role: pin for role, pin in example["analog"].items() if role != "torque"}
    for entry, kinds in _EMULATED.items():
        if entry not in known or (wiring.get(entry) is None and entry in ("link_encoder", *others)):
            continue
        if (kind := wiring[entry].get("kind")) not in kinds:
            raise BenchFileError(f"{where}: {entry}.kind = {kind!r} is not emulated; there are {', '.join(kinds)}")
    return wiring


def channels_missing(wiring: Mapping[str, Any]) -> int:
    """Mask of the channels that nothing measures at a motor of this wiring."""
    names = [name for role, name in _CHANNELS.items() if role not in wiring["analog"]]
    if wiring["link_encoder"] is None:
        names.append("link_position")
    return sum(1 << CHANNEL_BY_NAME[name].bit for name in names)


def board_config(config: Mapping[str, Any], wiring: Mapping[str, Any], power: PowerTruth, baud: int) -> dict[str, Any]:
    """Return the config.json of a board.

    Args:
        config: what every emulated board is told: its node, and the facts of its sensors as the bench has them.
        wiring: entries about its pins.
        power: supply and winding, which the board's current loop is told.
        baud: speed of its line.

    Raises:
        BenchFileError: an absolute encoder on the motor has not the counts that the plant's has.
    """
    board = _motor_config(config, wiring, power)
    board["line"] = {**wiring["line"], "baud": baud}
    if "partner" in config:
        board["partner"] = _motor_config(config["partner"], wiring["partner"], power)
    return board


def _motor_config(config: Mapping[str, Any], wiring: Mapping[str, Any], power: PowerTruth) -> dict[str, Any]:
    facts = dict(config["facts"])
    kind, counts = wiring["motor_encoder"]["kind"], facts.get("encoder.motor_counts", 4096)
    if (own := LINK_COUNTS.get(kind, counts)) != counts:
        raise BenchFileError(
            f"motor_encoder.kind = {kind!r} has {own} counts a turn, the plant's motor encoder {counts}"
        )
    del facts["encoder.capture_clock"]  # the board's own PIO makes the edge times
    if wiring["link_encoder"] is None:
        facts["encoder.link_zero"] = 0  # the joint is at zero wherever it starts
    else:
        counts = LINK_COUNTS[wiring["link_encoder"]["kind"]]
        facts["encoder.link_zero"] = round(facts["encoder.link_zero"] * counts / facts["encoder.link_counts"])
        facts["encoder.link_counts"] = counts
    facts["temperature.zero"] = round(facts["temperature.zero"] / _SLOW_STEPS)
    for fact in ("voltage.scale", "temperature.scale"):
        facts[fact] *= _SLOW_STEPS
    loop = {
        "resistance_ohm": power.winding_resistance,
        "inductance_mH": 1e3 * power.winding_inductance,
        "supply_V": power.supply,
    }
    return {
        **config,
        **{entry: value for entry, value in wiring.items() if value is not None},
        "drive": {**wiring["drive"], "loop": {**loop, **wiring["drive"].get("loop", {})}},
        "facts": facts,
    }
