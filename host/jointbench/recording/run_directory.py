"""The directory of a run: its files, how they are read and written, and runs in zip files and stores."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import Any, cast

import numpy as np
import tomli_w

from jointbench.bench import Ledger
from jointbench.errors import MissingExtra, RunError
from jointbench.files import bytes_of, is_sealed, json_values, sync, text_of, toml_values, what_changed, write_file
from jointbench.model import Robot, library_names, load_robot, lock_reference, part_of, split_reference
from jointbench.model.urdf import read_urdf

VERSION = 1
PROVENANCE, SCHEMA = "run.toml", "schema.json"
ROBOT, ROBOT_URDF = "robot.toml", "robot.urdf"
FRAMES, EVENTS, RESULT, SAMPLES = "frames.bin", "events.jsonl", "result.json", "samples.npz"
MAPPING = "mapping.toml"
CONVERTED = "converted.json"
"""What is still known of the recording whose samples came back from another program's format."""

IMPORTED = "imported"
"""Outcome of a run that another program recorded."""

_BLANK = b"\xef\xbb\xbf \t\r\n"
"""What may stand before the first mark of an XML file."""

_URDF_KEY = re.compile(r"^[ \t]*urdf[ \t]*=.*$", re.MULTILINE)

_RESULT_ENTRIES = {
    "outcome": str, "records": int, "first_us": int | None, "last_us": int | None, "frames_sha256": str, "ledger": dict,
}  # fmt: skip


def toml_text(values: Mapping[str, Any]) -> str:
    """TOML of nested mappings, lists, strings, numbers, booleans and arrays; keys whose value is None are left out.

    >>> print(toml_text({"name": "arm", "limit": None, "bench": {"seed": 1}}), end="")
    name = "arm"
    <BLANKLINE>
    [bench]
    seed = 1

    Raises:
        RunError: a value has no TOML form.
    """
    return tomli_w.dumps(_plain_table(values, ""))


