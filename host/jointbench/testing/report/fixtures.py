"""The fixture `test_folder`: where a test records, so that a failure finds its frames and the report its losses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jointbench.testing.report.raw_logs import folder_of
from jointbench.testing.report.run_report import report_of


@pytest.fixture
def test_folder(request: pytest.FixtureRequest) -> Path:
    """Return a folder of the test's own, kept beside the bench's logs when it fails and removed when it passes.

    The loss ledgers of runs that are recorded right in it go into the report. In a run without a report it is the
    test's `tmp_path`.
    """
    report = report_of(request.config)
    if report is None:
        folder: Path = request.getfixturevalue("tmp_path")
        return folder
    folder = folder_of(report.out, request.node.nodeid)
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier run into the same folder
    folder.mkdir(parents=True, exist_ok=True)
    return folder


test_folder.__test__ = False  # pyright: ignore[reportAttributeAccessIssue] # a fixture, whatever its name begins with
