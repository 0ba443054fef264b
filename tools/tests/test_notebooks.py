"""The notebooks of the documentation run from top to bottom, in an empty folder and a kernel of their own."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode, read
from nbformat.v4 import new_code_cell, new_notebook

from tools.tests.local_mirror import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def executed(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run all cells in a folder, with the checkout's packages and none of the user's own settings of Jupyter."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "host", "protocol")),
        "IPYTHONDIR": str(folder / ".ipython"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    client: Any = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}})
    return client.execute(env=env)


def read_notebook(path: Path) -> NotebookNode:
    return read(path, as_version=4)


def test_there_are_three_and_they_hold_no_results() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["own_arm", "own_log", "two_robots"]
    for path in NOTEBOOKS:
        cells = [cell for cell in read_notebook(path).cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in cells), path.name


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of zmq and asyncio: not ours
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_pictures(path: Path, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = executed(read_notebook(path), tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{path.name}: {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s of CPU")

    shown = [output["data"] for cell in done.cells for output in cell.get("outputs", ()) if "data" in output]
    cards = [data["text/html"] for data in shown if "data:image/png" in data.get("text/html", "")]
    tables = [data["text/html"] for data in shown if 'class="dataframe"' in data.get("text/html", "")]
    assert cards or tables
    stderr = [out["text"] for cell in done.cells for out in cell.get("outputs", ()) if out.get("name") == "stderr"]
    assert not [text for text in stderr if "Warning" in text], stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_cell_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(CellExecutionError, match="RunError"):
        executed(new_notebook(cells=[new_code_cell("import jointbench as jb; jb.open_run('nowhere')")]), tmp_path)
