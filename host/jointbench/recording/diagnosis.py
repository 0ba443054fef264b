"""What a doctor has to say of a run: each finding, the verdict, what is still usable, and what to do next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


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
        """Whether nothing is wrong."""
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
        """What to do, each thing once."""
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
