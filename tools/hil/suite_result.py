"""What a run of the suite came to: the file that its report has written."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from jointbench.checks import Result

RESULT = "result.json"


@dataclass(frozen=True)
class SuiteResult(Result):
    """The result of a run; `file` has it in full, checks and all."""

    file: Path = Path(RESULT)

    def write(self, destination: str, seconds: float) -> None:
        """Copy the file, or print it for "-"; its seconds are those of the run itself."""
        if destination == "-":
            sys.stdout.write(self.file.read_text(encoding="utf-8"))
        else:
            shutil.copyfile(self.file, destination)
