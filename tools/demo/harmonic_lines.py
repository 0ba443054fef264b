"""Numbers that the paper of system E prints of its joints, beside our models and its method on the same recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from hil_tests.virtual_bench.friction import Unmodelled
from hil_tests.virtual_bench.kinds import Variant
from jointbench import FitSettings, Run
from jointbench.arrays import Array
from jointbench.checks import Check
from jointbench.cli.judgement import by_name
from jointbench.identification.drives import (
    HARMONIC_PARAMETERS,
    DriveSignals,
    GearStiffness,
    HarmonicModel,
    LinearTorque,
    drive_signals,
    fit_harmonic,
    fit_stiffness,
)
from jointbench.identification.drives.harmonic import rms_error
from jointbench.identification.drives.prediction import fit_linear_torque
from tools.demo.printed_harmonic import PrintedModel, fit_printed, on_printed_rows, printed_signals
from tools.demo.story import NOT_PRINTED, PaperLine
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
FLEXIBILITY = HARMONIC_PARAMETERS.index("flexibility")
TWO_SIGMA = 2.0

MOST_SIGMAS = 3.0
"""Two gears in five seeds are ten draws: one lies beyond 2 σ in two pages of five, beyond 3 σ in one of forty."""

MOST_A1_OFF = 5.0
"""Of a share of the motor's torque; the current's gain is 1 ± 0.01, the torque sensor's is exact."""

SLIDING = 0.3
"""[rad/s], at which friction over distance has long slid and Stribeck's rise is gone."""


class Reduction(NamedTuple):
    """RMS error of the motors' torque over all joints [N·m], by a simpler model and by a better one."""

    simplified: float
    improved: float

    @property
    def percent(self) -> float:
        """Reduction by the better one [%]."""
        return 100.0 * (1.0 - self.improved / self.simplified)

    def __str__(self) -> str:
        change = f"{-self.percent:+.1f}".replace("-", "−")
        return f"{self.simplified:.4f} → {self.improved:.4f} N·m ({change} %)"


@dataclass(frozen=True)
class Plant:
    """A make of the emulated arm, and what ours is held to on it.

    Attributes:
        name: what its lines begin with, and its folder.
        kind: physics of its joints.
        variant: of the plant file; None: as it is.
        limits: least reduction of the RMS error [%], on the excitation and on the verification; none where None.
        told: what it is, for the page.
        bench: file of its boards, one of BENCHES.
    """

    name: str
    kind: Literal["harmonic", "presliding"]
    variant: Variant | None
    limits: tuple[float, float] | None
    told: str
    bench: str = "cobot6.toml"


