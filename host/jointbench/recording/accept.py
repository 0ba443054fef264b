"""Accepting a deliberate edit of a run: what was changed is noted in result.json, and the run opens again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from jointbench.errors import RunChanged, RunError
from jointbench.recording.run import read_run
from jointbench.recording.run_directory import RESULT, read_result
from jointbench.recording.seal import MEASURED, Change, advice, check_seal, write_result


def accept(run: str | Path, reason: str = "") -> tuple[Change, ...]:
    """Accept what was changed in a run since it was recorded, imported or last accepted.

    The change is noted in its result.json, file by file; whatever is made of the run says from then on that it was
    edited. What was measured cannot be accepted.

    Args:
        run: its directory.
        reason: for the edit, in a few words.

    Returns:
        What was accepted; nothing where nothing was changed.

    Raises:
        RunChanged: a file of what was measured, or result.json, was changed; nothing is accepted.
        RunError: nothing vouches for its files as they were, or it cannot be read as it is now.

    >>> jb.recording.accept("runs/arm")
    ()
    """
    path = Path(run)
    seal, result = check_seal(path), read_result(path)
    if result is None or seal is None:
        why = f"it has no {RESULT}" if result is None else "it was made before runs had a seal"
        raise RunError(f"run {path}: {why}, so that nothing tells what was changed; there is nothing to accept")
    if not seal.changes:
        return ()
    measured = [change for change in seal.changes if change.file in MEASURED]
    if measured:
        what = "; ".join(change.sentence(seal.made) for change in measured)
        raise RunChanged(f"run {path}: {what}; nothing is accepted: {advice(path, measured)}")
    read_run(path, seal)  # what cannot be opened is not accepted
    edit = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "reason": reason,
        "files": [{**change.to_dict(), "what": change.what} for change in seal.changes],
    }
    kept = {name: value for name, value in result.items() if name not in ("files", "digests", "digest")}
    write_result(path, {**kept, "edits": [*seal.edits, edit]}, seal.sha256)
    return seal.changes
