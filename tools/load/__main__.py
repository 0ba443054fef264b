"""Load and soak: 24 boards, 4 kHz, six boards by the wall clock, an hour in one go: docs/evidence/limits.md."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil_tests.virtual_bench import BenchError
from jointbench.checks import Check, Result
from jointbench.cli.console import Console
from jointbench.cli.main import carry_out
from jointbench.cli.run import WHEN_STOPPED
from jointbench.errors import JointbenchError
from jointbench.recording import new_run_path
from jointbench.testing.requirements import load
from tools.load import lockstep
from tools.load.lockstep import HIL_TESTS
from tools.load.realtime import find_speeds
from tools.load.soak import soak
from tools.machine import machine

HEAD = """\
# How much it carries, and for how long

`./run load --write` wrote this page, and `./run load PART --write` one section of it anew; the limits are those of
[requirements.md](requirements.md), and the command ends with 1 where one is not kept. All boards are emulated (the
32-bit unix port of MicroPython, with the firmware as it is), the joints of the plant are rigid. Each board streams all
channels of a joint at their default dividers, 14.6 bytes a sample. What virtual time gives is the same on any machine
but for the seconds it takes; real time depends on the machine and on what else it does.
"""

_TITLES = {
    "lockstep": "Many boards, fast ticks: virtual time",
    "realtime": "Six boards by the wall clock",
    "soak": "An hour in one go",
}
_TEXTS = {
    "lockstep": """\
The 24 joints are four arms on one base. At 4 kHz servo, filters and plant have ticks of 250 µs (`tick_us = 250` in the
bench file); a line carries 512 bytes a tick, each way. `took` is the wall clock's time for a second of virtual time,
and the columns after it are the seconds of processor time in it: of the host, of the bench with its plant, and of all
boards.""",
    "realtime": """\
A rate holds when the motion came to its end, no sample was lost, and the bench never fell behind by 50 ms, in one of
three tries: what else the machine does can only take away. Rates above the first that did not hold get one try. A
bench that falls behind says so and goes on from there: its boards then tick more slowly than asked, and still lose
nothing; at less than half the rate the host gives the motion up. `damaged` and `vanished` were lost on the line,
`dropped` by boards whose buffers were full; `cores` are those that host, bench and boards kept busy. Fewer samples
(every 2nd, 4th, …) take work off boards and host, not off the bench.""",
    "soak": """\
Six boards on two clocks 55 ppm apart, behind links with the latency and jitter of USB, play and stream for an hour of
virtual time, recorded minute by minute. The µs clock of three of them wraps after 10 minutes, tick counter and clock of
the others after 33. `apart` is how far two boards' clocks were from agreeing at the worst, by how they really run. A
slope is that of the line through the values after the first tenth of the time, with its 95 % interval, which is widened
for neighbours that are alike; it is the interval's far end that the limit holds for.""",
}


def section(part: str, result: Mapping[str, Any]) -> str:
    """A part's section, its heading first.

    Args:
        part: "lockstep", "realtime" or "soak".
        result: of `./run load`, as JSON has it.
    """
    tables = {"lockstep": _lockstep, "realtime": _realtime, "soak": _soak}
    machine = result["machine"]
    where = (
        f"On {machine['processor']}, {machine['cores']} cores, Python {machine['python']}; load beforehand "
        f"{machine['load'][0]:.1f}."
    )
    checks = [_check(each) for each in result["checks"] if each["name"] in result["parts"][part]]
    parts = [f"## {_TITLES[part]}", _TEXTS[part], *tables[part](result[part]), "\n".join(checks), where]
    return "\n\n".join(parts) + "\n"


