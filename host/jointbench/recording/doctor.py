"""Verifies a run directory and says what is damaged; it only reads, and nothing is ever repaired by rewriting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.errors import JointbenchError, RunError
from jointbench.link.ledger import DEFAULT_LIMIT, Ledger
from jointbench.recording.contents import Contents, read_contents
from jointbench.recording.diagnosis import Diagnosis, Finding
from jointbench.recording.injected_faults import injected_faults
from jointbench.recording.record_file import RecordKind
from jointbench.recording.run import Run, open_run
from jointbench.recording.run_directory import (
    EVENTS,
    FRAMES,
    PROVENANCE,
    RESULT,
    SAMPLES,
    SCHEMA,
    read_provenance,
    read_result,
    read_robot,
    robot_file,
)
from jointbench.recording.samples import read_samples
from jointbench.recording.timeline import RESIDUAL_LIMIT_US
from jointwire import Schema, SchemaError, own_schema

_SHOWN = 8  # places named one by one

_AGAIN = "record the motion again; this run stays as it is."
_COPY = "take the file from a copy, if there is one: nothing here can make up for it."
_OPEN = "open it with the release named in run.toml; if that is this one, take run.toml from a copy."
_LEFT_OUT = "nothing needs repair: whoever opens the run leaves the torn end out."


def examine(run: str | Path) -> Diagnosis:
    """Look at everything a run directory holds, recorded or imported.

    Raises:
        RunError: there is no such directory.
    """
    path = Path(run)
    if not path.is_dir():
        raise RunError(f"{path} is not a run: there is no such directory; runs are directories that hold a run.toml")
    provenance, findings = _read_provenance(path)
    if (path / SAMPLES).is_file():
        findings.append(_check_samples(path))
    else:
        findings += _examine_recording(path, provenance)
    opened, usable = _open(path)
    if isinstance(opened, Run) and opened.clocks:
        findings.append(_check_clocks(opened))
    elif not isinstance(opened, Run) and all(finding.ok for finding in findings):
        findings.append(Finding("opening", False, f"each file is whole, but {opened}", advice=_OPEN))
    return Diagnosis(path, tuple(findings), usable)


def _examine_recording(path: Path, provenance: Mapping[str, Any] | None) -> list[Finding]:
    schema, schema_finding = _check_schema(path, provenance)
    result, result_finding = _check_result(path)
    findings = [schema_finding]
    try:
        data = (path / FRAMES).read_bytes()
    except OSError as error:
        return [*findings, Finding(FRAMES, False, f"cannot be read: {error.strerror}", advice=_COPY), result_finding]
    joints = _joints(provenance, result)
    contents = read_contents(data, schema, joints, float(result["ledger"]["limit"]) if result else DEFAULT_LIMIT)
    findings += [_check_records(contents), _check_end(contents, result), _check_frames(contents), result_finding]
    if result:
        findings.append(_check_digest(contents, result))
    findings += [_check_ledger(contents, result), _check_events(path)]
    if faults := injected_faults(path, joints):  # no damage to the run, but the cause of much that was lost
        findings.append(Finding("injected faults", True, "; ".join(each.text for each in faults)))
    return findings


def _read_provenance(path: Path) -> tuple[dict[str, Any] | None, list[Finding]]:
    provenance: dict[str, Any] | None = None
    try:
        values = read_provenance(path)
        joints = _joints(values, None)
        about = f"robot {values.get('robot')}, made by jointbench {values.get('jointbench')}"
        first = Finding(PROVENANCE, True, f"{about}, {len(joints)} boards" if joints else about)
        provenance = values
    except RunError as error:
        first = Finding(PROVENANCE, False, str(error), advice=_COPY)
    except (KeyError, TypeError, ValueError) as error:
        first = Finding(PROVENANCE, False, f"its boards lack node or joint: {error!r}", advice=_COPY)
    try:
        robot = read_robot(path, str((provenance or {}).get("robot", "")))
        second = Finding(robot_file(path).name, True, f"{len(robot.joint_names)} joints")
    except (JointbenchError, OSError) as error:
        second = Finding(robot_file(path).name, False, str(error), advice=_COPY)
    return provenance, [first, second]


def _joints(provenance: Mapping[str, Any] | None, result: Mapping[str, Any] | None) -> dict[int, str]:
    """Joint of each node, in joint order: run.toml says it, and result.json where that is gone."""
    boards = (provenance or {}).get("board") or (result["ledger"]["boards"] if result else [])
    return {int(board["node"]): str(board["joint"]) for board in boards}


def _check_schema(path: Path, provenance: Mapping[str, Any] | None) -> tuple[int, Finding]:
    """The hash that seeds the CRC of the run's frames."""
    own = own_schema()
    said = str((provenance or {}).get("schema_hash", ""))
    try:
        schema = Schema.from_text((path / SCHEMA).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SchemaError) as error:
        seed = _hash(said, own.hash)
        text = f"cannot be read ({error}); frames are read as of schema {seed:08x}"
        return seed, Finding(SCHEMA, False, text, advice=_COPY)
    if said and said != f"{schema.hash:08x}":
        text = f"is of schema {schema.hash:08x}, run.toml says {said}: it is damaged, or of another run"
        return _hash(said, schema.hash), Finding(SCHEMA, False, text, advice=_COPY)
    if schema.hash == own.hash:
        return schema.hash, Finding(SCHEMA, True, f"{schema.hash:08x}, the same as this release's")
    differences = own.differences(schema)
    text = f"{schema.hash:08x}, another than this release's {own.hash:08x}: {'; '.join(differences[:3])}"
    return schema.hash, Finding(SCHEMA, True, text)


