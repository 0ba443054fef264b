"""Jointbench: from the joint boards of a robot to its dynamic model, with error bars and a verdict.

Names are imported when they are first used: whoever needs a robot does not wait for the optimiser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__: str
"""Version of the installed distribution."""

if TYPE_CHECKING:
    from jointbench.bench import Bench, open_bench
    from jointbench.excitation import (
        Excitation,
        Workspace,
        load_excitation,
        plan_excitation,
        plan_single_support,
        random_excitation,
        read_workspace,
    )
    from jointbench.identification import (
        Comparison,
        FitSettings,
        Fleet,
        Model,
        Validation,
        commission,
        compare,
        fit,
        fit_fleet,
        load_model,
        prove,
        validate,
        validate_models,
        without_external,
    )
    from jointbench.model import (
        Robot,
        Wrench,
        base_parameters,
        external_torques,
        inverse_dynamics,
        library_names,
        load_robot,
        regressor,
    )
    from jointbench.recording import Run, import_csv, open_run, record
    from jointbench.results import export

__all__ = [
    "Bench",
    "Comparison",
    "Excitation",
    "FitSettings",
    "Fleet",
    "Model",
    "Robot",
    "Run",
    "Validation",
    "Workspace",
    "Wrench",
    "base_parameters",
    "commission",
    "compare",
    "export",
    "external_torques",
    "fit",
    "fit_fleet",
    "import_csv",
    "inverse_dynamics",
    "library_names",
    "load_excitation",
    "load_model",
    "load_robot",
    "open_bench",
    "open_run",
    "plan_excitation",
    "plan_single_support",
    "prove",
    "random_excitation",
    "read_workspace",
    "record",
    "regressor",
    "validate",
    "validate_models",
    "without_external",
]

_ROOMS = ("model", "excitation", "bench", "recording", "identification", "results")


def __dir__() -> list[str]:
    """Return all public names, those too that have not been imported yet."""
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # takes a while, and is hardly ever asked for

        return version("jointbench")
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"jointbench.{room}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'jointbench' has no attribute {name!r}")
