"""Everything that is in a frames.bin, damage and all, with the ledger drawn up again as the recorder did it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from jointbench.link.ledger import Ledger
from jointbench.link.tally import Tally
from jointbench.recording.record_file import Damage, Record, RecordKind, scan_records
from jointwire import FrameError, decode_frame


@dataclass
class Contents:
    """What one pass over a frames.bin found.

    Attributes:
        n_bytes: of the file.
        sha256: of the file.
        counts: records by kind.
        damage: each with the times of the records around it.
        undecoded: byte and reason of frames that cannot be decoded.
        times: of the first and the last record [µs].
        ledger: drawn up again.
    """

    n_bytes: int
    sha256: str
    ledger: Ledger
    counts: dict[RecordKind, int] = field(default_factory=lambda: dict.fromkeys(RecordKind, 0))
    damage: list[tuple[Damage, int | None, int | None]] = field(
        default_factory=list[tuple[Damage, "int | None", "int | None"]]
    )
    undecoded: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    times: tuple[int, int] | None = None

    @property
    def torn(self) -> Damage | None:
        """The torn end."""
        return next((damage for damage, _, _ in self.damage if damage.torn), None)

    def at(self, time_us: int | None) -> str:
        """A moment in seconds from the first record."""
        return "an end" if time_us is None or self.times is None else f"{(time_us - self.times[0]) * 1e-6:.3f} s"


def read_contents(data: bytes, schema: int, joints: Mapping[int, str], limit: float) -> Contents:
    """Read all of a frames.bin.

    Args:
        data: its bytes.
        schema: hash of the schema it was recorded with.
        joints: joint of each node, in joint order.
        limit: largest fraction of samples that may be lost in a valid run.
    """
    tally = Tally(joints, limit)
    contents = Contents(len(data), hashlib.sha256(data).hexdigest(), Ledger(()))
    position, last_us = 0, None
    for found in scan_records(data):
        if isinstance(found, Damage):
            contents.damage.append((found, last_us, None))
            position = found.end
            continue
        if contents.damage and contents.damage[-1][2] is None:
            contents.damage[-1] = (*contents.damage[-1][:2], found.time_us)
        contents.counts[found.kind] += 1
        contents.times = (contents.times[0] if contents.times else found.time_us, found.time_us)
        last_us = found.time_us
        _count(found, position, schema, tally, contents)
        position += found.size
    contents.ledger = tally.ledger()
    return contents


def _count(record: Record, position: int, schema: int, tally: Tally, contents: Contents) -> None:
    """Count one record in the ledger as the recorder did."""
    if record.kind is RecordKind.NOISE:
        tally.add_noise(record.node)
    elif record.kind is RecordKind.FRAME:
        try:
            tally.add(decode_frame(record.payload, schema))
        except FrameError as error:
            contents.undecoded.append((position, str(error)))
            tally.add_noise(record.node)
