"""Runs from wherever they are: folders, zip files, object stores and web servers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jointbench.errors import MissingExtra, RunError
from jointbench.recording.run_directory import PROVENANCE

_ZIP = ".zip"
_WILD = "*?["


def local_directory(url: str | Path) -> Path | None:
    """The folder a URL names on this machine, None where a run must be fetched from what it names.

    >>> local_directory("file:///data/run"), local_directory("s3://bucket/run")
    (PosixPath('/data/run'), None)
    """
    text = str(url)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    return None if "://" in text or "::" in text or text.endswith(_ZIP) else Path(text)


def is_pattern(url: str | Path) -> bool:
    """Return whether a name has wildcards, and is not that of a folder that is there.

    >>> is_pattern("s3://bucket/arm*"), is_pattern("runs/arm7")
    (True, False)
    """
    directory = local_directory(url)
    return any(mark in str(url) for mark in _WILD) and not (directory is not None and directory.exists())


def run_name(url: str | Path) -> str:
    """Return what to call a run by: the last part of its URL.

    >>> run_name("s3://bucket/arm7/"), run_name("zip://arm7::logs.zip"), run_name("logs/arm7.zip")
    ('arm7', 'arm7', 'arm7')
    """
    directory = local_directory(url)
    if directory is not None:
        return Path(os.path.realpath(directory)).name or "run"
    parts = (part.removeprefix("zip://").rstrip("/") for part in str(url).split("::"))
    name = Path(next(filter(None, parts), "run")).name.removesuffix(_ZIP)
    return name if name.strip(".") else "run"  # ".." would lead out of the folder that it is fetched to


@contextmanager
def local_run(url: str | Path) -> Iterator[Path]:
    """A run's directory on this machine, until the end of the context where it had to be fetched.

    Args:
        url: a folder, a .zip file of one, or what fsspec reads: "zip://arm7::logs.zip", "s3://bucket/arm7",
            "https://…/arm7.zip".

    Raises:
        RunError: there is nothing, it cannot be read, or it holds no run or more than one.
        MissingExtra: its kind of storage needs a package that is not installed.
    """
    directory = local_directory(url)
    if directory is not None:
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="jointbench-") as folder:
        # Called as it was there: the name is part of what is told about the run.
        place = Path(folder) / run_name(url)
        with _reading(url):
            files, inside = _open(_zipped(str(url)))
            files.get(inside.rstrip("/") + "/" if inside else "", f"{place}/", recursive=True)
        yield _run_within(url, place)


def expand(urls: Sequence[str | Path]) -> list[str]:
    """All runs that names with wildcards stand for, in order; a name without any stands for itself.

    Raises:
        RunError: a wildcard matches no run.
        MissingExtra: its kind of storage needs a package that is not installed.
    """
    found: list[str] = []
    for url in map(str, urls):
        if not is_pattern(url):
            found.append(url)
            continue
        with _reading(url):
            files, pattern = _open(url)
            runs = [each for each in sorted(files.glob(pattern)) if _is_run(files, str(each))]
        if not runs:
            raise RunError(
                f"{url} matches no run: no folder of this name holds a run.toml, and no .zip file; check the path"
            )
        local = local_directory(url) is not None
        _, chained, rest = url.partition("::")  # what a run is inside of: the zip file of "zip://arm*::logs.zip"
        found += [str(each) if local else f"{files.unstrip_protocol(each)}{chained}{rest}" for each in runs]
    return found


def _is_run(files: Any, name: str) -> bool:
    return name.endswith(_ZIP) or bool(files.exists(f"{name}/{PROVENANCE}"))


def _zipped(url: str) -> str:
    """A .zip file stands for all it holds."""
    return f"zip://::{url}" if url.endswith(_ZIP) and "::" not in url else url


def _open(url: str) -> tuple[Any, str]:
    import fsspec

    files, inside = fsspec.core.url_to_fs(url)
    return files, str(inside)


@contextmanager
def _reading(url: str | Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"{url} cannot be read: {error}; install what it names, or copy the run here") from error
    except FileNotFoundError as error:
        raise RunError(f"{url} cannot be read: there is nothing of that name") from error
    except Exception as error:  # each kind of storage has errors of its own, without a common base
        raise RunError(f"{url} cannot be read: {type(error).__name__} {error}") from error


def _run_within(url: str | Path, place: Path) -> Path:
    """The one folder that holds a run.toml."""
    found = sorted(file.parent for file in place.rglob(PROVENANCE))
    if len(found) != 1:
        inner = ", ".join(str(each.relative_to(place)) for each in found[:3])
        raise RunError(
            f"{url} holds {len(found)} runs{f' ({inner}, …)' if found else ''}; name one folder that holds a run.toml, "
            f"inside a zip file as zip://FOLDER::FILE.zip"
        )
    return found[0]
