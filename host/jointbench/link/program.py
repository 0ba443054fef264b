"""What this program is called in words to others: who has a port, who asks for a stop."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program_name() -> str:
    """Its name, of the command line with the verb: "jointbench run"."""
    path = Path(sys.argv[0] or "python")
    if path.stem == "jointbench" or path.parts[-2:] == ("jointbench", "__main__.py"):
        return " ".join(["jointbench", *sys.argv[1:2]])
    return path.name


def this_program() -> str:
    """Name and process: "jointbench run (process 4711)"."""
    return f"{program_name()} (process {os.getpid()})"
