"""How each fault is made to strike: by the bench, by the board's program, or by the host itself."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jointbench.errors import JointbenchError, PortInUse
from jointbench.link import open_bench
from jointwire import MessageType

if TYPE_CHECKING:
    from tools.faults.session import Session

LAST_WORDS = "killed.json"
STALL_US = 1_000_000
ROOM_LEFT = 64  # bytes of the disk that is about to be full
BROKE = "broke"  # file that a board's program leaves in its folder when it breaks


def strike(session: Session) -> None:
    """Let the cell's fault begin, now; the lines' faults and the clocks' begin by themselves."""
    session.shown = session.ask({"heal": session.node})["tick"]  # the number of the next tick
    fault = session.cell.fault
    match fault.way:
        case "inject":
            session.shown = session.ask({"inject": {"node": session.node, **fault.setting}})["tick"]
        case "restart":
            session.clock.target.restart(session.node)
            session.struck = 1  # or the bench would have refused
        case "echo" if session.cell.state.name != "BOOT":
            session.bench.boards[0].tell(MessageType.ECHO, count=fault.setting, data=bytes(fault.setting))
        case "host":
            _HOST[fault.setting](session)
        case _:
            pass


def strikes_of(session: Session) -> int:
    """How often the cell's fault has struck, as it is known where it was made; 0 of one that only its name can show."""
    fault = session.cell.fault
    match fault.way:
        case "line":
            return session.board.port.faults.get(fault.name, 0)
        case "inject":
            return session.altered
        case "echo":
            return int((session.live.parent / "boards" / session.board.joint / BROKE).exists())
        case _:
            return session.struck


def _be_killed(session: Session) -> None:
    """The process ends here, as its last words know: what it had recorded, and when it was."""
    words = {"taken": session.taken, "time_us": session.clock.now_us(), "shown": session.shown}
    (session.folder / LAST_WORDS).write_text(json.dumps(words), encoding="utf-8")
    os.kill(os.getpid(), signal.SIGKILL)


def _stall(session: Session) -> None:
    """The process does nothing for a while; what comes meanwhile waits."""
    end_us, written = session.clock.now_us() + STALL_US, session.board.port.written
    while (left_us := end_us - session.clock.now_us()) > 0:
        session.clock.target.wait(left_us)
    session.struck = int(session.board.port.written == written)


def _fill_the_disk(session: Session) -> None:
    """The system lets no file of this process grow further, as a full disk does."""
    frames = session.folder / "run" / "frames.bin"
    size = frames.stat().st_size if frames.exists() else 0
    _limit_files(size + ROOM_LEFT)
    session.struck = 1


def _come_second(session: Session) -> None:
    """Another program opens the same board."""
    try:
        open_bench(session.live).close()
        session.second_error = "nothing at all"
    except JointbenchError as error:
        cause = error.__cause__ if isinstance(error.__cause__, PortInUse) else error
        session.second_error = type(cause).__name__
    session.struck = 1


def let_files_grow() -> None:
    """Undo what a full disk did."""
    _limit_files(resource.getrlimit(resource.RLIMIT_FSIZE)[1])


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


_HOST: dict[str, Callable[[Session], None]] = {
    "killed": _be_killed,
    "stalled": _stall,
    "disk_full": _fill_the_disk,
    "second_client": _come_second,
}


def last_words(folder: Path) -> dict[str, int]:
    """What a host that was killed had said."""
    return json.loads((folder / LAST_WORDS).read_text(encoding="utf-8"))
