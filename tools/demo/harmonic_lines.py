"""What the paper of system E prints of its joints, beside our model on our signals and its own way as printed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointbench import FitSettings, Run
from jointbench.cli.judgement import by_name
from jointbench.cli.result import Check
from jointbench.identification.drives import (
    HARMONIC_PARAMETERS,
    DriveSignals,
    GearStiffness,
    HarmonicModel,
    drive_signals,
    fit_harmonic,
    fit_stiffness,
)
from tools.demo.printed_signals import printed_signals
from tools.demo.story import PaperLine
from tools.truth import Truth

PRINTED = {
    "a1, load friction": "0.402 0.804 0.464 0.266 0.603 0.282",
    "a2, Coulomb [N·m]": "1.578 1.139 0.822 0.925 1.916 0.795",
    "a3, viscous [N·m·s/rad]": "2.937 7.870 3.047 2.721 3.690 2.689",
    "a4, motor's inertia [kg·m²]": "0.515 0.477 0.638 0.534 0.123 0.614",
    "a5 = 1/stiffness": "0.014 0.009 0.029 0.033 −0.034 −0.076",
}
"""Of j1 … j6, in the order of HARMONIC_PARAMETERS."""

LIGHT = ("j5", "j6")
"""Whose a5 is printed with the wrong sign."""

EXCITATION, VERIFICATION = "1.6859 → 0.6815 N·m (−59.58 %)", "1.7045 → 1.5762 N·m (−7.52 %)"
EXCITATION_PERCENT, VERIFICATION_PERCENT = 60.0, 50.0
TWO_SIGMA = 2.0


class Reduction(NamedTuple):
    """RMS error of the motors' torque over all joints [N·m], by the simplified model and by the improved one."""

    simplified: float
    improved: float

    @property
    def percent(self) -> float:
        """By how much the improved model's is less."""
        return 100.0 * (1.0 - self.improved / self.simplified)

    def __str__(self) -> str:
        return f"{self.simplified:.4f} → {self.improved:.4f} N·m (−{self.percent:.1f} %)"


def harmonic_lines(excitation: Run, verification: Run, truth: Truth) -> tuple[tuple[PaperLine, ...], dict[str, Any]]:
    """Both models of the joints, fitted to the excitation and judged on both runs.

    Args:
        excitation, verification: with motor currents, torque sensors and encoders on both sides of the gears.
        truth: of the plant.

    Returns:
        The paper's quantities beside ours; and for JSON the improved model's verdicts and both models' errors.
    """
    robot = excitation.robot
    fitted, other = (drive_signals(run, robot, FitSettings(position="link")) for run in (excitation, verification))
    model = fit_harmonic(robot, fitted, load="choose", current_gain=True)
    on_fit, on_other = reduction(model, fitted, "exact"), reduction(model, other, "exact")
    fitted_as_printed, other_as_printed = (printed_signals(run) for run in (excitation, verification))
    printed = fit_harmonic(robot, fitted_as_printed)
    lines = (
        *(parameter_line(model, index, quantity) for index, quantity in enumerate(PRINTED)),
        *(torque_stiffness_line(model, joint, truth) for joint in LIGHT),
        *(encoder_stiffness_line(gear, truth) for gear in fit_stiffness(robot, fitted) if gear and gear.name in LIGHT),
        PaperLine(
            "RMS error, excitation", EXCITATION, str(on_fit),
            Check("rms_reduction_excitation", on_fit.percent, ">=", EXCITATION_PERCENT, "%"),
        ),
        PaperLine(
            "RMS error, verification", VERIFICATION, str(on_other),
            Check("rms_reduction_verification", on_other.percent, ">=", VERIFICATION_PERCENT, "%"),
        ),
        PaperLine(
            "RMS error, excitation, as printed", EXCITATION, str(reduction(printed, fitted_as_printed, "stand_in"))
        ),
        PaperLine(
            "RMS error, verification, as printed", VERIFICATION, str(reduction(printed, other_as_printed, "stand_in"))
        ),
        PaperLine(
            "RMS error, verification, printed law solved", "–", str(reduction(printed, other_as_printed, "exact"))
        ),
    )  # fmt: skip
    fields = {
        "load_friction_grows_with": model.load,
        "harmonic": {each.name: {"word": each.word, "reason": each.reason} for each in model.verdicts},
        "harmonic_rms": {
            name: {way: by_name(robot.joint_names, rms) for way, rms in model.rms_errors(signals).items()}
            for name, signals in (("excitation", fitted), ("verification", other))
        },
    }
    return lines, fields


def reduction(model: HarmonicModel, signals: DriveSignals, way: str) -> Reduction:
    """What a model's way of predicting gains over the simplified model, on the motion of some signals."""
    errors = model.rms_errors(signals)
    return Reduction(*(float(np.sqrt(np.mean(errors[name] ** 2))) for name in ("simplified", way)))


def parameter_line(model: HarmonicModel, index: int, quantity: str) -> PaperLine:
    """One of a1 … a5, all joints in a row."""
    words = {verdict.name: verdict.word for verdict in model.verdicts}
    found = (
        "refused" if words[f"{joint}.{HARMONIC_PARAMETERS[index]}"] == "refused" else f"{value:.3f}"
        for joint, value in zip(model.robot.joint_names, model.parameters[index], strict=True)
    )
    return PaperLine(f"{quantity}, j1 … j6", PRINTED[quantity], " ".join(found))


def torque_stiffness_line(model: HarmonicModel, name: str, truth: Truth) -> PaperLine:
    """The paper's a5 of one joint: what twist does to the motor's torque.

    A refused one claims nothing and is off by nothing; how its interval lies to the truth is said all the same.
    """
    joint = model.joints[model.robot.joint_index(name)]
    assert joint is not None  # none of this arm's joints is passive
    verdict = next(verdict for verdict in joint.verdicts if verdict.name == f"{name}.flexibility")
    low, high = joint.flexibility_interval
    half = (high - low) / 2.0
    true = 1.0 / truth[name]["stiffness"]
    sigmas = 0.0 if verdict.word == "refused" else abs((low + high) / 2.0 - true) / half * TWO_SIGMA
    interval = f"{1e3 * low:.2f} … {1e3 * high:.2f}".replace("-", "−")
    ours = f"{verdict.word}, 95 % interval {interval} mrad/(N·m), true {1e3 * true:.3f}"
    return PaperLine(
        f"a5 of {name}, from torque",
        "negative",
        ours,
        Check(f"{name}_flexibility_claimed_off", sigmas, "<=", TWO_SIGMA, "σ"),
    )


def encoder_stiffness_line(gear: GearStiffness, truth: Truth) -> PaperLine:
    """Stiffness of one gear from the encoders on both its sides, which the paper does not use for it."""
    if gear.stiffness is None:
        ours = gear.verdict.word
    else:
        half = TWO_SIGMA * gear.sigma * gear.stiffness**2
        ours = f"{gear.stiffness:.0f} ± {half:.0f} N·m/rad (2 σ), true {truth[gear.name]['stiffness']:.0f}"
    return PaperLine(f"stiffness of {gear.name}, encoders of both sides", "–", ours)
