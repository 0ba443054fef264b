"""What a fit and a validation tell of each joint in JSON: everything a script may act on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jointbench.identification import Verdict
from jointbench.identification.judgement.torque_information import TorqueInformation
from jointbench.identification.judgement.whiteness import Whiteness
from jointbench.robot import Array


def verdict_fields(whole: Verdict, joints: Sequence[Verdict]) -> dict[str, Any]:
    """The word on the whole and on each joint, with its reason."""
    return {
        "verdict": whole.word,
        "verdict_reason": whole.reason,
        "joint_verdicts": {joint.name: {"word": joint.word, "reason": joint.reason} for joint in joints},
    }


def residual_fields(names: Sequence[str], whiteness: Whiteness) -> dict[str, Any]:
    """How far each joint's residual is noise."""
    shares, p_values = whiteness.predictable.tolist(), whiteness.p_value.tolist()
    return {
        "residuals": {
            name: {"word": word, "predictable": finite(share), "p_value": finite(p_value)}
            for name, word, share, p_value in zip(names, whiteness.words, shares, p_values, strict=True)
        }
    }


def information_fields(names: Sequence[str], information: TorqueInformation) -> dict[str, Any]:
    """How much each joint's torque varies beside its noise."""
    return {
        "torque_variation": by_name(names, information.variation),
        "torque_noise": by_name(names, information.noise),
    }


def by_name(names: Sequence[str], values: Array) -> dict[str, float | None]:
    """Numbers by name."""
    return {name: finite(value) for name, value in zip(names, values.tolist(), strict=True)}


def finite(value: float) -> float | None:
    """JSON knows no nan and no infinity."""
    return value if math.isfinite(value) else None
