"""Every error of the virtual bench that its user can act on."""


class BenchError(Exception):
    """Base of all errors of the virtual bench."""


class BenchFileError(BenchError, ValueError):
    """Raised when a bench file or plant file has a missing, unknown, mistyped or contradictory entry."""


class InterpreterMissing(BenchError, FileNotFoundError):
    """Raised when there is no MicroPython where the bench looks for it."""

    __str__ = Exception.__str__


class WrongInterpreter(BenchError, RuntimeError):
    """Raised when the interpreter is not the 32-bit MicroPython that computes as a board does."""


class BoardStartError(BenchError, RuntimeError):
    """Raised when an emulated board cannot be started at all."""


class BoardDied(BenchError, RuntimeError):
    """Raised inside the bench when a board ends, hangs or speaks another layout; the others go on."""


class ControlError(BenchError, ValueError):
    """Raised when a control client asks for something that cannot be done; it is told so and the bench goes on."""


class QemuMissing(BenchError, FileNotFoundError):
    """Raised when there is no QEMU, no image for it or no compiler where the bench looks for them."""

    __str__ = Exception.__str__


class Rp2040Missing(BenchError, FileNotFoundError):
    """Raised when there is no emulator, image, bootrom or node where the bench looks for them."""

    __str__ = Exception.__str__


class ProgramFailed(BenchError, RuntimeError):
    """Raised when a program on the emulated Cortex-M3 raises an exception, ends the board or hangs."""