def _plain_table(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    return {key: _plain(value, f"{path}{key}") for key, value in values.items() if value is not None}


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    match value:
        case bool() | int() | float() | str():
            return value
        case Mapping():
            return _plain_table(cast(Mapping[str, Any], value), f"{path}.")
        case list() | tuple():
            return [_plain(item, path) for item in cast(list[Any], value)]
        case _:
            raise RunError(f"{path} = {value!r} cannot be written to run.toml; use text, numbers, lists or tables")


def create_run_directory(
    directory: str | Path,
    provenance: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    fill: Callable[[Path], None] | None = None,
) -> Path:
    """Create a run's directory with a copy of the robot file (robot.toml or robot.urdf) and run.toml (all else known).

    The directory appears with all of its files at once, and they are on the disk before this returns: whoever finds it,
    after a crash or a power cut, too, can read its provenance.

    Args:
        directory: to create, with its parents.
        provenance: plain data; `robot` must be a library name or the path of a robot file.
        files: content of further files by name.
        fill: writes what else it shall appear with into the folder that it is given.

    Returns:
        The directory's path.

    Raises:
        RunError: the directory exists already or cannot be made, or `robot` is missing.
        RobotError, FileError: the robot cannot be loaded.
    """
    if "robot" not in provenance:
        raise RunError("a run needs provenance['robot']: a name of the robot library or the path of a robot file")
    name = str(provenance["robot"])
    robot = load_robot(name)
    values = {
        "version": VERSION,
        "jointbench": package_version(),
        **provenance,
        "robot": robot.name + lock_reference(dict(robot.locked)),
    }
    content = {**_robot_copies(name), PROVENANCE: toml_text(values).encode(), **(files or {})}
    path = Path(directory)
    if path.exists():
        raise RunError(f"run directory {path} exists; a run is never overwritten, name another directory")
    unfinished = path.parent / f".{path.name}.{os.getpid()}"
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        for file_name, data in content.items():
            write_file(unfinished / file_name, data)
        if fill is not None:
            fill(unfinished)
        unfinished.rename(path)
        for folder in (path, *made):
            sync(folder.parent)
    except OSError as error:
        raise RunError(f"run directory {path} cannot be written: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return path


def read_provenance(path: Path) -> dict[str, Any]:
    """Read what run.toml says.

    Raises:
        RunError: the directory has no readable run.toml, or one of another version.
    """
    if not path.is_dir():
        if path.suffix == ".zip" or (path.parts[:1] and path.parts[0].endswith(":")):
            raise RunError(
                f"{path} is no directory; only `jointbench fit`, without --together, reads runs from .zip files and "
                f"URLs: unpack or copy it here"
            )
        what = "it is a file" if path.exists() else "there is no such directory"
        raise RunError(f"{path} is not a run: {what}; runs are directories that hold a run.toml")
    try:
        values = toml_values(text_of(path / PROVENANCE))
    except FileNotFoundError:
        raise RunError(
            f"{path} is not a run: it holds no run.toml; give a folder that `run` or `import` wrote"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RunError(f"{path / 'run.toml'} cannot be read: {error}") from error
    if values.get("version") != VERSION:
        raise RunError(f"{path / 'run.toml'}: version = {values.get('version')!r}; this release reads {VERSION}")
    return values


def schema_said(provenance: Mapping[str, Any]) -> int | None:
    """The hash of the schema that run.toml says its frames are of, None where it says none that could be."""
    said = str(provenance.get("schema_hash", ""))
    return int(said, 16) if re.fullmatch("[0-9a-f]{8}", said, re.ASCII) else None


def read_result(path: Path) -> dict[str, Any] | None:
    """Read what result.json says, None where there is none: the run was cut off, or is still going on.

    Of a run that was imported it holds less: none of its entries is needed but the outcome.

    Raises:
        RunError: it was changed after it was written, cannot be read, lacks an entry, or holds something else in one.
    """
    try:
        text = text_of(path / RESULT)
        result = json_values(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise RunError(f"{path / RESULT} cannot be read: {error}") from error
    if not isinstance(result, dict):
        raise RunError(f"{path / RESULT} cannot be read: it holds no table of entries")
    values = cast(dict[str, Any], result)
    if (is_sealed(text) or "files" in values) and (changed := what_changed(text, values)):
        raise RunError(
            f"run {path}: {RESULT} {changed}; take it from a copy: it vouches for the run's other files, and is never "
            "edited"
        )
    if values.get("outcome") == IMPORTED:
        return values
    if missing := [name for name in _RESULT_ENTRIES if name not in values]:
        raise RunError(f"{path / RESULT} cannot be read: it lacks {', '.join(missing)}")
    if wrong := [name for name, kind in _RESULT_ENTRIES.items() if not isinstance(values[name], kind)]:
        damage = ", ".join(f"{name} = {values[name]!r}" for name in wrong)
        raise RunError(f"{path / RESULT} cannot be read: it has {damage}; take it from a copy of the run")
    try:
        Ledger.from_dict(values["ledger"])
    except (KeyError, TypeError) as error:
        raise RunError(f"{path / RESULT} cannot be read: its ledger is none ({error})") from error
    return values


def read_converted(path: Path) -> tuple[Ledger | None, tuple[str, ...], str | None]:
    """Ledger, warnings and hash of the recording that a converted run's samples are of; none where there was none.

    Raises:
        RunError: converted.json cannot be read.
    """
    try:
        values = json_values(text_of(path / CONVERTED))
        ledger = values["ledger"]
        return None if ledger is None else Ledger.from_dict(ledger), tuple(values["warnings"]), str(values["sha256"])
    except FileNotFoundError:
        return None, (), None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path / CONVERTED} cannot be read: {error}; import the file again") from error


def common_ticks(provenance: Mapping[str, Any]) -> bool:
    """Return whether all boards of a run count the same ticks, as those of a virtual bench mostly do.

    Raises:
        KeyError: nothing is said of it, nor of the clock.
    """
    return bool(provenance.get("common_ticks", provenance["clock"] == "virtual"))


def robot_file(path: Path) -> Path:
    """A run's own copy of its robot file: robot.urdf where that alone was copied, else robot.toml."""
    alone = (path / ROBOT_URDF).is_file() and not (path / ROBOT).is_file()
    return path / ROBOT_URDF if alone else path / ROBOT


def read_robot(path: Path, name: str | None = None) -> Robot:
    """Load the robot that was recorded, from the run's own copy of its file.

    Args:
        path: of the run.
        name: what run.toml calls it: "NAME:N" where only its first N joints were there, "NAME:lock=…" where some were
            held still.

    Raises:
        RobotError: there is no copy.
        FileError: an entry in it is wrong.
    """
    copy = robot_file(path)
    if copy.name == ROBOT and copy.is_file() and copy.read_bytes().lstrip(_BLANK).startswith(b"<"):
        return read_urdf(copy)  # of a run imported when every copy was named robot.toml
    robot = load_robot(copy)
    whole, modules = split_reference(name or robot.name)
    return part_of(robot, modules) if modules is not None and whole == robot.name else robot


def package_version() -> str:
    """Version of this package, or "source" when it runs from a checkout."""
    try:
        return metadata.version("jointbench")
    except metadata.PackageNotFoundError:
        return "source"


def _robot_copies(name: str) -> dict[str, bytes]:
    """Copies of a robot's file, and of the URDF that it is about; all of it where only a chain of it was there."""
    name, _ = split_reference(name)
    if name in library_names():
        return {ROBOT: (resources.files("jointbench.model") / "library" / f"{name}.toml").read_bytes()}
    path = Path(name)
    if path.suffix == ".urdf":
        return {ROBOT_URDF: bytes_of(path)}
    urdf = toml_values(text_of(path)).get("urdf")
    if urdf is None:
        return {ROBOT: bytes_of(path)}
    text = _URDF_KEY.sub(f'urdf = "{ROBOT_URDF}"', text_of(path), count=1)
    return {ROBOT: text.encode(), ROBOT_URDF: bytes_of(path.parent / urdf)}


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