PLANTS = (
    Plant("tanh", "harmonic", None, (90.0, 85.0), "friction that turns its sign over speed"),
    Plant("presliding", "presliding", None, (90.0, 85.0), "friction that turns its sign over distance"),
    Plant(
        "unmodelled", "harmonic", "unmodelled", (60.0, 50.0),
        "tanh, with gear ripple and its second harmonic, torque ripple of the motors, friction that swells with the "
        "position and falls as it warms: no candidate law has any of them",
    ),
    Plant(
        "published", "harmonic", "published", None, "friction and rotors are the paper's own a1 … a4, for every seed",
        "cobot6_published.toml",
    ),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fitted:
    """All models of one plant's recordings.

    Attributes:
        model: ours, and the published five numbers beside it.
        theirs: the paper's method.
        signals, unfiltered, printed: of excitation and verification as ours takes them, with columns that are not
            filtered, and as the paper prepares them.
        usual: the simplified model with columns that are not filtered.
        truth: of the plant.
        repeats: how often each motion was played, which its rows are means of.
    """

    model: HarmonicModel
    theirs: PrintedModel
    signals: tuple[DriveSignals, ...]
    unfiltered: tuple[DriveSignals, ...]
    printed: tuple[DriveSignals, ...]
    usual: LinearTorque
    truth: Truth
    repeats: tuple[int, ...]

    @classmethod
    def of(cls, excitation: Run, verification: Run, truth: Truth) -> Fitted:
        """Fit them to the excitation."""
        robot, runs, link = excitation.robot, (excitation, verification), FitSettings(position="link")
        signals = tuple(drive_signals(run, robot, link) for run in runs)
        unfiltered = tuple(drive_signals(run, robot, link, motion_cutoff_Hz=None) for run in runs)
        printed = tuple(printed_signals(run) for run in runs)
        usual = fit_linear_torque(robot, "motor", unfiltered[0], unfiltered[0].motor_torque, unfiltered[0].used)
        model = fit_harmonic(robot, signals[0], load="choose", current_gain=True)
        repeats = tuple(max(run.repeats, 1) for run in runs)
        theirs = fit_printed(excitation, printed[0])
        return cls(model, theirs, signals, unfiltered, printed, usual, truth, repeats)

    def noise(self, k: int) -> float:
        """RMS of what the currents' converters alone put into the rows [N·m]: no model errs less on new motion."""
        signals, names = self.signals[k], self.model.robot.joint_names
        sigma = np.array([self.truth[name]["current_noise"] for name in names]) / np.sqrt(self.repeats[k])
        drawn = signals.rows(sigma * np.random.default_rng(0).standard_normal(signals.q.shape))
        return total(rms_error(drawn, signals.used, signals).all)

    def unmodelled(self, k: int, seed: int) -> float:
        """RMS of what position does to the torque on the "unmodelled" plant [N·m], which no law of speed knows.

        Args:
            k: of which run.
            seed: of the plant.
        """
        signals, robot = self.signals[k], self.model.robot
        friction = {
            name: np.array([self.truth[joint]["friction"][name] for joint in robot.joint_names])
            for name in ("coulomb", "stribeck", "stribeck_velocity", "load", "transition")
        }
        effects = Unmodelled(friction["coulomb"], robot_ratios(self), seed)
        load = self.model.links.predict(signals.q, signals.dq, signals.ddq)
        v = signals.dq
        rise = friction["stribeck"] * np.exp(-np.minimum((v / friction["stribeck_velocity"]) ** 2, 100.0))
        rub = (friction["coulomb"] + rise + friction["load"] * np.abs(load)) * np.tanh(v / friction["transition"])
        swell = np.stack([effects.rub(f.copy(), q, 0.0) for f, q in zip(rub, signals.q, strict=True)]) - rub
        ripple = np.stack([effects.drive(f.copy(), q) - f for f, q in zip(load + rub, signals.q, strict=True)])
        return total(rms_error(signals.rows(swell - ripple), signals.used, signals).all)


def harmonic_lines(
    excitation: Run, verification: Run, truth: Truth, plant: Plant = PLANTS[0], seed: int = 0
) -> tuple[tuple[PaperLine, ...], dict[str, Any]]:
    """Models of the joints, fitted to the excitation and judged on both runs over all rows, moving ones beside.

    Args:
        excitation, verification: with motor currents, torque sensors and encoders on both sides of the gears.
        truth: of the plant.
        plant: which.
        seed: of the plant's effects.

    Returns:
        The paper's quantities beside ours; and for JSON the models' verdicts and errors.
    """
    fitted = Fitted.of(excitation, verification, truth)
    model, lines = fitted.model, list[PaperLine]()
    if plant is PLANTS[0]:
        lines += [parameter_line(fitted, index, quantity) for index, quantity in enumerate(PRINTED)]
        lines += [torque_stiffness_line(model, joint, truth) for joint in LIGHT]
        gears = fit_stiffness(model.robot, fitted.signals[0])
        lines += [encoder_stiffness_line(gear, truth) for gear in gears if gear and gear.name in LIGHT]
    if plant.variant == "published":
        lines += published_lines(fitted)
    for k, (name, paper) in enumerate((("excitation", EXCITATION), ("verification", VERIFICATION))):
        lines += error_lines(fitted, plant, k, name, paper, seed)
    fields: dict[str, Any] = {
        "load_friction_grows_with": model.load,
        "harmonic": {each.name: {"word": each.word, "reason": each.reason} for each in model.verdicts},
        "friction_with_memory": {
            joint.name: {"family": joint.friction.family, "weights": joint.friction.used}
            for joint in model.memory
            if joint is not None
        },
        "harmonic_rms": {
            name: {
                way: {
                    "all": by_name(model.robot.joint_names, error.all),
                    "moving": by_name(model.robot.joint_names, error.moving),
                }
                for way, error in model.rms_errors(fitted.signals[k]).items()
            }
            for k, name in enumerate(("excitation", "verification"))
        },
    }
    return tuple(lines), fields


def error_lines(fitted: Fitted, plant: Plant, k: int, name: str, paper: str, seed: int) -> list[PaperLine]:
    """RMS errors on one motion: ours, the paper's method on its own rows, for one plant other baselines."""
    model, signals, printed = fitted.model, fitted.signals[k], fitted.printed[k]
    ours = model.rms_errors(signals)
    filtered, memory = ours["simplified"], ours["memory"]
    theirs = fitted.theirs.rms(printed, measured=k == 0)
    on_theirs = model.rms_errors(on_printed_rows(signals, printed))["memory"]
    gain = Reduction(total(filtered.all), total(memory.all))
    head = f"{plant.name}: RMS error, {name}"
    bound = f"{fitted.noise(k):.4f} N·m (noise of the currents)"
    if plant.variant == "unmodelled":
        bound += f"; {fitted.unmodelled(k, seed):.4f} N·m (the size of what goes by position)"
    suffix = "" if plant is PLANTS[0] else f"_{plant.name}"
    check = plant.limits and Check(f"rms_reduction_{name}{suffix}", gain.percent, ">=", plant.limits[k], "%")
    lines = [
        PaperLine(f"{head}, all rows: simplified → ours", paper, str(gain), check or None, truth=bound),
        PaperLine(
            f"{head}, rows away from rest (moving)", NOT_PRINTED,
            str(Reduction(total(filtered.moving), total(memory.moving))),
        ),
        PaperLine(
            f"{head}, all rows as the paper smooths them: its simplified → its improved, → ours", paper,
            str(Reduction(total(theirs[0].all), total(on_theirs.all))),
            theirs=str(Reduction(total(theirs[0].all), total(theirs[1].all))),
        ),
    ]  # fmt: skip
    if plant is PLANTS[0]:
        signals = fitted.unfiltered[k]
        off = fitted.usual.predict(signals.q, signals.dq, signals.ddq) - signals.motor_torque
        usual = rms_error(off, signals.used, signals)
        lines += [
            PaperLine(
                f"{head}, all rows: simplified with columns not filtered → ours", NOT_PRINTED,
                str(Reduction(total(usual.all), total(memory.all))),
            ),
            PaperLine(
                f"{head}, all rows: simplified → the published five numbers, filtered", NOT_PRINTED,
                str(Reduction(total(filtered.all), total(ours["exact"].all))),
            ),
        ]  # fmt: skip
    return lines


def normal_form(model: HarmonicModel) -> Array:
    """Our friction with memory in the numbers of eq. 19, tau_m - tau_r = a1 tau_m + a2 sgn + a3 dq + a4 ddq.

    With k = 1 + gain error, tau_m = k tau_r + c s + v dq + J ddq is a1 = 1 - 1/k, the others over k; c is the steady
    friction at SLIDING, less what is linear in the speed.

    Returns:
        Shape (4, n_joints).
    """
    columns: list[list[float]] = []
    for joint in model.memory:
        assert joint is not None  # none of this arm's joints is passive
        k = 1.0 + joint.gain_error
        steady = float(joint.friction.steady(np.array([SLIDING]), np.zeros(1))[0])
        columns.append([1.0 - 1.0 / k, steady / k, joint.viscous / k, joint.rotor_inertia / k])
    return np.array(columns).T


def published_lines(fitted: Fitted) -> list[PaperLine]:
    """The paper's table 2 on the plant whose truth it is."""
    ours, truth = normal_form(fitted.model), published_truth(fitted.truth, fitted.model.robot.joint_names)
    off = 100.0 * float(np.abs(ours[0] - truth[0]).max())
    checks = (Check("a1_of_the_published_plant_off", off, "<=", MOST_A1_OFF, "% of the torque"), None, None, None)
    return [
        PaperLine(
            f"published: {quantity}, j1 … j6", PRINTED[quantity], _in_a_row(ours[k]), checks[k],
            theirs=_in_a_row(fitted.theirs.a[k]), truth=_in_a_row(truth[k]),
        )
        for k, quantity in enumerate(list(PRINTED)[:4])
    ]  # fmt: skip


def published_truth(truth: Truth, names: Sequence[str]) -> Array:
    """a1 … a4 of a plant whose friction has that form, shape (4, n_joints)."""
    joints = [truth[name] for name in names]
    return np.array(
        [
            [joint["lost_torque"] for joint in joints],
            [joint["friction"]["coulomb"] for joint in joints],
            [joint["friction"]["viscous"] for joint in joints],
            [joint["rotor_inertia"] for joint in joints],
        ]
    )


def _in_a_row(values: Array) -> str:
    return " ".join(f"{value:.3f}" for value in values).replace("-", "−")


def robot_ratios(fitted: Fitted) -> Array:
    """Motor turns per joint turn, shape (n_joints,)."""
    return np.array([drive.ratio for drive in fitted.model.robot.drives])


def total(errors: Array) -> float:
    """RMS of all joints together [N·m], of each joint's."""
    return float(np.sqrt(np.mean(errors**2)))


def parameter_line(fitted: Fitted, index: int, quantity: str) -> PaperLine:
    """One of a1 … a5, all joints in a row; a1 of the plant is per torque of the gear."""
    model, joints = fitted.model, [fitted.truth[name] for name in fitted.model.robot.joint_names]
    truth = (
        [joint["friction"]["load"] for joint in joints],
        [joint["friction"]["coulomb"] for joint in joints],
        [joint["friction"]["viscous"] for joint in joints],
        [joint["rotor_inertia"] for joint in joints],
        [1.0 / joint["stiffness"] for joint in joints],
    )[index]
    verdicts = {verdict.name: verdict for verdict in model.verdicts}
    names = (f"{joint}.{HARMONIC_PARAMETERS[index]}" for joint in model.robot.joint_names)
    ours = (
        verdicts[name].word if verdicts[name].is_refused else f"{value:.3f}"
        for name, value in zip(names, model.parameters[index], strict=True)
    )
    digits = 5 if index == FLEXIBILITY else 3
    return PaperLine(
        f"{PLANTS[0].name}: {quantity}, j1 … j6", PRINTED[quantity], " ".join(ours),
        theirs=" ".join(f"{value:.3f}" for value in fitted.theirs.a[index]).replace("-", "−"),
        truth=" ".join(f"{value:.{digits}f}" for value in truth),
    )  # fmt: skip


def torque_stiffness_line(model: HarmonicModel, name: str, truth: Truth) -> PaperLine:
    """The paper's a5 of one joint: what twist does to the motor's torque.

    A refused one is held to its interval as any other: that it claims little makes the interval wide, not right.
    """
    joint = model.joints[model.robot.joint_index(name)]
    assert joint is not None  # none of this arm's joints is passive
    verdict = next(verdict for verdict in joint.verdicts if verdict.name == f"{name}.flexibility")
    low, high = joint.flexibility_interval
    half = (high - low) / 2.0
    true = 1.0 / truth[name]["stiffness"]
    sigmas = abs((low + high) / 2.0 - true) / half * TWO_SIGMA
    interval = f"{1e3 * low:.2f} … {1e3 * high:.2f}".replace("-", "−")
    return PaperLine(
        f"{PLANTS[0].name}: a5 of {name}, from torque",
        "negative",
        f"{verdict.word}, 95 % interval {interval} mrad/(N·m)",
        Check(f"{name}_flexibility_off", sigmas, "<=", MOST_SIGMAS, "σ"),
        truth=f"{1e3 * true:.3f} mrad/(N·m)",
    )


def encoder_stiffness_line(gear: GearStiffness, truth: Truth) -> PaperLine:
    """Stiffness of one gear from the encoders on both its sides, which the paper does not use for it."""
    if gear.stiffness is None:
        ours = gear.verdict.word
    else:
        half = TWO_SIGMA * gear.sigma * gear.stiffness**2
        ours = f"{gear.stiffness:.0f} ± {half:.0f} N·m/rad (2 σ)"
    true = f"{truth[gear.name]['stiffness']:.0f} N·m/rad"
    quantity = f"{PLANTS[0].name}: stiffness of {gear.name}, encoders of both sides"
    return PaperLine(quantity, NOT_PRINTED, ours, truth=true)
