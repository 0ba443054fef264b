"""Results of a fit and a validation for each joint in JSON: everything a script may act on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jointbench.arrays import Array
from jointbench.identification import Verdict
from jointbench.identification.judgement import TorqueInformation, TwoErrors
from jointbench.identification.verdict import WholeVerdict
from jointbench.identification.whiteness import Whiteness


def verdict_fields(whole: Verdict | WholeVerdict, joints: Sequence[Verdict]) -> dict[str, Any]:
    """The word on the whole and on each joint, with its reason; of a model its parts, condition and what to do next."""
    of_model = (
        {
            "verdict_condition": whole.condition,
            "verdict_advice": whole.advice,
            "verdict_parts": whole.to_dict()["parts"],
        }
        if isinstance(whole, WholeVerdict)
        else {}
    )
    return {
        "verdict": whole.word,
        "verdict_reason": whole.reason,
        **of_model,
        "joint_verdicts": {joint.name: {"word": joint.word, "reason": joint.reason} for joint in joints},
    }


def residual_fields(names: Sequence[str], whiteness: Whiteness) -> dict[str, Any]:
    """Return how far each joint's residual is noise."""
    shares, p_values = whiteness.predictable.tolist(), whiteness.p_value.tolist()
    return {
        "residuals": {
            name: {"word": word, "predictable": finite(share), "p_value": finite(p_value)}
            for name, word, share, p_value in zip(names, whiteness.words, shares, p_values, strict=True)
        }
    }


def information_fields(names: Sequence[str], information: TorqueInformation) -> dict[str, Any]:
    """Return how much each joint's torque varies beside its noise."""
    return {
        "torque_variation": by_name(names, information.variation),
        "torque_noise": by_name(names, information.noise),
    }


def two_errors_fields(names: Sequence[str], errors: TwoErrors | None) -> dict[str, Any] | None:
    """Torque errors over all rows and over those where the joints move; None where there are none."""
    if errors is None:
        return None
    return {
        which: {
            "rms": by_name(names, error.rms),
            "relative": by_name(names, error.relative),
            "r_squared": by_name(names, error.r_squared),
            "total_relative": finite(error.total_relative),
        }
        for which, error in zip(("all", "moving"), errors, strict=True)
    }


def two_errors_sentence(what: str, errors: TwoErrors) -> str:
    """Both errors of all joints together."""
    joints = ", ".join(f"{error:.1%}" for error in errors.all.relative if math.isfinite(error))
    return (
        f"{what}: torque error {errors.all.total_relative:.1%} over all samples (by joint {joints}), "
        f"{errors.moving.total_relative:.1%} where the joints move"
    )


def by_name(names: Sequence[str], values: Array) -> dict[str, float | None]:
    """Numbers by name."""
    return {name: finite(value) for name, value in zip(names, values.tolist(), strict=True)}


def finite(value: float) -> float | None:
    """JSON knows no nan and no infinity."""
    return value if math.isfinite(value) else None
