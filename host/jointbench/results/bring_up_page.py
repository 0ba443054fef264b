"""Page of a bench that was brought up: its one verdict, each step's, and every number with the run it came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jointbench.results.content import NOT_A_NUMBER, Answer, Fact, fixed, percent
from jointbench.results.pages import render

_MARKS: dict[int, Answer] = {1: "yes", 2: "with care", 3: "no"}
_FROM = {"ratio": "wave", "coulomb": "strokes", "viscous": "strokes"}
"""Motion of a commissioning that a value is read from; the others are read from the pushes."""
Product = Mapping[str, Any]
"""What a step left, as its file NAME.json has it."""


@dataclass(frozen=True)
class Source:
    """Source of a number: a path, relative to the page."""

    name: str
    link: str


@dataclass(frozen=True)
class StepRow:
    """One step: its word, why, when it was done and how long the bench moved for it."""

    name: str
    word: str
    mark: Answer
    reason: str
    made: str
    bench_s: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class NumberRow:
    """One number of a table: cells after its name, and where it came from."""

    name: str
    cells: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class NumberTable:
    """Numbers of one step."""

    anchor: str
    heading: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[NumberRow, ...]

    @property
    def source(self) -> tuple[Source, ...]:
        """Source of all rows, where it is the same for all."""
        sources = {row.sources for row in self.rows}
        return sources.pop() if len(sources) == 1 else ()


@dataclass(frozen=True)
class BringUpContent:
    """Everything the page shows, in the order it shows it."""

    bench: str
    answer: str
    mark: Answer
    sentence: str
    facts: tuple[Fact, ...]
    steps: tuple[StepRow, ...]
    tables: tuple[NumberTable, ...]
    commands: tuple[str, ...]


def bring_up_html(
    page: Path, bench: str, answer: str, rank: int, sentence: str, products: Mapping[str, Product],
    commands: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """Return the page as HTML text that refers to nothing but what lies beside it."""
    return render("bring_up.html", bring_up_content(page, bench, answer, rank, sentence, products, commands))


def bring_up_content(
    page: Path, bench: str, answer: str, rank: int, sentence: str, products: Mapping[str, Product],
    commands: tuple[str, ...] = (),
) -> BringUpContent:  # fmt: skip
    """Return everything the page says, in words and finished numbers.

    Args:
        page: where it will be, for its links.
        bench: name of the bench.
        answer: the one verdict.
        rank: of it, 1 to 3.
        sentence: why.
        products: of the steps that were done, by name.
        commands: what to type to get all this again.
    """
    tables: list[NumberTable] = []
    if "commission" in products:
        tables.append(_commissioned(page, products["commission"]))
    if "gears" in products:
        tables.append(_gears(page, products["gears"]))
    if "identify" in products:
        tables.append(_parameters(page, products["identify"]))
    if "validate" in products:
        tables.append(_validated(page, products["validate"]))
    if "proof" in products.get("prove", {}):
        tables.append(_proven(page, products["prove"]))
    return BringUpContent(
        bench=bench,
        answer=answer,
        mark=_MARKS[rank],
        sentence=sentence,
        facts=_facts(products),
        steps=tuple(_step(page, product) for product in products.values()),
        tables=tuple(table for table in tables if table.rows),
        commands=commands,
    )


def _source(page: Path, path: str | Path, name: str = "") -> Source:
    return Source(name or Path(path).name, os.path.relpath(path, page.parent).replace(os.sep, "/"))


def _facts(products: Mapping[str, Product]) -> tuple[Fact, ...]:
    facts = [Fact(f"{sum(product['bench_s'] for product in products.values()):.0f} s", "time of the bench, all steps")]
    if (identify := products.get("identify")) is not None:
        known = sum(each["relative_sigma"] <= identify["until"] for each in identify["precision"].values())
        name = f"parameters known to {percent(identify['until'])}"
        facts.append(Fact(f"{known} of {len(identify['precision'])}", name))
    if (validate := products.get("validate")) is not None:
        error = validate["validation"]["verification_total_relative_all_rows"]
        facts.append(Fact(NOT_A_NUMBER if error is None else percent(error), "torque error on new motion"))
    proof = products.get("prove", {}).get("proof")
    if proof is not None:
        facts.append(Fact(f"÷ {proof['ratio_pooled']:.3g}", "tracking error with the model's feed-forward"))
    return tuple(facts)


def _step(page: Path, product: Product) -> StepRow:
    files = [product[key] for key in ("report", "model") if product.get(key)]
    sources = (_source(page, page.parent / f"{product['step']}.json"), *(_source(page, file) for file in files))
    return StepRow(
        product["step"], product["word"], _MARKS[product["rank"]], product["reason"],
        product["made"].replace("T", " ").removesuffix("Z"), fixed(product["bench_s"], 0), sources,
    )  # fmt: skip


def _commissioned(page: Path, product: Product) -> NumberTable:
    rows: list[NumberRow] = []
    for name, joint in product["joints"].items():
        for value_name, value in joint["values"].items():
            step = _FROM.get(value_name, "push")
            sources = tuple(_source(page, run) for run in joint["runs"] if Path(run).name.startswith(step))
            measured, in_file = value["value"], value["file"]
            cells = (
                NOT_A_NUMBER if measured is None else f"{measured:.5g}",
                f"{value['sigma']:.2g}" if measured is not None and value["sigma"] else NOT_A_NUMBER,
                value["unit"],
                NOT_A_NUMBER if in_file is None else f"{in_file:.5g}",
                value["verdict"],
            )
            rows.append(NumberRow(f"{name} {value_name}", cells, sources))
    note = (
        "Measured by the smallest motions, one motor at a time. What differs from the robot's file, or is missing "
        "there, is in commissioned.toml beside this page, by which the next step moved the robot."
    )
    heads = ("value", "measured", "σ", "unit", "file", "verdict")
    return NumberTable("commissioned", "What was commissioned", note, heads, tuple(rows))


def _gears(page: Path, product: Product) -> NumberTable:
    rows = tuple(
        NumberRow(
            f"{name} {value_name}",
            (f"{value['value']:.7g}", f"{value['sigma']:.2g}", value["unit"]),
            (_source(page, product["run"]),),
        )
        for name, values in product["values"].items()
        for value_name, value in values.items()
    )
    note = "Ratio and stiffness by one wide motion, where the torque that twists the gear is sensed, too."
    return NumberTable("gears", "Gears over their whole way", note, ("value", "measured", "σ", "unit"), rows)


def _parameters(page: Path, product: Product) -> NumberTable:
    precision, fitted = product["precision"], product["fit"]["parameters"]
    sources = tuple(_source(page, run) for run in product["runs"])
    rows = tuple(
        NumberRow(
            name,
            (
                f"{fitted[name]['value']:.4g}" if name in fitted else NOT_A_NUMBER,
                f"{fitted[name]['sigma']:.2g}" if name in fitted and fitted[name]["sigma"] else NOT_A_NUMBER,
                fixed(100.0 * each["relative_sigma"], 2),
                _known(each, product["until"]),
            ),
            sources,
        )
        for name, each in precision.items()
    )
    note = (
        f"Base parameters in SI units, identified piece by piece until each σ is {percent(product['until'])} of its "
        f"parameter, or of what asks for 0.1 % of a joint's torque limit where the parameter is nearly zero, by "
        f"{product['motion_s']:.0f} s of motion. model.html has them with all their verdicts."
    )
    heads = ("parameter", "value", "σ", "relative σ [%]", "known")
    return NumberTable("parameters", "What was identified", note, heads, rows)


def _known(precision: Mapping[str, Any], until: float) -> str:
    if precision["relative_sigma"] <= until:
        return "yes"
    return "out of reach" if precision["out_of_reach"] else "no"


def _validated(page: Path, product: Product) -> NumberTable:
    validation, sources = product["validation"], (_source(page, product["run"]),)
    rows = tuple(
        NumberRow(
            name,
            (
                fixed(validation["verification_rms_all_rows"][name] or 0.0, 3),
                _percent(validation["verification_relative_all_rows"][name]),
                _percent(validation["verification_relative"][name]),
                joint["word"],
            ),
            sources,
        )
        for name, joint in validation["joint_verdicts"].items()
    )
    note = "Predicted less measured torque on a random motion that the model was not fitted to. model.html draws it."
    heads = ("joint", "rms [N·m or N]", "relative", "where it moves", "verdict")
    return NumberTable("validated", "Torque on new motion", note, heads, rows)


def _percent(value: float | None) -> str:
    return NOT_A_NUMBER if value is None else percent(value)


def _proven(page: Path, product: Product) -> NumberTable:
    sources = (_source(page, product["out"]),)
    rows = tuple(
        NumberRow(
            name,
            (
                fixed(joint["ratio"], 1),
                NOT_A_NUMBER if joint["link_ratio"] is None else fixed(joint["link_ratio"], 1),
                percent(joint["share"]),
                f"{percent(joint['predicted'])} ({' … '.join(map(percent, joint['predicted_interval']))})",
                percent(joint["allowed"]),
            ),
            sources,
        )
        for name, joint in product["proof"]["joints"].items()
        if joint["judged"]
    )
    note = (
        "Another new motion, played without and with the model's feed-forward: by how much it divides the tracking "
        "error, and what feedback still supplies of each joint's torque. proof.html draws it."
    )
    heads = ("joint", "motor error ÷", "link error ÷", "share of feedback", "predicted (95 %)", "allowed")
    return NumberTable("proven", "Proof on the arm", note, heads, rows)
