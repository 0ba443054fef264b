"""`python -m tools.file_fuzz.worker SEED FIRST LAST CORPUS`: carry out cases, a line of JSON before and after each."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

from jointbench.cli.carry_out import BUG
from tools.file_fuzz.corpus import ROOT, Kind, read, read_corpus
from tools.file_fuzz.mutations import displaced, mutated

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
                compiled = path.startswith(f"{ROOT}/") and "__pycache__" in path  # a kernel that was not used before
                if not path.startswith((f"{self.inside}/", *_HARMLESS)) and not compiled:
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
