"""The URL of a faulty line: ``fault://seed=1&rx.drop=0.001&tx.delay=0.1,for:5ms..20ms;/dev/ttyACM0``."""

from __future__ import annotations

import re
from typing import NoReturn

from jointbench.bench.fault.faults import DIRECTIONS, Faults, FaultSettings
from jointbench.bench.fault.kinds import KINDS, NEVER, Kind, Schedule
from jointbench.errors import FileError

SCHEME = "fault://"
_EXAMPLE = "fault://seed=1&rx.drop=0.001&tx.stall=at:2s,for:0.3s;/dev/ttyACM0"
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_TIME = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(us|ms|s)")


def is_fault_url(url: str) -> bool:
    """Return whether this is the URL of a faulty line."""
    return url.lower().startswith(SCHEME)


def parse_fault_url(url: str) -> tuple[Faults, str]:
    """Faults of a line, and the URL of the port behind it.

    Raises:
        FileError: an unknown fault or setting, a value that is not allowed, or no port.
    """
    options, semicolon, inner = url[len(SCHEME) :].partition(";")
    if not semicolon or not inner.strip():
        _fail(url, "there is no port: it comes last, after a semicolon")
    if is_fault_url(inner):
        _fail(url, "its port is a fault:// itself; put all faults into one")
    line = {"seed": 0, "delimiter": 0}  # settings of the line as a whole
    names: set[str] = set()
    settings: dict[tuple[str, str], FaultSettings] = {}
    for option in filter(None, options.split("&")):
        name, equals, value = (part.strip() for part in option.partition("="))
        if not equals:
            _fail(url, f"{option!r} has no value; a fault is written NAME=RATE or NAME=SETTING:VALUE,…")
        if name in names:
            _fail(url, f"{name} is given twice")
        names.add(name)
        if name in line:
            line[name] = _whole(url, name, value, 0, 255 if name == "delimiter" else NEVER)
        else:
            for fault in _faults(url, name, value):
                if (fault.direction, fault.kind) in settings:
                    _fail(url, f"{fault.direction}.{fault.kind} is given twice")
                settings[fault.direction, fault.kind] = fault
    return Faults(tuple(settings.values()), **line), inner.strip()


def _faults(url: str, name: str, value: str) -> list[FaultSettings]:
    direction, dot, kind_name = name.rpartition(".")
    if kind_name not in KINDS or (dot and direction not in DIRECTIONS):
        _fail(
            url,
            f"there is no fault {name!r}; there are {', '.join(KINDS)}, with rx. (board to host) or tx. (host to "
            "board) before the name, or for both directions without",
        )
    kind = KINDS[kind_name]
    texts = _given(url, name, kind, value)
    rate, every = texts.get("rate"), texts.get("every")
    times = tuple(_time_us(url, f"{name} at", each) for each in texts.get("at", "").split(" ") if each)
    if [rate is not None, every is not None, bool(times)].count(True) != 1:
        allowed = "every:TIME or at:TIME" if kind.unit == "time" else f"a rate for each {kind.unit}, every:N or at:TIME"
        _fail(url, f"{name}={value} must say when by one of {allowed}")
    values = kind.defaults | texts
    for_us = _range_us(url, name, values["for"]) if "for" in values else (0, 0)
    schedule = Schedule(
        rate=_fraction(url, name, rate) if rate is not None else None,
        every=_every(url, name, kind, every, for_us[1]) if every is not None else None,
        at_us=times,
        from_us=_time_us(url, f"{name} from", values["from"]) if "from" in values else 0,
        until_us=_time_us(url, f"{name} until", values["until"]) if "until" in values else NEVER,
    )
    burst = _whole(url, f"{name} bytes", values["bytes"], 1, 1 << 20) if "bytes" in values else 0
    ratio = _ratio(url, name, values["ratio"]) if "ratio" in values else 1.0
    directions = (direction,) if dot else DIRECTIONS
    return [FaultSettings(each, kind_name, schedule, for_us, burst, ratio) for each in directions]


def _given(url: str, name: str, kind: Kind, value: str) -> dict[str, str]:
    """Settings as text, by name; several times are one text with spaces between."""
    texts: dict[str, str] = {}
    for part in (part.strip() for part in value.split(",")):
        setting, colon, text = part.partition(":")
        if not colon:
            setting, text = "rate", part
        if setting not in (*kind.settings, "rate") or (setting == "rate" and kind.unit == "time"):
            _fail(url, f"{name} has no setting {part!r}; it has {', '.join(kind.settings)}")
        if setting in texts and setting != "at":
            _fail(url, f"{name} has {setting} twice")
        texts[setting] = f"{texts[setting]} {text}" if setting in texts else text
    return texts


def _every(url: str, name: str, kind: Kind, text: str, for_us: int) -> int:
    if kind.unit != "time":
        return _whole(url, f"{name} every", text, 1, NEVER)
    every_us = _time_us(url, f"{name} every", text)
    if every_us <= for_us:
        _fail(url, f"{name} every {text} leaves no time between stalls of {for_us / 1e6:g}s; it must be longer")
    return every_us


def _range_us(url: str, name: str, text: str) -> tuple[int, int]:
    shortest, dots, longest = text.partition("..")
    low = _time_us(url, f"{name} for", shortest)
    high = _time_us(url, f"{name} for", longest) if dots else low
    if dots and not name.endswith("delay"):
        _fail(url, f"{name} for:{text} is a range, which only a delay can have; give one time")
    if low > high:
        _fail(url, f"{name} for:{text} must begin with its shorter time")
    return low, high


def _time_us(url: str, name: str, text: str) -> int:
    if not (match := _TIME.fullmatch(text)):
        _fail(url, f"{name}:{text} is not a time; it is a number with s, ms or us, such as 0.3s")
    return round(float(match[1]) * _UNITS_US[match[2]])


def _whole(url: str, name: str, text: str, low: int, high: int) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        _fail(url, f"{name} = {text!r} must be a whole number from {low}" + (f" to {high}" if high < NEVER else ""))
    return number


def _fraction(url: str, name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0.0 <= rate <= 1.0:  # not a number is neither
        _fail(url, f"{name} = {text!r} must be a rate from 0 to 1, such as 0.001")
    return rate


def _ratio(url: str, name: str, text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0.1 <= ratio <= 10.0:
        _fail(url, f"{name} ratio:{text} must be a number from 0.1 to 10, the receiver's baud rate over the sender's")
    return ratio


def _fail(url: str, text: str) -> NoReturn:
    raise FileError(f"{url}: {text}. For example {_EXAMPLE}")
