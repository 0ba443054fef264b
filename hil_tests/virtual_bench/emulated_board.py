"""One emulated board: a process of the 32-bit MicroPython with its own folder as flash and two pipes as hardware."""

import contextlib
import json
import os
import select
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any, NoReturn, Protocol

from hil_tests.virtual_bench.board import MAX_SERIAL, TICK_OUT_SIZE, Answer, Patience, greeting, read_outputs
from hil_tests.virtual_bench.errors import BoardDied, BoardStartError, InterpreterMissing, WrongInterpreter
from jointbench.bench.flash import build_image, write_factory
from jointbench.errors import FlashError

CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT_NAME = "JOINTBENCH_MICROPYTHON"
_PROBE = "import sys; print(sys.implementation.name, sys.maxsize)"
_WORD_32 = 2**31 - 1


def find_interpreter() -> Path:
    """Path of a checked 32-bit MicroPython: `JOINTBENCH_MICROPYTHON`, else the one `./run setup` keeps in the checkout.

    Raises:
        InterpreterMissing: there is none, or it cannot be executed.
        WrongInterpreter: it is not MicroPython, or a 64-bit one: viper's int is the machine word, so that firmware
            tested there proves nothing about a board.
    """
    given = os.environ.get(ENVIRONMENT_NAME)
    path = Path(given) if given else CHECKOUT / ".cache" / "micropython" / "bin" / "micropython"
    remedy = f"./run setup fetches it, or set {ENVIRONMENT_NAME} to a 32-bit MicroPython"
    if not path.is_file():
        raise InterpreterMissing(f"no MicroPython at {path}; {remedy}")
    try:
        probe = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, timeout=20, check=False)
    except OSError as error:
        raise InterpreterMissing(f"MicroPython at {path} cannot be run ({error.strerror}); {remedy}") from error
    except subprocess.TimeoutExpired as error:
        raise WrongInterpreter(f"{path} did not answer within 20 s; {remedy}") from error
    words = probe.stdout.split()
    if probe.returncode != 0 or len(words) != 2:
        said = (probe.stderr or probe.stdout).strip().splitlines()[-1:] or ["nothing"]
        raise WrongInterpreter(f"{path} is not a working MicroPython: it said {said[0]!r}; {remedy}")
    name, largest = words[0], int(words[1])
    if name != "micropython":
        raise WrongInterpreter(f"{path} is {name}, not MicroPython; {remedy}")
    if largest != _WORD_32:
        raise WrongInterpreter(
            f"{path} is a 64-bit MicroPython (sys.maxsize = {largest}); boards compute with 32-bit words, and viper "
            f"code behaves differently here; {remedy}"
        )
    return path


HEAP = {1: "192k", 2: "256k"}  # by motors: what the smallest board for them has, which compiles at boot as these do
_START_AGAIN = 75  # exit status of a board that wants to be reset (firmware/boot/main.py)
_MOST_STARTS = 3  # without a tick in between
_BANNER = "jointbench: slot "  # what a board says of its image when it starts well
_HANGS = 10.0  # [s] of its processor time for one answer: only a board that hangs takes longer
_LOOK_MS = 500  # of the wall clock between looks at whether it hangs
_GREETING = struct.Struct("<4I")
# The pipes arrive as standard input and output and become 3 and 4; what the board prints goes to its log.
_AS_BOARD = 'exec "$@" 3<&0 4>&1 0</dev/null 1>&2'
_COUNT = struct.Struct("<H")  # before the bytes at a smart drive's bus


def prepare_flash(folder: Path, config: dict[str, Any], program: Path | None = None) -> None:
    """Write a board's folder: what a fresh board holds, its firmware in slot a.

    With a `program` there are no slots: main.py is the program, and the firmware lies beside it (the board file as
    board.py), so that a program can be a variation of the firmware as well as something else altogether.

    Raises:
        BoardStartError: the firmware or the program is not there, or the folder cannot be written.
    """
    try:
        image = build_image("unix")
        shutil.rmtree(folder, ignore_errors=True)
        if program is None:
            write_factory(folder, image, config)
            return
        for name, content in image.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        shutil.copyfile(program, folder / "main.py")
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    except (OSError, FlashError) as error:
        raise BoardStartError(f"board folder {folder} cannot be written: {error}") from error


