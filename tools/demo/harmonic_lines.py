"""What the paper of system E prints of its joints, beside our models and its own method on the same recordings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jointbench import FitSettings, Run
from jointbench.cli.judgement import by_name
from jointbench.cli.result import Check
from jointbench.identification.drives import (
    HARMONIC_PARAMETERS,
    GearStiffness,
    HarmonicModel,
    drive_signals,
    fit_harmonic,
    fit_stiffness,
)
from jointbench.identification.drives.harmonic import rms_error
from jointbench.identification.drives.linear_torque import fit_linear_torque
from jointbench.robot import Array
from tools.demo.printed_harmonic import fit_printed, on_printed_rows, printed_signals
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
EXCITATION_PERCENT, VERIFICATION_PERCENT = 90.0, 85.0
TWO_SIGMA = 2.0


class Reduction(NamedTuple):
    """RMS error of the motors' torque over all joints [N·m], by a simpler model and by a better one."""

    simplified: float
    improved: float

    @property
    def percent(self) -> float:
        """By how much the better one's is less."""
        return 100.0 * (1.0 - self.improved / self.simplified)

    def __str__(self) -> str:
        change = f"{-self.percent:+.1f}".replace("-", "−")
        return f"{self.simplified:.4f} → {self.improved:.4f} N·m ({change} %)"


def harmonic_lines(excitation: Run, verification: Run, truth: Truth) -> tuple[tuple[PaperLine, ...], dict[str, Any]]:
    """Models of the joints, fitted to the excitation and judged on both runs over all rows, moving ones beside.

    Args:
        excitation, verification: with motor currents, torque sensors and encoders on both sides of the gears.
        truth: of the plant.

    Returns:
        The paper's quantities beside ours; and for JSON the models' verdicts and errors.
    """
    robot = excitation.robot
    runs, link = (excitation, verification), FitSettings(position="link")
    signals = [drive_signals(run, robot, link) for run in runs]
    unfiltered = [drive_signals(run, robot, link, motion_cutoff_Hz=None) for run in runs]
    printed = [printed_signals(run) for run in runs]
    model = fit_harmonic(robot, signals[0], load="choose", current_gain=True)
    plain = fit_linear_torque(robot, "motor", unfiltered[0], unfiltered[0].motor_torque, unfiltered[0].used)
    their_model = fit_printed(excitation, printed[0])
    ours = [model.rms_errors(each) for each in signals]
    as_usual = [
        rms_error(plain.predict(each.q, each.dq, each.ddq) - each.motor_torque, each.used, each) for each in unfiltered
    ]
    theirs = [their_model.rms(each, measured=each is printed[0]) for each in printed]
    on_theirs = [model.rms_errors(on_printed_rows(own, each)) for own, each in zip(signals, printed, strict=True)]
    lines = [
        *(parameter_line(model, index, quantity) for index, quantity in enumerate(PRINTED)),
        *(torque_stiffness_line(model, joint, truth) for joint in LIGHT),
        *(
            encoder_stiffness_line(gear, truth)
            for gear in fit_stiffness(robot, signals[0])
            if gear and gear.name in LIGHT
        ),
    ]
    fields: dict[str, Any] = {
        "load_friction_grows_with": model.load,
        "harmonic": {each.name: {"word": each.word, "reason": each.reason} for each in model.verdicts},
        "friction_with_memory": {
            joint.name: {"family": joint.friction.family, "weights": joint.friction.used}
            for joint in model.memory
            if joint is not None
        },
        "harmonic_rms": {},
    }
    for k, (name, paper, least) in enumerate(
        (("excitation", EXCITATION, EXCITATION_PERCENT), ("verification", VERIFICATION, VERIFICATION_PERCENT))
    ):
        by_memory, filtered, usual = ours[k]["memory"], ours[k]["simplified"], as_usual[k]
        gain = Reduction(total(filtered.all), total(by_memory.all))
        lines += [
            PaperLine(
                f"RMS error, {name}, all rows: simplified → ours", paper, str(gain),
                Check(f"rms_reduction_{name}", gain.percent, ">=", least, "%"),
            ),
            PaperLine(
                "the same, rows away from rest (moving)", "–",
                str(Reduction(total(filtered.moving), total(by_memory.moving))),
            ),
            PaperLine(
                "the same, all rows: simplified with columns not filtered → ours", "–",
                str(Reduction(total(usual.all), total(by_memory.all))),
            ),
            PaperLine(
                "the same, all rows: simplified → the published five numbers, filtered", "–",
                str(Reduction(total(filtered.all), total(ours[k]["exact"].all))),
            ),
            PaperLine(
                f"RMS error, {name}, the paper's method, rows and smoothing", paper,
                str(Reduction(total(theirs[k][0].all), total(theirs[k][1].all))),
            ),
            PaperLine(
                "the same, paper's simplified → ours", "–",
                str(Reduction(total(theirs[k][0].all), total(on_theirs[k]["memory"].all))),
            ),
        ]  # fmt: skip
        fields["harmonic_rms"][name] = {
            way: {"all": by_name(robot.joint_names, error.all), "moving": by_name(robot.joint_names, error.moving)}
            for way, error in ours[k].items()
        }
    return tuple(lines), fields


def total(errors: Array) -> float:
    """RMS of all joints together [N·m], of each joint's."""
    return float(np.sqrt(np.mean(errors**2)))


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
