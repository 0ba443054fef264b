"""The lock of a serial port: a file that says who has it and since when, to every user of the machine.

The system holds the lock as long as the file is open, and frees it when the process ends, however that ends: the file
of a process that is gone counts no more, and its port is taken over without a question.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from jointbench.errors import PortInUse

_TRIES = 10  # a file that its holder removes while we open it is made anew
_MOST_BYTES = 4096


def program_name() -> str:
    """Its name, of the command line with the verb: "jointbench run"."""
    path = Path(sys.argv[0] or "python")
    if path.stem == "jointbench" or path.parts[-2:] == ("jointbench", "__main__.py"):
        return " ".join(["jointbench", *sys.argv[1:2]])
    return path.name


def this_program() -> str:
    """Name and process: "jointbench run (process 4711)"."""
    return f"{program_name()} (process {os.getpid()})"


class PortLock:
    """A port that is ours until `close`.

    Attributes:
        path: of the lock's file.
    """

    def __init__(self, device: str, folder: Path | None = None) -> None:
        """Take the lock of a device.

        Args:
            device: path of the port; all links to one device have one lock.
            folder: of the locks; by default the one place for all users of this machine.

        Raises:
            PortInUse: another has it; says who, in which process, since when.
            OSError: the lock's file cannot be written.
        """
        self.path: Path = _lock_path(device, folder)
        _make_for_all(self.path.parent)
        self._file = self._take(device)
        self._facts: dict[str, Any] = {}
        self.tell(port=device, owner=_user(), pid=os.getpid(), program=program_name(), since=_now())

    def tell(self, **facts: Any) -> None:
        """Write these facts, beside those before, for whoever finds the port taken."""
        self._facts |= facts
        text = json.dumps(self._facts).encode() + b"\n"
        os.pwrite(self._file, text, 0)
        os.ftruncate(self._file, len(text))

    def close(self) -> None:
        """Give the port back; closing twice is harmless."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # a file that was another user's stays
                self.path.unlink()
            os.close(self._file)
            self._file = -1

    def _take(self, device: str) -> int:
        import fcntl  # not everywhere; where it is missing there are no such devices either

        for _ in range(_TRIES):
            try:
                file = _open_for_all(self.path)
            except FileNotFoundError:  # removed between two looks
                continue
            if not _is_plain(file):
                os.close(file)
                raise PortInUse(f"{device} cannot be locked: {self.path} is no file of a lock; remove it")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(self.path, file):
                    return file
            except BlockingIOError:
                holder = _holder(file)
                os.close(file)
                raise PortInUse(f"{device} is in use: {holder}") from None
            os.close(file)
        raise PortInUse(f"{device} is in use: other programs open and close it again and again; end them, or try again")


def lock_port(url: str) -> PortLock | None:
    """Lock the port of a URL; None where that is no device of this machine.

    Raises:
        PortInUse: another has it.
        OSError: the lock's file cannot be written.
    """
    try:
        is_device = stat.S_ISCHR(os.stat(url).st_mode)
    except (OSError, ValueError):
        return None
    return PortLock(url) if is_device else None


def lock_facts(device: str, folder: Path | None = None) -> dict[str, Any]:
    """Facts in the lock of a device, of whoever has it or had it; none where it cannot be read."""
    try:
        file = os.open(_lock_path(device, folder), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            facts: object = json.loads(os.read(file, _MOST_BYTES)) if _is_plain(file) else {}
        finally:
            os.close(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], facts) if isinstance(facts, dict) else {}


def _lock_path(device: str, folder: Path | None) -> Path:
    folder = folder or Path(tempfile.gettempdir()) / "jointbench-ports"
    return folder / f"{os.path.realpath(device).strip('/').replace('/', '-')}.lock"


def _holder(file: int) -> str:
    """Holder of a lock by its file, and what to do."""
    try:
        about = json.loads(os.pread(file, _MOST_BYTES, 0))
        who = f"{about['owner']} has it since {about['since']} (process {about['pid']}, {about['program']})"
    except (ValueError, LookupError, TypeError):  # taken this moment
        who = "somebody has taken it just now"
    return f"{who}; end that first, or wait until it is done"


def _make_for_all(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # another has made it at the same moment
            folder.chmod(0o1777)


def _open_for_all(path: Path) -> int:
    """Open the lock's file, made if need be, so that whoever takes it over can write into it."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL)
        os.fchmod(file, 0o666)
        return file
    return os.open(path, flags)  # without O_CREAT: the system refuses that for another user's file in such a folder


def _is_plain(file: int) -> bool:
    """Return whether it is a file with this name alone: anybody can put a pipe, or a link to another's file, there."""
    about = os.fstat(file)
    return stat.S_ISREG(about.st_mode) and about.st_nlink <= 1  # 0 where its holder has just removed it


def _is_at(path: Path, file: int) -> bool:
    """Return whether the open file is still the one at its path: its holder may have removed it before."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(file))
    return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return f"user {os.getuid()}"


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
