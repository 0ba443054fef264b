"""The private folder for what programs of one user tell each other: only their owner may look into it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from jointbench.errors import FeedError


def private_folder() -> Path:
    """The folder, made if need be: `jointbench` in $XDG_RUNTIME_DIR, else `jointbench-UID` among temporary files.

    Raises:
        FeedError: it cannot be made, or what is there is another user's or open to others.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    own, among_all = _names()
    folder = Path(runtime) / own if runtime else Path(tempfile.gettempdir()) / among_all
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FeedError(f"the folder {folder} cannot be made: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not is_private(folder):
        raise FeedError(
            f"{folder} is another user's, or open to others; remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    return folder


def is_feed_socket(path: Path) -> bool:
    """Whether a path is where a program of this user may serve a feed, by its name and its folder."""
    return path.suffix == ".sock" and path.parent.name in _names() and is_private(path.parent)


def is_private(folder: Path) -> bool:
    """Whether it is a folder of this user's own, no link, that nobody else may enter."""
    try:
        about = folder.lstat()
    except (OSError, ValueError):  # a name that no file can have
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077


def _names() -> tuple[str, str]:
    """Of the folder: in one that is the user's own, and among those of all users."""
    return "jointbench", f"jointbench-{os.geteuid()}"