def _hash(said: str, otherwise: int) -> int:
    """A schema hash as run.toml says it, or another where that is none."""
    try:
        return int(said, 16)
    except ValueError:
        return otherwise


def _check_records(contents: Contents) -> Finding:
    counts = contents.counts
    about = f"{sum(counts.values())} records in {contents.n_bytes} bytes: {counts[RecordKind.FRAME]} frames"
    about += f", {counts[RecordKind.NOISE]} byte strings that were none" if counts[RecordKind.NOISE] else ""
    about += f", {counts[RecordKind.REST]} unfinished ones at the end" if counts[RecordKind.REST] else ""
    inside = [each for each in contents.damage if not each[0].torn]
    if not inside:
        return Finding(FRAMES, True, about)
    places = [f"bytes {damage.start} to {damage.end - 1}, {contents.at(before)} to {contents.at(after)}"
              for damage, before, after in inside]  # fmt: skip
    n_bytes = sum(damage.end - damage.start for damage, _, _ in inside)
    count = "1 place is" if len(inside) == 1 else f"{len(inside)} places are"
    text = f"{about}; {count} damaged, {n_bytes} bytes in all: what they held counts as lost"
    return Finding(FRAMES, False, text, _some(places), _COPY)


def _check_end(contents: Contents, result: Mapping[str, Any] | None) -> Finding:
    name, torn = "end of frames.bin", contents.torn
    last_us = contents.times[1] if contents.times else None
    if torn:
        text = f"torn in the middle of a record: {torn.end - torn.start} bytes are left out"
        if result and result["last_us"] is not None:
            missing = (result["last_us"] - (last_us if last_us is not None else result["first_us"] or 0)) / 1000.0
            text += f", and at most {missing:.1f} ms of data are missing"
        else:
            text += "; at most 100 ms of data are missing where the recorder was killed, 1 s after a power cut"
        return Finding(name, False, text, f"from byte {torn.start}, after {contents.at(last_us)}", _LEFT_OUT)
    if result and sum(contents.counts.values()) < result["records"] and not contents.damage:
        missing = result["records"] - sum(contents.counts.values())
        return Finding(name, False, f"cut off: its last {missing} records are missing", advice=_COPY)
    return Finding(name, True, f"whole, after {contents.at(last_us)}" if contents.times else "no record at all")


def _check_frames(contents: Contents) -> Finding:
    if not contents.undecoded:
        return Finding("frames", True, f"all {contents.counts[RecordKind.FRAME]} can be decoded")
    reasons = {reason for _, reason in contents.undecoded}
    counts = f"{len(contents.undecoded)} of {contents.counts[RecordKind.FRAME]}"
    text = f"{counts} cannot be decoded: {_some(sorted(reasons))}"
    places = [f"byte {position}" for position, _ in contents.undecoded]
    return Finding("frames", False, text, _some(places), "open it with the release that recorded it; see run.toml.")


def _check_result(path: Path) -> tuple[dict[str, Any] | None, Finding]:
    try:
        result = read_result(path)
        if result is None:
            text = "missing: the recorder was killed, the power failed, or it is still recording"
            return None, Finding(RESULT, False, text, advice="if it is still recording, look again afterwards.")
    except RunError as error:
        return None, Finding(RESULT, False, str(error), advice=_COPY)
    if result["outcome"] != "finished":
        return result, Finding(RESULT, False, f"the run was {result['outcome']}", advice=_AGAIN)
    return result, Finding(RESULT, True, "the run was finished")


def _check_digest(contents: Contents, result: Mapping[str, Any]) -> Finding:
    recorded = str(result["frames_sha256"])
    if contents.sha256 == recorded:
        return Finding("SHA-256", True, f"{recorded[:16]}… as recorded")
    text = f"frames.bin is not as recorded: {contents.sha256[:16]}…, was {recorded[:16]}…"
    return Finding("SHA-256", False, text, advice=_COPY)