class Servo(Protocol):
    """A smart drive at a board's bus, which has the sensors and the motor."""

    def begin_tick(self, message: bytes) -> None:
        """See what the plant's sensors have at a tick."""
        ...

    def hear(self, data: bytes) -> bytes:
        """Answer what the board says on the bus."""
        ...

    def outputs(self, enable: int) -> tuple[int, int]:
        """Power and current [mA] that it gives its motor, of a board that has its ENABLE so."""
        ...


class EmulatedBoard:
    """A running board, from tick to tick; once dead it stays dead, with `death` saying why, until it is restarted."""

    def __init__(
        self, interpreter: Path, folder: Path, motors: int = 1, alone: bool = False, servo: Servo | None = None
    ) -> None:
        """Start the program of a prepared folder, which its config.json tells of as many motors.

        `alone` says that nobody has other boards to wake while this one computes. A `servo` is the motor, at the bus
        that files 5 and 6 of the board are.

        Raises:
            BoardStartError: the process cannot be started.
        """
        self._interpreter = interpreter
        self._folder = folder
        self._motors = motors
        self._alone = alone
        self._servo = servo
        self._heap = f"heapsize={HEAP[motors]}"
        self._words = struct.Struct(f"<{4 * motors}i")
        self._starts = 0
        (folder / "stderr.log").unlink(missing_ok=True)
        self._power_on()

    def restart(self) -> None:
        """Take the power and give it back: the board starts anew from what its folder holds.

        Raises:
            BoardStartError: the process cannot be started.
        """
        self.close()
        self._power_on()

    def _power_on(self) -> None:
        self._greeted = False
        self.death: str | None = None
        # As modules: a file's path would lie on the board's heap, and its length would show in STATUS.
        program = ["-c", "import boot, main"] if (self._folder / "boot.py").exists() else ["-m", "main"]
        bench_in, board_out = os.pipe()
        board_in, bench_out = os.pipe()
        shell = _AS_BOARD
        bus: tuple[int, ...] = ()
        if self._servo is not None:
            answers, self._bus_out = os.pipe()
            self._bus_in, asks = os.pipe()
            bus = answers, asks
            shell += f" 5</dev/fd/{answers} 6>/dev/fd/{asks}"  # sh has no descriptors above 9
        try:
            with open(self._folder / "stderr.log", "ab") as log:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", shell, "board", self._interpreter, "-X", self._heap, *program],
                    cwd=self._folder,
                    stdin=board_in,
                    stdout=board_out,
                    stderr=log,
                    pass_fds=bus,
                    start_new_session=True,  # Ctrl-C in the terminal is the bench's, who ends its boards in order
                )
        except OSError as error:
            os.close(bench_in)
            os.close(bench_out)
            raise BoardStartError(f"board in {self._folder} cannot be started: {error}") from error
        finally:
            for descriptor in (board_in, board_out, *bus):
                os.close(descriptor)
        # A board that wakes shall not take the core from the bench that still has others to wake: only for speed.
        with contextlib.suppress(OSError):
            if not self._alone:
                os.sched_setscheduler(self._process.pid, os.SCHED_BATCH, os.sched_param(0))
        self._in, self._out = bench_in, bench_out
        os.set_blocking(bench_in, False)
        self._poll = select.poll()
        self._poll.register(self._in, select.POLLIN)
        if self._servo is not None:
            self._poll.register(self._bus_in, select.POLLIN)

    @property
    def pid(self) -> int:
        """Process number of the board."""
        return self._process.pid

    def send_tick(self, message: bytes) -> None:
        """Send one tick's message.

        Raises:
            BoardDied: the board is no longer there to take it.
        """
        if self._servo is not None:
            self._servo.begin_tick(message)
        try:
            os.write(self._out, message)  # smaller than a pipe, and the board has read the one before: written whole
        except BrokenPipeError:
            self._start_again_or_die()
            self.send_tick(message)

    def receive_tick(self, tick: int) -> Answer:
        """Wait for the board's answer to `tick`; a board that asks to be started again is, and says nothing to it.

        Raises:
            BoardDied: it ended, did not answer, or does not speak this bench's layout.
        """
        try:
            answer = self._answer(tick)
        except EOFError:
            self._start_again_or_die()
            return Answer((0,) * self._motors, (0,) * self._motors, b"")
        self._starts = 0
        return answer

    def _answer(self, tick: int) -> Answer:
        if not self._greeted:
            self._check_greeting()
        size = self._words.size
        try:
            message = os.read(self._in, size + MAX_SERIAL)  # mostly it is there, and whole
        except BlockingIOError:
            message = self._read(b"", size + MAX_SERIAL)
        if not message:
            raise EOFError
        while len(message) < size:
            message = self._read(message, size)
        try:
            enable, command, sent = read_outputs(self._words.unpack_from(message), tick)
        except ValueError as error:
            self._die(str(error))
        while len(message) < size + sent:
            message = self._read(message, size + sent)
        if self._servo is not None:  # what the board said to it is what counts
            power, current = self._servo.outputs(enable[0])
            enable, command = (power,), (current,)
        return Answer(enable, command, message[size:])

    def close(self) -> None:
        """End the board: its pipes close, which it takes as power off; it is killed if it does not."""
        for descriptor in (self._in, self._out, *((self._bus_in, self._bus_out) if self._servo else ())):
            os.close(descriptor)
        try:
            self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _check_greeting(self) -> None:
        message = b""
        while len(message) < TICK_OUT_SIZE:
            message = self._read(message, TICK_OUT_SIZE)
        layout, inputs, *rest = _GREETING.unpack(message)
        expected, size = greeting(self._motors)
        if (layout, inputs, *rest) != (expected, size, 0, 0):
            self._die(
                f"board speaks pipe layout {layout:#010x} with {inputs} bytes a tick, this bench {expected:#010x} with "
                f"{size}; firmware and bench must come from the same checkout"
            )
        self._greeted = True

    def _read(self, begun: bytes, size: int) -> bytes:
        """Wait for more of a message of at most `size` bytes, and return it with what had `begun`."""
        while self._wait() != self._in:
            self._serve_bus()
        chunk = os.read(self._in, size - len(begun))
        if not chunk:
            raise EOFError
        return begun + chunk

    def _wait(self) -> int:
        """Wait for the board to say something, and return which descriptor it says it on."""
        ready = self._poll.poll(_LOOK_MS)
        if not ready:
            patience = Patience(self.pid, own=_HANGS)
            while not (ready := self._poll.poll(_LOOK_MS)):
                if patience.is_over:
                    self._die(f"no answer within {patience}: it hangs")
        return ready[0][0]

    def _serve_bus(self) -> None:
        """Let the servo hear what the board says at its bus, and answer."""
        assert self._servo is not None
        head = os.read(self._bus_in, _COUNT.size)
        if not head:
            raise EOFError
        heard = os.read(self._bus_in, _COUNT.unpack(head)[0])
        answer = self._servo.hear(heard)
        os.write(self._bus_out, _COUNT.pack(len(answer)) + answer)

    def _start_again_or_die(self) -> None:
        """Start a board that has ended, if it asks for it as machine.reset() would; but not for ever without a tick."""
        try:
            self._die("")
        except BoardDied:
            self._starts += 1
            if self._process.returncode != _START_AGAIN or self._starts > _MOST_STARTS:
                raise
        self.restart()

    def _die(self, reason: str) -> NoReturn:
        """Make sure the process is gone, put the cause together and raise it."""
        try:
            self._process.wait(timeout=0.0 if reason else 2.0)
        except subprocess.TimeoutExpired:
            reason = reason or "closed its pipes"
            self._process.kill()
            self._process.wait()
        lines = (self._folder / "stderr.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = [line for line in lines[-1:] if not line.startswith(_BANNER)]
        self.death = ": ".join([reason or f"exit status {self._process.returncode}", *said])
        raise BoardDied(self.death)
