"""The types of the public names: a type checker knows each of them, of the packages as they are installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.tests.setup_checkouts import ROOT

LAMP = """
from matplotlib.figure import Figure

class Lamp:
    def __init__(self, name: str) -> None:
        self.name = name
        self.watts: int = len(name)
        self.is_on = not name

    def draw(self, figure: Figure) -> None: ...

    def switch(self, on) -> None: ...
"""


def unclear(package: str, site: Path) -> list[str]:
    """Public names whose type is unknown, or other type checkers may infer otherwise; with what basedpyright says."""
    programs = Path(sys.executable).parent
    # It takes what a package imports from the interpreter that is first in PATH; of another one it would know nothing.
    places = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(site)}
    command = [programs / "basedpyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, cwd=site, env=os.environ | places, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    found = said["typeCompleteness"]
    assert said["generalDiagnostics"] == []
    assert found["packageRootDirectory"] == str(site / package)
    assert found["exportedSymbolCounts"]["withKnownType"] > 0
    return [
        " ".join([f"{each['name']}:", *(word for line in each["diagnostics"] for word in line["message"].split())])
        for each in found["symbols"]
        if each["isExported"] and (each["isTypeAmbiguous"] or not each["isTypeKnown"])
    ]


STRUCTS = re.compile(r"jointwire(\.\w+)?\.(BLOCK|BODIES|EMPTY|HEADER|KNOT|Quantity|REGISTER_FILE|SAMPLE):")
"""The wire's definition: the package that it is made with has no types."""


@pytest.mark.slow
def test_all_public_names_have_a_type(tmp_path: Path) -> None:
    for package in ("host/jointbench", "protocol/jointwire"):
        copy = tmp_path / Path(package).name
        shutil.copytree(ROOT / package, copy, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    found = [*unclear("jointbench", tmp_path), *unclear("jointwire", tmp_path)]
    found = [line for line in found if not STRUCTS.match(line)]
    assert found == [], "\n".join(found)


def test_a_name_without_one_is_found_and_what_other_packages_have_is_known(tmp_path: Path) -> None:
    (tmp_path / "lamp").mkdir()
    (tmp_path / "lamp" / "py.typed").touch()
    (tmp_path / "lamp" / "__init__.py").write_text(LAMP, encoding="utf-8")
    found = dict(line.split(":", 1) for line in unclear("lamp", tmp_path))
    assert set(found) == {"lamp.Lamp", "lamp.Lamp.is_on", "lamp.Lamp.switch"}
    assert found["lamp.Lamp.is_on"].endswith('Inferred type is "bool"')
