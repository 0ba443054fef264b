"""The usual bench of six boards with other settings at the top of its file."""

from __future__ import annotations

import json
import re
from pathlib import Path

HIL_TESTS = Path(__file__).resolve().parents[2] / "hil_tests"
COBOT6 = HIL_TESTS / "benches" / "cobot6.toml"


def write_variation(folder: Path, **top: int) -> Path:
    """Write the bench file of six boards with further keys, such as `tick_us` and `sample_every`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = COBOT6.read_text(encoding="utf-8")
    plant = re.search(r'(?m)^plant = "(.*)"$', text)
    assert plant is not None  # a bench file has one
    keys = "".join(f"{key} = {value}\n" for key, value in top.items())
    text = text.replace(plant[0], f"plant = {json.dumps(str((COBOT6.parent / plant[1]).resolve()))}\n{keys}")
    path = folder / "bench.toml"
    path.write_text(text, encoding="utf-8")
    return path
