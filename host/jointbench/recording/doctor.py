"""Examination of a run: findings, the verdict, what is still usable, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jointbench.bench import DEFAULT_LOSS_LIMIT, Ledger
from jointbench.errors import JointbenchError, RunError
from jointbench.files import bytes_of, json_values, text_of
from jointbench.recording.contents import Contents, disagreements, injected_faults, read_contents
from jointbench.recording.decode import RecordKind
from jointbench.recording.run import Run, boards_of, read_run
from jointbench.recording.run_directory import (
    EVENTS,
    FRAMES,
    IMPORTED,
    PROVENANCE,
    RESULT,
    SAMPLES,
    SCHEMA,
    read_provenance,
    read_result,
    read_robot,
    robot_file,
    schema_said,
)
from jointbench.recording.samples import read_samples
from jointbench.recording.seal import MEASURED, Seal, advice, check_seal, edit_sentence
from jointbench.recording.timeline import RESIDUAL_LIMIT_US, doubtful_clocks
from jointwire import Schema, SchemaError, own_schema

_SHOWN = 8  # places named one by one

_STOPPED = re.compile(r"stopped by (Ctrl-C|SIGTERM|SIGHUP|StopAsked|KeyboardInterrupt)\b")
"""Outcomes of runs that somebody ended, which is no damage."""

_AGAIN = "record the motion again; this run stays as it is."
_COPY = "take the file from a copy, if there is one: nothing here can make up for it."
_OPEN = "open it with the release named in run.toml; if that is this one, take run.toml from a copy."
_CORRECT = "find out which is right: correct the robot file (and note it with `jointbench accept`), or the board's own."
_LEFT_OUT = "nothing needs repair: whoever opens the run leaves the torn end out."


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: of the thing, mostly a file.
        ok: whether it is as it should be.
        what: was found.
        where: in it, such as byte ranges; empty where that says nothing.
        advice: what to do about it; empty where nothing needs doing.
    """

    name: str
    ok: bool
    what: str
    where: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """Everything found in one run directory; it judges itself.

    Attributes:
        path: the run.
        findings: in the order in which a reader needs the things.
        usable: what the run can still be used for.
    """

    path: Path
    findings: tuple[Finding, ...]
    usable: str

    @property
    def is_sound(self) -> bool:
        """True if nothing is wrong."""
        return all(finding.ok for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence: "sound: ..." or "damaged: ..." with what is."""
        wrong = [finding.name for finding in self.findings if not finding.ok]
        if not wrong:
            return f"sound: all {len(self.findings)} checks passed"
        return f"damaged: {', '.join(wrong)} ({len(wrong)} of {len(self.findings)} checks)"

    @property
    def advice(self) -> tuple[str, ...]:
        """Advice, each thing once."""
        return tuple(dict.fromkeys(finding.advice for finding in self.findings if finding.advice))

    def text(self) -> str:
        """For people: the verdict first, then the findings, what is still usable, and what to do next."""
        width = max(len(finding.name) for finding in self.findings)
        lines = [f"{self.path}: {self.verdict}"]
        for finding in self.findings:
            where = f" [{finding.where}]" if finding.where else ""
            lines.append(f"  {'ok' if finding.ok else 'NO'}  {finding.name.ljust(width)}  {finding.what}{where}")
        lines.append(f"Usable: {self.usable}")
        lines += [f"Next: {advice}" for advice in self.advice or ("nothing needs doing.",)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "run": str(self.path),
            "verdict": self.verdict,
            "findings": [asdict(finding) for finding in self.findings],
            "usable": self.usable,
            "advice": list(self.advice),
        }


def examine(run: str | Path) -> Diagnosis:
    """Look at everything a run directory holds, recorded or imported.

    Raises:
        RunError: there is no such directory.
    """
    path = Path(run)
    if not path.is_dir():
        raise RunError(f"{path} is not a run: there is no such directory; runs are directories that hold a run.toml")
    provenance, findings = _read_provenance(path)
    result, result_finding = _check_result(path, provenance)
    sha256: dict[str, str] = {}
    if (path / SAMPLES).is_file():
        findings.append(_check_samples(path))
    else:
        found, sha256 = _examine_recording(path, provenance, result)
        findings += found
    findings += [result_finding] if result_finding else []
    seal: Seal | None = None
    if result is not None or result_finding is None:
        seal, found = _check_files(path, result, sha256)
        findings += found
    if provenance and provenance.get("board"):
        findings += _check_boards(path, provenance)
    opened, usable = _open(path, seal)
    if isinstance(opened, Run) and opened.clocks:
        findings.append(_check_clocks(opened))
    elif not isinstance(opened, Run) and all(finding.ok for finding in findings):
        findings.append(Finding("opening", False, f"each file is whole, but {opened}", advice=_OPEN))
    return Diagnosis(path, tuple(findings), usable)


def _examine_recording(
    path: Path, provenance: Mapping[str, Any] | None, result: Mapping[str, Any] | None
) -> tuple[list[Finding], dict[str, str]]:
    """Return what is found in a recording's own files, and the SHA-256 of those that were read for it."""
    schema, schema_finding = _check_schema(path, provenance)
    findings = [schema_finding]
    try:
        data = bytes_of(path / FRAMES)
    except OSError as error:
        return [*findings, Finding(FRAMES, False, f"cannot be read: {error.strerror}", advice=_COPY)], {}
    joints = _joints(provenance, result)
    contents = read_contents(data, schema, joints, float(result["ledger"]["limit"]) if result else DEFAULT_LOSS_LIMIT)
    findings += [_check_records(contents), _check_end(contents, result), _check_frames(contents)]
    findings += [_check_ledger(contents, result), _check_events(path)]
    if faults := injected_faults(path, joints):  # no damage to the run, but the cause of much that was lost
        findings.append(Finding("injected faults", True, "; ".join(each.text for each in faults)))
    return findings, {FRAMES: contents.sha256}


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
    except (KeyError, TypeError, ValueError, OverflowError) as error:
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
    said, hash_said = str((provenance or {}).get("schema_hash", "")), schema_said(provenance or {})
    try:
        schema = Schema.from_text(text_of(path / SCHEMA))
    except (OSError, UnicodeDecodeError, SchemaError) as error:
        seed = own.hash if hash_said is None else hash_said
        text = f"cannot be read ({error}); frames are read as of schema {seed:08x}"
        return seed, Finding(SCHEMA, False, text, advice=_COPY)
    if said and said != f"{schema.hash:08x}":
        text = f"is of schema {schema.hash:08x}, run.toml says {said}: it is damaged, or of another run"
        return schema.hash if hash_said is None else hash_said, Finding(SCHEMA, False, text, advice=_COPY)
    if schema.hash == own.hash:
        return schema.hash, Finding(SCHEMA, True, f"{schema.hash:08x}, the same as this release's")
    differences = own.differences(schema)
    text = f"{schema.hash:08x}, another than this release's {own.hash:08x}: {'; '.join(differences[:3])}"
    return schema.hash, Finding(SCHEMA, True, text)


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
            text += "; at most 100 ms of data are missing, as where the recorder was killed or the power cut"
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


def _check_result(path: Path, provenance: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, Finding | None]:
    """Return what result.json says, and what is to be said of it: nothing of an import made before imports had one."""
    try:
        result = read_result(path)
        if result is None and (path / SAMPLES).is_file():
            gone = Finding(RESULT, False, "missing: it vouches for the run's other files", advice=_COPY)
            return None, gone if (provenance or {}).get("sealed") else None
        if result is None:
            text = "missing: the recorder was killed, the power failed, or it is still recording"
            return None, Finding(RESULT, False, text, advice="if it is still recording, look again afterwards.")
    except RunError as error:
        return None, Finding(RESULT, False, str(error), advice=_COPY)
    if _STOPPED.match(result["outcome"]):
        return result, Finding(RESULT, True, f"the run was {result['outcome']}; what was recorded until then is here")
    if result["outcome"] == IMPORTED:
        return result, Finding(RESULT, True, "the run was imported")
    if result["outcome"] != "finished":
        return result, Finding(RESULT, False, f"the run was {result['outcome']}", advice=_AGAIN)
    return result, Finding(RESULT, True, "the run was finished")


def _check_files(
    path: Path, result: Mapping[str, Any] | None, sha256: Mapping[str, str]
) -> tuple[Seal | None, list[Finding]]:
    """The run's seal, and whether each file is as it was when the run was made, as far as anything vouches for it."""
    try:
        seal = check_seal(path, sha256)
    except RunError as error:
        return None, [Finding("SHA-256", False, str(error), advice=_COPY)]
    if seal is None:
        recorded = str((result or {}).get("frames_sha256", ""))
        if recorded and sha256.get(FRAMES, recorded) != recorded:
            text = f"{FRAMES} is not as recorded: {sha256[FRAMES][:16]}…, was {recorded[:16]}…"
            return None, [Finding(f"SHA-256 of {FRAMES}", False, text, advice=_COPY)]
        whole = f"{FRAMES} is as recorded; " if recorded else ""
        text = f"{whole}nothing vouches for the other files: the run was made before runs had a seal"
        return None, [Finding("SHA-256", True, text)]
    findings = [
        Finding(
            f"SHA-256 of {change.file}",
            False,
            change.sentence(seal.made),
            advice=_COPY if change.file in MEASURED else f"{advice(path, [change])}.",
        )
        for change in seal.changes
    ]
    if not findings:
        findings = [Finding("SHA-256", True, f"{len(seal.sha256)} files are as they were {seal.made}")]
    if seal.edits:
        findings.append(Finding("edits", True, "; ".join(map(edit_sentence, seal.edits))))
    return seal, findings


def _check_boards(path: Path, provenance: dict[str, Any]) -> list[Finding]:
    """Compare what boards reported with the robot file; nothing where one cannot be read, which is said there."""
    try:
        robot = read_robot(path, str(provenance.get("robot", "")))
        boards, _ = boards_of(path, provenance)
        wrong = disagreements(robot, list(boards.values()), provenance)
    except (JointbenchError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    name = "boards and robot file"
    if wrong:
        return [Finding(name, False, f"{len(wrong)} differ", _some(wrong), _CORRECT)]
    return [Finding(name, True, f"what {len(boards)} boards reported agrees with {robot_file(path).name}")]


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
        text = bytes_of(path / EVENTS).decode(errors="replace")
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
        event = json_values(line)
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
    limit = f"limit {RESIDUAL_LIMIT_US:g}" if len(residuals) > 1 else "no other board to align it with"
    text = f"largest residual {worst:.1f} µs ({joint}), {limit}; drifts in ppm: {drifts}"
    advice = "record on a quieter link, or with a SYNC wire." if doubtful_clocks(run.clocks) else ""
    return Finding("clocks", not advice, text, advice=advice)


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
    """Return the joints whose torque and current must be known: passive ones are not among them."""
    try:
        modelled = read_robot(path).modelled
    except (JointbenchError, OSError):  # told where the robot file is looked at
        modelled = np.ones(n_joints, dtype=np.bool_)
    return modelled if len(modelled) == n_joints else np.ones(n_joints, dtype=np.bool_)


def _open(path: Path, seal: Seal | None) -> tuple[Run | str, str]:
    """The run as everybody else opens it or why that cannot be done, and what it can be used for."""
    try:
        run = read_run(path, seal)
    except (JointbenchError, OSError, KeyError, TypeError, ValueError) as error:  # damage takes any shape
        return str(error), f"nothing: it cannot be opened ({error})"
    samples = run.samples
    good, total = int(samples.valid.sum()), samples.valid.size
    text = f"{good} of {total} samples ({good / total:.2%}) of {len(samples.joint_names)} joints over "
    text += f"{samples.time[-1] - samples.time[0]:.3f} s can be read"
    if seal is not None and seal.changes:
        return run, f"nothing as it is: it was changed, and is not opened; {text}"
    return run, f"{text}, and used" if run.is_valid else f"{text}; the run is invalid, so do not fit it unseen"


def _some(items: list[str]) -> str:
    return "; ".join(items[:_SHOWN]) + (f"; and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")
