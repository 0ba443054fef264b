"""The MicroPython that emulated boards run on: the 32-bit unix port, found by convention and checked before use."""

import os
import subprocess
from pathlib import Path

from hil_tests.virtual_bench.errors import InterpreterMissing, WrongInterpreter

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
