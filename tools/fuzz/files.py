"""`./run fuzz files`: case after case in processes that are watched, and what each did wrong.

`python -m tools.fuzz.files SEED FIRST LAST CORPUS` carries out cases: a line of JSON before and after each.

Time is the processor's, so that a busy machine finds nothing that an idle one would not; what waits for something uses
none, and is found by the clock on the wall.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

from jointbench.checks import Check, Result
from jointbench.cli.console import Console, table
from jointbench.cli.main import BUG
from tools.fuzz.corpus import ROOT, Kind, displaced, make_corpus, mutated, read, read_corpus

HANG_S = 10.0  # of the processor
WAIT_S = 90.0  # on the wall: a machine with nine times as much to do as it can does not reach it
SETTING_UP_S = 600.0
MOST_MB = 500.0  # beside four times the file
_LOOK_S = 0.5
_SHOWN = 20
_REPORT_S = 15.0
_PROCESSES = 2


@dataclass
class Findings:
    """Files that were read, and faults, by kind of file."""

    cases: Counter[str] = field(default_factory=Counter[str])
    troubles: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    hangs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    outside: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    fat: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    peak_MB: float = 0.0

    def add(self, case: dict[str, Any]) -> str:
        """Count a case that has ended; return what it did wrong, in words."""
        self.cases[case["kind"]] += 1
        self.peak_MB = max(self.peak_MB, case["peak_MB"])
        words: list[str] = []
        for wrong, found, word in (
            (case["trouble"], self.troubles, case["trouble"]),
            (case["outside"], self.outside, f"touches {', '.join(case['outside'])}"),
            (
                case["seconds"] > HANG_S or case["wall_s"] > WAIT_S,
                self.hangs,
                f"takes {case['seconds']:.0f} s, {case['wall_s']:.0f} s on the wall",
            ),
            (case["peak_MB"] > MOST_MB + 4e-6 * case["size"], self.fat, f"takes {case['peak_MB']:.0f} MB"),
        ):
            if wrong:
                found.append(case)
                words.append(word)
        return "; ".join(words)

    def checks(self, wanted: int) -> tuple[Check, ...]:
        """Checks against the limits."""
        return (
            Check("cases", self.cases.total(), ">=", wanted),
            Check("tracebacks", len(self.troubles), "==", 0),
            Check("hangs_over_10_s", len(self.hangs), "==", 0),
            Check("beyond_memory", len(self.fat), "==", 0),
            Check("files_elsewhere", len(self.outside), "==", 0),
        )


class Worker:
    """A process that carries out a range of cases; started again behind one that hangs or ends it."""

    def __init__(self, seed: int, first: int, last: int, corpus: Path) -> None:
        """Start it."""
        self._seed, self._last, self._corpus = seed, last, corpus
        self._begun: dict[str, Any] | None = None
        self._waited_s = self._used_s = 0.0  # since its last line
        self._start(first)

    def _start(self, first: int) -> None:
        command = [sys.executable, "-P", "-m", "tools.fuzz.files"]
        words = [str(self._seed), str(first), str(self._last), str(self._corpus)]
        without_byte_code = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # that would be a file elsewhere
        self._process = subprocess.Popen(
            [*command, *words], cwd=ROOT, env=without_byte_code, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._lines = selectors.DefaultSelector()
        self._lines.register(self._process.stdout, selectors.EVENT_READ)
        self._left = b""

    def cases(self) -> Iterator[dict[str, Any]]:
        """Each case when it has ended, whatever became of the process."""
        while True:
            for line in self._waited_for():
                if "how" not in line:
                    self._begun = line
                    continue
                self._begun = None
                yield line
                if line["case"] + 1 >= self._last:
                    self.close()
                    return
                if line["peak_MB"] > MOST_MB:  # what it does not give back would be counted again
                    self._restart(line["case"] + 1)
                    break
            else:
                if self._begun is None:
                    raise RuntimeError(f"the reader of files ended: {self._words()}")
                ended = self._process.poll()
                case: dict[str, Any] = {**self._begun, "how": "", "file": "", "command": [], "size": 0}
                case |= {"seconds": self._used_s, "wall_s": self._waited_s if ended is None else 0.0}
                trouble = "" if ended is None else f"the process ended with {ended}: {self._words()}"
                yield case | {"peak_MB": 0.0, "outside": [], "trouble": trouble}
                if case["case"] + 1 >= self._last:
                    self.close()
                    return
                self._restart(case["case"] + 1)

    def _waited_for(self) -> Iterator[dict[str, Any]]:
        """Lines as they come, until none does for too long."""
        heard, used = time.monotonic(), self._processor_s()
        while True:
            self._waited_s, self._used_s = time.monotonic() - heard, self._processor_s() - used
            if self._lines.select(_LOOK_S):
                assert self._process.stdout is not None
                data = os.read(self._process.stdout.fileno(), 65536)
                if not data:
                    return
                *lines, self._left = (self._left + data).split(b"\n")
                yield from map(json.loads, lines)
                heard, used = time.monotonic(), self._processor_s()
            elif self._begun is None:
                if self._waited_s > SETTING_UP_S:
                    return
            elif self._waited_s > WAIT_S or self._used_s > HANG_S:
                return

    def _processor_s(self) -> float:
        """Processor time that the process has used so far."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _words(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.read().decode(errors="replace").strip()[-300:]

    def _restart(self, first: int) -> None:
        self.close()
        self._begun = None
        self._start(first)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._lines.close()


