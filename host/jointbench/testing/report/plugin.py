"""The report's part of the pytest plugin: its options, and its start in a run that names a bench."""

from __future__ import annotations

import pytest

from jointbench.testing.report.again import PYTEST
from jointbench.testing.report.fixtures import test_folder as test_folder
from jointbench.testing.report.run_report import start_report
from jointbench.testing.session import SESSION

JUNIT = "junit.xml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the report can be told."""
    group = parser.getgroup("jointbench")
    add = group.addoption
    add("--bench-campaign", dest="jointbench_campaign", metavar="FILE", help="JSON of a fault campaign, for the report")
    add(
        "--bench-again",
        dest="jointbench_again",
        metavar="COMMAND",
        default=PYTEST,
        help="how to run a test again, with {test}, {bench} and {seed} in it (%(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start the report of a run whose results are kept; pytest's own JUnit file then lies beside it, or elsewhere.

    The plugin that this one belongs to has read the bench before, and pytest's own asks for its file after.
    """
    session = config.stash.get(SESSION, None)
    if session is None or not session.options.is_kept or config.option.collectonly:
        return
    report = start_report(config)
    if config.getoption("xmlpath", None) is None and not hasattr(config, "workerinput"):
        config.option.xmlpath = str(report.out / JUNIT)