def write_page(path: Path, result: Mapping[str, Any]) -> None:
    """Write the page with a result's sections; those of other parts stay as they are there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = {
        each.splitlines()[0].removeprefix("## "): each.strip() + "\n" for each in re.split(r"(?m)^(?=## )", text)[1:]
    }
    found |= {title: section(part, result) for part, title in _TITLES.items() if part in result}
    ordered = [found[title] for title in _TITLES.values() if title in found]
    path.write_text("\n".join([HEAD, *ordered]), encoding="utf-8")


def _lockstep(loads: Sequence[Mapping[str, Any]]) -> list[str]:
    heads = ("load", "ticks/s", "samples", "lost", "took [s]", "host [s]", "bench [s]", "boards [s]")
    rows: list[list[str]] = []
    for measured in loads:
        slower = measured["wall_s"] / measured["target_s"]
        spent = [f"{slower * measured['cores'][who]:.2f}" for who in ("host", "bench", "boards")]
        counted = [f"{measured['rate_Hz']:.1f}", f"{measured['samples_received']}", f"{sum(measured['lost'].values())}"]
        rows.append([measured["name"], *counted, f"{slower:.2f}", *spent])
    return [_table(heads, rows)]


def _realtime(speeds: Mapping[str, Any]) -> list[str]:
    heads = (
        "asked [Hz]", "samples of every", "holds", "ticks/s", "behind [s]", "damaged", "vanished", "dropped",
        "unexplained", "cores: host", "bench", "boards",
    )  # fmt: skip
    answer = f"**The highest rate that holds, as all below it do: {speeds['highest_rate_Hz']:g} Hz.**"
    fewer = "At the first rate that did not hold, with fewer samples sent:"
    tables = [_table(heads, [_attempt(each) for each in speeds[kind]]) for kind in ("by_rate", "by_samples")]
    ends = [f"- {each['asked_Hz']:g} Hz: {each['error']}" for each in speeds["by_rate"] if each["error"]]
    return [answer, tables[0], *(["What ended a motion:", "\n".join(ends)] if ends else []), fewer, tables[1]]


def _attempt(attempt: Mapping[str, Any]) -> list[str]:
    lost, cores = attempt["lost"] or {}, attempt.get("cores") or {}
    return [
        f"{attempt['asked_Hz']:g}",
        f"{attempt['sample_every']}",
        _holds(attempt),
        f"{attempt['rate_Hz']:.1f}" if "rate_Hz" in attempt else "–",
        f"{attempt['behind_s']:.2f}",
        *(f"{lost[cause]}" if lost else "–" for cause in ("damaged", "vanished", "dropped", "unexplained")),
        *(f"{cores[who]:.2f}" if cores else "–" for who in ("host", "bench", "boards")),
    ]


def _holds(attempt: Mapping[str, Any]) -> str:
    tries = attempt["tries"]
    if attempt["holds"]:
        return "yes" if tries == 1 else f"yes, at try {tries}"
    return "no" if tries == 1 else f"no, {tries} tries"


def _soak(soak: Mapping[str, Any]) -> list[str]:
    minutes = soak["minutes"]
    answer = (
        f"{soak['hours']:.2f} h in {soak['wall_s'] / 60.0:.0f} min of the wall clock, {len(minutes)} recordings: "
        f"{soak['samples_lost']} of {soak['samples_received'] + soak['samples_lost']} samples lost, clocks at most "
        f"{soak['clocks_apart_us']:.2f} µs apart."
    )
    rows: list[list[str]] = []
    names = {"host": "host [MB]", "bench": "bench [MB]", "boards": "all boards' processes [MB]"}
    for kind, name in names.items():
        rows.append([name, *_trend(soak["trends"][kind], 1e-6, "{:.2f}")])
    rows.append(["free on a board [bytes]", *_trend(soak["trends"]["heap_free"], 1.0, "{:.0f}")])
    return [answer, _table(("memory", "least", "most", "slope per hour", "±"), rows)]


def _trend(trend: Mapping[str, float], unit: float, form: str) -> list[str]:
    return [form.format(unit * trend[key]) for key in ("least", "most", "slope_per_hour", "half_width")]


def _check(check: Mapping[str, Any]) -> str:
    mark = "ok" if check["ok"] else "NO"
    limit = f"{check['relation']} {check['limit']:g} {check['unit']}"
    return f"- {mark} `{check['name']}`: {check['value']:.6g} ({limit})"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


ERRORS = (JointbenchError, BenchError)
PARTS = ("lockstep", "realtime", "soak")
PAGE = HIL_TESTS.parent / "docs" / "evidence" / "limits.md"
SECONDS, QUICK_SECONDS = 12.0, 4.0  # of a motion
HOURS, QUICK_HOURS = 1.0, 0.1


def parser() -> argparse.ArgumentParser:
    """Parser of the options of `./run load`."""
    options = argparse.ArgumentParser(prog="./run load", description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (all of them)")
    length = options.add_mutually_exclusive_group()
    length.add_argument("--hours", type=_hours, default=HOURS, help="of virtual time that the soak takes (%(default)g)")
    length.add_argument("--quick", action="store_true", help="short motions, and a soak of some minutes")
    options.add_argument("--write", action="store_true", help="write the parts' sections of docs/evidence/limits.md")
    options.add_argument("--seed", type=int, default=0, help="of the boards' imperfections and noise (%(default)s)")
    options.add_argument("--out", metavar="DIR", help="where everything goes (a new folder under runs/)")
    options.add_argument("--json", metavar="FILE|-", help="write the machine-readable result there")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Measure; 0, 1 when a figure misses its limit, 2 when it could not be done."""
    command = parser()
    options = command.parse_args(arguments)
    for part in options.parts:
        if part not in PARTS:
            command.error(f"PART = {part!r}: there are {', '.join(PARTS)}")
    if options.write and options.quick:
        command.error("--write puts down what was measured in full; leave out --quick")
    return carry_out("load", options, measure, ERRORS, when_stopped=WHEN_STOPPED)


def measure(options: argparse.Namespace, console: Console) -> Result:
    """Each part that was asked for, one after the other."""
    out = Path(options.out) if options.out else new_run_path("runs", "boards", "load")
    seconds, hours = (QUICK_SECONDS, QUICK_HOURS) if options.quick else (SECONDS, options.hours)
    requirements = load(HIL_TESTS / "requirements")
    about = machine()  # before the load of its own
    fields: dict[str, Any] = {}
    checks: dict[str, list[Check]] = {}
    for part in [part for part in PARTS if part in (options.parts or PARTS)]:
        if part == "lockstep":
            carried = lockstep.carry_loads(out / part, seconds, options.seed, console)
            fields[part] = [each.to_dict() for each in carried]
            checks[part] = lockstep.checks(carried, requirements)
        elif part == "realtime":
            speeds = find_speeds(out / part, seconds, options.seed, console)
            fields[part], checks[part] = speeds.to_dict(), speeds.checks(requirements)
        else:
            soaked = soak(out / part, hours, options.seed, console)
            fields[part], checks[part] = soaked.to_dict(), soaked.checks(requirements, whole=not options.quick)
        for check in checks[part]:
            console.say(str(check))
    result = Result(
        "load",
        options.seed,
        tuple(check for each in checks.values() for check in each),
        {**fields, "parts": {part: [check.name for check in each] for part, each in checks.items()}, "machine": about},
    )
    if options.write:
        write_page(PAGE, result.to_dict(0.0))
        console.say(f"wrote {PAGE}")
    return result


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0.0 < hours <= 24.0:
        raise argparse.ArgumentTypeError(f"{text!r} must be above 0, and 24 at most")
    return hours


if __name__ == "__main__":
    sys.exit(main())