def _check_ledger(contents: Contents, result: Mapping[str, Any] | None) -> Finding:
    ledger = contents.ledger
    if result and Ledger.from_dict(result["ledger"]) != ledger:
        text = f"counted again it says: {ledger.verdict}; result.json says: {result['ledger'].get('verdict')}"
        return Finding("ledger", False, text, advice=_COPY)
    if not ledger.is_valid:
        return Finding("ledger", False, ledger.verdict, advice=_AGAIN)
    return Finding("ledger", True, f"{ledger.verdict}; every board's counts close")


def _check_events(path: Path) -> Finding:
    try:
        text = (path / EVENTS).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return Finding(EVENTS, False, f"cannot be read: {error.strerror}", advice=_COPY)
    lines, before, wrong = text.splitlines(), None, list[str]()
    for number, line in enumerate(lines, start=1):
        time_us = _event_time(line)
        if time_us is None:
            torn = number == len(lines) and not text.endswith("\n")
            wrong.append(f"line {number} is {'torn' if torn else 'no event'}")
        elif before is not None and time_us < before:
            wrong.append(f"line {number} is earlier than the one before")
        before = time_us if time_us is not None else before
    if wrong:
        return Finding(EVENTS, False, f"{len(wrong)} of {len(lines)} lines are damaged", _some(wrong), _COPY)
    return Finding(EVENTS, True, f"{len(lines)} events in order")


def _event_time(line: str) -> int | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict):
        return None
    values = cast(dict[str, Any], event)
    time_us = values.get("time_us")
    return time_us if isinstance(time_us, int) and isinstance(values.get("event"), str) else None


def _check_clocks(run: Run) -> Finding:
    residuals = {joint: clock.residual_us for joint, clock in run.clocks.items()}
    joint, worst = max(residuals.items(), key=lambda item: item[1])
    drifts = ", ".join(f"{joint} {clock.drift_ppm:+.1f}" for joint, clock in run.clocks.items())
    text = f"largest residual {worst:.1f} µs ({joint}), limit {RESIDUAL_LIMIT_US:g}; drifts in ppm: {drifts}"
    advice = "" if worst <= RESIDUAL_LIMIT_US else "record on a quieter link, or with a SYNC wire."
    return Finding("clocks", worst <= RESIDUAL_LIMIT_US, text, advice=advice)


def _check_samples(path: Path) -> Finding:
    try:
        samples = read_samples(path / SAMPLES)
    except JointbenchError as error:
        return Finding(SAMPLES, False, str(error), advice="import the recording again.")
    wrong = [] if np.all(np.diff(samples.time) > 0.0) else ["times do not rise"]
    driven = _driven(path, samples.n_joints)
    for name in ("motor_position", "motor_torque", "joint_torque", "link_position", "motor_current"):
        values = getattr(samples, name)
        asked = samples.valid if name.endswith("position") else samples.valid & driven
        if values is not None and not np.all(np.isfinite(values[asked])):
            wrong.append(f"{name} is not finite in valid samples")
    about = f"{samples.n_samples} samples of {len(samples.joint_names)} joints at {samples.sample_period:g} s"
    if wrong:
        return Finding(SAMPLES, False, about, "; ".join(wrong), "import the recording again.")
    return Finding(SAMPLES, True, about)


def _driven(path: Path, n_joints: int) -> NDArray[np.bool_]:
    """Of which joints torque and current must be known: not of passive ones."""
    try:
        modelled = read_robot(path).modelled
    except (JointbenchError, OSError):  # told where the robot file is looked at
        modelled = np.ones(n_joints, dtype=np.bool_)
    return modelled if len(modelled) == n_joints else np.ones(n_joints, dtype=np.bool_)


def _open(path: Path) -> tuple[Run | str, str]:
    """The run as everybody else opens it or why that cannot be done, and what it can be used for."""
    try:
        run = open_run(path)
    except (JointbenchError, OSError, KeyError, TypeError, ValueError) as error:  # damage takes any shape
        return str(error), f"nothing: it cannot be opened ({error})"
    samples = run.samples
    good, total = int(samples.valid.sum()), samples.valid.size
    text = f"{good} of {total} samples ({good / total:.2%}) of {len(samples.joint_names)} joints over "
    text += f"{samples.time[-1] - samples.time[0]:.3f} s can be read"
    return run, f"{text}, and used" if run.is_valid else f"{text}; the run is invalid, so do not fit it unseen"


def _some(items: list[str]) -> str:
    return "; ".join(items[:_SHOWN]) + (f"; and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")
