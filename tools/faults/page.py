"""The matrix as a table: what is expected, for docs/evidence/fault_campaign.md, and what came, for who ran it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from jointbench.cli.tables import table
from jointwire import State
from tools.faults.faults import Fault
from tools.faults.naming import NONE
from tools.faults.states import MOMENTS_US
from tools.faults.verdict import Verdict

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "fault_campaign.md"
BEGIN, END = "<!-- matrix: ./run faults --page -->", "<!-- end of the matrix -->"
GOOD, BAD = "·", "NO"


def table_of(verdicts: Sequence[Verdict]) -> str:
    """A line for each fault and kind of board: a dot for each state that is well, and the longest time to off."""
    rows: list[list[str]] = []
    keys = dict.fromkeys((each.cell.fault.name, each.cell.board) for each in verdicts)
    for name, board in keys:
        own = {each.cell.state: each for each in verdicts if (each.cell.fault.name, each.cell.board) == (name, board)}
        ticks = [each.ticks for each in own.values() if each.ticks is not None]
        within = next(iter(own.values())).cell.fault.within
        rows.append([name, board, *[_mark(own.get(state)) for state in MOMENTS_US],
                     f"{max(ticks)} of {within}" if ticks else ""])  # fmt: skip
    return table(("fault", "board", *[state.name for state in MOMENTS_US], "ticks to off"), rows)


def _mark(verdict: Verdict | None) -> str:
    return "" if verdict is None else GOOD if verdict.ok else BAD


def matrix_text(matrix: Mapping[str, Fault]) -> str:
    """What is expected, as Markdown."""
    lines = ["| Fault | Named | Within (ticks) | Why |", "| --- | --- | --- | --- |"]
    for fault in matrix.values():
        within = str(fault.within) if _stops(fault) else "–"
        why = f"{fault.why} From START: {fault.from_start}" if fault.from_start else fault.why
        lines.append(f"| `{fault.name}` | {_names(fault)} | {within} | {why} |")
    names = [name for fault in matrix.values() for name in fault.named.values()]
    nothing = names.count(NONE)
    told = f"Of {len(names)} cells {nothing} expect `{NONE}`: the fault struck, and nothing came of it."
    return "\n".join([*lines, "", told])


def _stops(fault: Fault) -> bool:
    return fault.within > 0 or any(name not in ("NONE", "BoardRefused") for name in fault.named.values())


def _names(fault: Fault) -> str:
    """The commonest name alone, or names by state."""
    by_name: dict[str, list[State]] = {}
    for state, name in fault.named.items():
        by_name.setdefault(name, []).append(state)
    if len(by_name) == 1:
        return next(iter(by_name))
    ordered = sorted(by_name.items(), key=lambda item: len(item[1]))
    told = [f"{name} in {', '.join(state.name for state in states)}" for name, states in ordered[:-1]]
    return f"{'; '.join(told)}; otherwise {ordered[-1][0]}"


def render(matrix: Mapping[str, Fault], page: Path = PAGE) -> None:
    """Write the matrix into its place on the page."""
    page.write_text(rendered(matrix, page.read_text(encoding="utf-8")), encoding="utf-8")


def rendered(matrix: Mapping[str, Fault], text: str) -> str:
    """The page's text with the matrix in its place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{matrix_text(matrix)}\n\n{END}{rest.partition(END)[2]}"
