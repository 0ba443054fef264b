"""The page of a run: one HTML file that needs nothing else."""

from __future__ import annotations

from importlib import resources

import jinja2

from jointbench.link.ledger import Ledger
from jointbench.results.content import Fact
from jointbench.results.digits import count
from jointbench.results.ledger_table import ledger_table
from jointbench.testing.report.board_rows import board_note, board_rows
from jointbench.testing.report.content import Content
from jointbench.testing.report.fault_matrix import fault_matrices
from jointbench.testing.report.outcome_rows import failures, outcome_groups, skips
from jointbench.testing.report.summary import Summary
from jointbench.testing.report.value_rows import value_rows


def page_html(summary: Summary) -> str:
    """Return the page as HTML text that refers to nothing outside itself."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(_template("testing.report", "hil.html"))
    css = _template("results", "report.css") + _template("testing.report", "hil.css")
    return template.render(content=page_content(summary), css=css)


def page_content(summary: Summary) -> Content:
    """Return everything the page says."""
    return Content(
        title=str(summary.bench["name"]),
        ok=summary.ok,
        sentence=summary.verdict,
        warnings=_warnings(summary),
        facts=_facts(summary),
        failures=failures(summary),
        board_note=board_note(summary),
        boards=board_rows(summary),
        value_note=_value_note(summary),
        values=value_rows(summary),
        tests=outcome_groups(summary),
        skips=skips(summary),
        matrices=fault_matrices(summary.campaign),
        ledgers=tuple(
            ledger_table(f"{record.test.rpartition('::')[2]}: {entry['run']}", Ledger.from_dict(entry["ledger"]))
            for record in summary.records
            for entry in record.ledgers
        ),
        provenance=_provenance(summary),
        command=summary.command,
    )


def _facts(summary: Summary) -> tuple[Fact, ...]:
    kept = sum(bool(value["ok"]) for value in summary.values)
    return (
        Fact(f"{count(summary.count('passed'))} of {count(len(summary.records))}", "tests passed"),
        Fact(count(summary.count("failed", "error")), "failed"),
        Fact(count(summary.count("skipped")), "skipped"),
        Fact(f"{kept} of {len(summary.values)}", "limits kept"),
        Fact(count(len({board["node"] for board in summary.boards})), "boards"),
        Fact(str(summary.bench.get("clock", "–")), "clock"),
        Fact(str(summary.seed), "seed"),
        Fact(f"{summary.seconds:.1f} s", "by the wall clock"),
    )


def _warnings(summary: Summary) -> tuple[str, ...]:
    """What a careful reader must know before the verdict is believed."""
    warnings = [f"{entry['sentence']}." for entry in summary.required if entry.get("sentence")]
    images = {board["image_sha256"] for board in summary.boards}
    if len(images) > 1:
        warnings.append(f"The boards do not all run the same firmware: {len(images)} images.")
    if summary.campaign and not all(cell["ok"] for cell in summary.campaign["cells"]):
        warnings.append("The fault campaign shown below has cells that did not pass.")
    return tuple(warnings)


def _value_note(summary: Summary) -> str:
    if not summary.values:
        return "No test held a value against a requirement."
    return (
        "The worst value that any test held against each requirement. A bar shows how much of the limit it takes, the "
        "margin how much is left; where a limit is zero or an equality there is neither."
    )


def _provenance(summary: Summary) -> tuple[tuple[str, str], ...]:
    rows = [
        ("bench", str(summary.bench["name"])),
        ("clock", str(summary.bench.get("clock", "not started"))),
        ("features", ", ".join(summary.bench.get("features", ())) or "–"),
        ("seed", str(summary.seed)),
        ("started", summary.started),
        ("pytest's status", str(summary.exit_code)),
    ]
    rows += [
        (f"required tier {entry['tier']}", f"{entry['selected']} selected, {entry['skipped']} skipped")
        for entry in summary.required
    ]
    return (*rows, *((f"version of {name}", version) for name, version in summary.versions.items()))


def _template(package: str, name: str) -> str:
    return (resources.files(f"jointbench.{package}") / "templates" / name).read_text(encoding="utf-8")