def fuzz_files(options: argparse.Namespace, console: Console) -> Result:
    """Mutate files of all kinds and have them read; exit code 1 when any reader did what none may."""
    findings, began = Findings(), time.monotonic()
    reported = began
    corpus = Path(tempfile.mkdtemp(prefix="corpus"))
    make_corpus(corpus)
    share = -(-options.cases // _PROCESSES)
    ranges = [(first, min(first + share, options.cases)) for first in range(0, options.cases, share)]
    workers = [Worker(options.seed, *each, corpus) for each in ranges]
    streams = [worker.cases() for worker in workers]
    try:
        while streams:
            for stream in tuple(streams):
                case = next(stream, None)
                if case is None:
                    streams.remove(stream)
                    continue
                if wrong := findings.add(case):
                    console.say(f"case {case['case']}, {case['kind']}, {case['file']} ({case['how']}): {wrong}")
            if time.monotonic() - reported > _REPORT_S:
                reported = time.monotonic()
                console.say(f"{findings.cases.total()} of {options.cases} cases, {reported - began:.0f} s")
    finally:
        for worker in workers:
            worker.close()
        shutil.rmtree(corpus)
    console.say(table(("kind", "cases"), [[kind, str(count)] for kind, count in sorted(findings.cases.items())]))
    checks = findings.checks(options.cases)
    for check in checks:
        console.say(str(check))
    fields = {
        "cases": dict(sorted(findings.cases.items())),
        "peak_MB": findings.peak_MB,
        "troubles": findings.troubles[:_SHOWN],
        "hangs": findings.hangs[:_SHOWN],
        "outside": findings.outside[:_SHOWN],
    }
    return Result("fuzz files", options.seed, checks, fields)


_MOST_BYTES = 3 << 30  # of addresses: what asks for more is refused, and found
_HARMLESS = ("/dev/null", "/proc/self/")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGING = {
    "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.truncate": 1,
    "os.chmod": 1, "os.chown": 1, "os.utime": 1, "shutil.rmtree": 1, "sqlite3.connect": 1,
}  # fmt: skip
"""Events that change files, and how many of their first arguments are paths."""


class Watch:
    """Notices what is changed outside a folder."""

    def __init__(self) -> None:
        """Nothing is watched yet."""
        self.inside: Path | None = None
        self.outside: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.inside is None:
            return
        if event == "open":
            flags = arguments[2]
            changed = arguments[:1] if isinstance(flags, int) and flags & _WRITES else ()
        else:
            changed = arguments[: _CHANGING.get(event, 0)]
        for place in changed:
            if isinstance(place, (str, bytes, os.PathLike)):
                path = os.path.realpath(os.fsdecode(place).removeprefix("file:"))
                if event == "open" and (os.path.isdir(path) or not (arguments[2] & os.O_CREAT or os.path.exists(path))):
                    continue  # asked for, as a port's device is: it is not there, or a folder, which nothing writes to
                # Compiled code is kept where this says, or else beside its source.
                kernels = os.path.realpath(os.environ.get("NUMBA_CACHE_DIR") or os.devnull)
                compiled = path.startswith(f"{ROOT}/") and "__pycache__" in path
                if not path.startswith((f"{self.inside}/", f"{kernels}/", *_HARMLESS)) and not compiled:
                    self.outside.append(f"{event} {path}")


def carry_out(kind: Kind, corpus: Path, rng: Random, watch: Watch) -> dict[str, Any]:
    """Mutate a file of the kind, have it read, and say what happened."""
    name, command = rng.choice(kind.files), rng.choice(kind.commands)
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        whole = Path(folder).resolve()
        here = whole / "here"
        shutil.copytree(corpus / kind.name, here)
        data, how = mutated((here / name).read_bytes(), rng)
        (here / name).write_bytes(data)
        if not rng.randrange(50):
            how = displaced(here / name, rng)
        given = {path: _stamp(path) for path in sorted(here.rglob("*")) if not path.is_dir()}
        (whole / "state").mkdir()
        os.environ["XDG_STATE_HOME"] = tempfile.tempdir = str(whole / "state")
        os.chdir(here)
        arguments = [word.replace("{out}", "made").replace("{file}", name) for word in command]
        said, began, processor = StringIO(), time.monotonic(), _processor_s()
        _forget_peak()
        watch.inside, watch.outside = whole, []
        trouble = ""
        try:
            with redirect_stdout(said), redirect_stderr(said):
                code = read(arguments)
            if code not in (0, 1, 2):
                trouble = f"exit code {code}: {said.getvalue()[-300:].strip()}"
            if code == BUG:
                trouble = _last_frames(whole / "state") or trouble
        except SystemExit as ended:
            trouble = "" if ended.code in (0, 2) else f"exit code {ended.code}"
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            trouble = f"{type(error).__name__}: {str(error)[:200]} ({Path(place.filename).name}:{place.lineno})"
        watch.inside = tempfile.tempdir = None
        os.chdir("/")
        changed = [f"changes {path.name}" for path, stamp in given.items() if _stamp(path) != stamp]
        elsewhere = [path.name for path in whole.iterdir() if path.name not in ("here", "state")]
        if "Traceback (most recent call last)" in said.getvalue():
            trouble = trouble or "a traceback was printed"
        return {
            "kind": kind.name,
            "file": name,
            "how": how,
            "command": arguments,
            "seconds": round(_processor_s() - processor, 3),
            "wall_s": round(time.monotonic() - began, 3),
            "size": len(data),
            "peak_MB": _peak_memory(),
            "trouble": trouble,
            "outside": [*dict.fromkeys(watch.outside), *changed, *elsewhere],
        }


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What a change of a file would change."""
    with suppress(OSError):
        about = path.lstat()
        return about.st_ino, about.st_size, about.st_mtime_ns
    return None


def _last_frames(state: Path) -> str:
    """The end of the report of a bug."""
    reports = sorted(state.glob("jointbench/bugs/*"))
    return " | ".join(reports[-1].read_text(encoding="utf-8").strip().splitlines()[-5:]) if reports else ""


def _processor_s() -> float:
    """Processor time of this process and its children, whatever else the machine does."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _forget_peak() -> None:
    """Have the peak of memory begin at what is in use now, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_memory() -> float:
    """The most memory since `_forget_peak` [MB]."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def run(seed: int, first: int, last: int, corpus: Path) -> None:
    """Carry out cases `first` to `last`."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    kinds, watch = read_corpus(corpus), Watch()
    for number in range(first, last):
        rng = Random(f"{seed} {number}")
        kind = kinds[number % len(kinds)]
        print(json.dumps({"case": number, "kind": kind.name}), flush=True)
        print(json.dumps({"case": number, **carry_out(kind, corpus, rng, watch)}), flush=True)


if __name__ == "__main__":
    seed, first, last = map(int, sys.argv[1:4])
    run(seed, first, last, Path(sys.argv[4]))
