"""The command that makes sense after a verb, shown as its last line."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from jointbench.checks import Result

SILENT = ("completion", "repl", "monitor")
"""Verbs that are followed by nothing: a script for a shell, and what a person ends."""

OWN = ("doctor", "identify", "init")
"""Verbs that say it themselves, with what only they know."""


def next_step(verb: str, options: argparse.Namespace, result: Result) -> str:
    """Return the command that makes sense after a verb that was carried out, "" where there is none to say.

    Args:
        verb: that was carried out.
        options: as they were given.
        result: of the verb; after a "no" the command says where to look.
    """
    if verb in (*SILENT, *OWN) or (verb == "import" and "mapping" in result.fields):
        return ""
    words = _after_no(verb, options, result) if result.exit_code else _after_yes(verb, options, result)
    return " ".join(word if word.isupper() else shlex.quote(word) for word in ("jointbench", *words))


def _after_yes(verb: str, options: argparse.Namespace, result: Result) -> tuple[str, ...]:
    fields = result.fields

    def value(name: str, otherwise: str) -> str:
        """Text of a field of the result or of an option; capitals stand for what the user fills in."""
        found = fields.get(name) or getattr(options, name, None)
        return str(found) if found and isinstance(found, (str, Path)) else otherwise

    match verb:
        case "demo":
            return "export", value("model", "MODEL"), "--out", "arm.urdf"
        case "list":
            return ("check", options.bench) if options.bench else ("info", "ROBOT")
        case "info":
            return _after_info(options.what, fields.get("kind", "robot"))
        case "assemble":
            return "plan", value("robot", "ROBOT")
        case "check":
            return "run", options.bench, "--plan", options.plan or "PLAN"
        case "commission":
            return "plan", "ROBOT"
        case "flash":
            return "list", options.target
        case "plan" | "sweep":
            return "run", "BENCH", "--plan", value("plan", "PLAN")
        case "run" if "sweep" in Path(str(options.plan)).stem:
            return "friction", value("run", "RUN")
        case "run" | "import" | "accept":
            return "fit", value("run", "RUN")
        case "fit":
            return "validate", value("model", "MODEL"), "ANOTHER_RUN"
        case "friction":
            return "fit", options.source if Path(options.source).is_dir() else "RUN", "--friction", "choose"
        case "drives" | "residual":
            return "report", value("model", "MODEL"), value("run", "RUN")
        case "gains" | "payload" | "stance":
            return "export", "MODEL", "--out", "arm.urdf"
        case "validate" | "watch" | "prove":
            model = options.model[0] if isinstance(options.model, list) else options.model
            return "report", str(model), "RUN", *([options.run] if verb == "validate" else [])
        case "compare":
            return "report", options.a, options.b
        case "history":
            return "compare", "MODEL_BEFORE", "MODEL_NOW"
        case "report":
            return "export", options.first, "--out", "arm.urdf"
        case "export":
            return "prove", options.model, "BENCH"
        case "convert":
            return "doctor", value("run", "RUN")
        case _:
            return ("list",)


def _after_info(what: str, kind: str) -> tuple[str, ...]:
    return {
        "robot": ("plan", what),
        "run": ("fit", what),
        "model": ("validate", what, "ANOTHER_RUN"),
        "plan": ("run", "BENCH", "--plan", what),
        "bench": ("check", what),
    }[kind]


def _after_no(verb: str, options: argparse.Namespace, result: Result) -> tuple[str, ...]:
    """Where to look after a "no": at the recording of what was made of one, at the bench of what needs one."""
    bench = next((str(getattr(options, name)) for name in ("bench", "target") if getattr(options, name, None)), None)
    if verb in ("fit", "validate"):
        model = result.fields.get("model") or getattr(options, "model", None) or "MODEL"
        return "report", str(model[0] if isinstance(model, list) else model), "RUN"
    if verb == "report":
        return "doctor", str(options.second)
    if verb == "compare":
        return "report", str(options.a), str(options.b)
    if verb in ("run", "import", "accept"):
        return "doctor", str(result.fields.get("run", "RUN"))
    if verb == "plan":
        return "plan", str(options.robot), "--help"
    return ("check", bench) if bench else ("doctor", "RUN")
