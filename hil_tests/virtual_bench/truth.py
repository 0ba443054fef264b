"""What is true of plant and boards, for judging a fit; a client may ask for it over the control socket."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hil_tests.virtual_bench.bench_file import RP2040, BoardEntry
from hil_tests.virtual_bench.kinds import PlantKind
from hil_tests.virtual_bench.model import Transmission
from hil_tests.virtual_bench.plant import OVERSAMPLES
from hil_tests.virtual_bench.plant_file import JointTruth, PlantFile
from hil_tests.virtual_bench.sensors import Sensors
from jointbench.model import Robot


def true_parameters(robot: Robot, truth: PlantFile, kind: PlantKind, sensors: Sensors) -> dict[str, dict[str, Any]]:
    """True parameters of each joint by its name, in SI units at the joint side.

    Returns:
        Per joint: `standard_parameters` (ten, about the link frame, m first), `rotor_inertia` (J ratio²; in a coupling
        of the joint's own drive at its input), `viscous`, `coulomb` and `offset` (torque that the calibrated currents
        read at no current). Of the harmonic plant viscous and coulomb are None: its friction is not of that form.
        `stiffness` of its gears [N·m/rad]; the ideal plant's are rigid, None. `friction`: name of the law and its
        parameters; `lost_torque`: share of the motor's that does not arrive; `ratio`, `torque_constant` of its
        drive; `current_gain`: current that its board reads over the true one; `current_noise`: of a tick's current, as
        torque of the joint's own drive behind its gear [N·m]; `springs`: those of the torque
        -torsion (q - torsion_zero) - sine sin(q - sine_zero).
        Of a robot on its feet also per foot by its name: `gain`, `zero_error` [N] and `cable_pull` [N, in the world's
        axes at the origin of the frame of the foot's link]; and of "base" `standard_parameters` and `total_mass`, the
        whole robot's.
    """
    table: dict[str, dict[str, Any]] = {}
    transmission = Transmission(robot)
    torque_constants = np.array([drive.torque_constant for drive in robot.drives])
    per_current = np.abs(transmission.ratio * torque_constants)
    noise = per_current * truth.sensors.current_noise / np.sqrt(OVERSAMPLES)
    offsets = transmission.at_joints(sensors.current_offset * (transmission.ratio * torque_constants))
    for index, (joint, part) in enumerate(zip(robot.independent_joints, truth.joints, strict=True)):
        parameters = part.link.standard_parameters
        assert parameters is not None  # the plant file requires every inertia
        table[joint.name] = {
            "standard_parameters": parameters.tolist(),
            "rotor_inertia": float(part.rotor_inertia * transmission.ratio[index] ** 2),
            "viscous": part.viscous if kind == "ideal" else None,
            "coulomb": part.coulomb if kind == "ideal" else None,
            "offset": float(offsets[index]),
            "stiffness": part.stiffness if kind != "ideal" else None,
            "friction": _friction(part, truth, kind),
            "lost_torque": part.lost_torque,
            "ratio": float(transmission.ratio[index]),
            "torque_constant": float(torque_constants[index]),
            "current_gain": float(sensors.current_gain[index]),
            "current_noise": float(noise[index]),
            "springs": {
                "torsion": part.torsion_spring,
                "torsion_zero": part.torsion_zero,
                "sine": part.sine_spring,
                "sine_zero": part.sine_zero,
            },
        }
    if truth.base_link is not None and sensors.feet is not None:
        for foot, gain, zero in zip(truth.feet, sensors.feet.gain, sensors.feet.zero_error, strict=True):
            table[foot.name] = {
                "gain": gain.tolist(), "zero_error": zero.tolist(), "cable_pull": list(foot.cable_pull)
            }  # fmt: skip
        links = (truth.base_link, *(part.link for part in truth.joints))
        base = truth.base_link.standard_parameters
        assert base is not None  # the plant file requires every inertia
        masses = [link.mass for link in links if link.mass is not None]
        table["base"] = {"standard_parameters": base.tolist(), "total_mass": sum(masses)}
    return table


def _friction(part: JointTruth, truth: PlantFile, kind: PlantKind) -> dict[str, Any]:
    """Friction of a joint as the formulas of `friction.py` have it, and its viscous part; `load` is per load.

    Where teeth make it swell, this is its mean over a tooth of cold gears; `MeshRipple` has the rest.
    """
    if kind != "ideal" and part.makkar is not None:
        gammas = [*part.makkar, part.viscous]
        beyond = {
            "grease_drag": part.grease_drag,
            "mesh_ripple": truth.mesh_ripple,
            "mesh_second": truth.mesh_second,
            "mesh_teeth": truth.mesh_teeth,
            "mesh_phases": part.mesh_phases,
            "warming": truth.warming,
            "warming_time": truth.warming_time,
        }
        return {"law": "makkar", "gammas": gammas, "load": part.load_friction, **beyond}
    plain = {"coulomb": part.coulomb, "viscous": part.viscous}
    if kind == "ideal":
        return {"law": "coulomb", **plain, "transition": truth.ideal_transition, "load": 0.0}
    rise = {"stribeck": part.stribeck, "stribeck_velocity": part.stribeck_velocity}
    return {"law": "stribeck", **plain, **rise, "transition": truth.transition, "load": part.load_friction}


def add_clocks(table: dict[str, dict[str, Any]], boards: Iterable[BoardEntry]) -> None:
    """Add `clock` to each joint with a board: its `offset_us` and `ppm` against the bench's time.

    The clock shows offset_us + time_us (1 + ppm / 1e6); its board counts tick n when it shows n tick periods.
    A chip's is None: its clock begins with its program, wherever its start has come to.
    """
    for board in boards:
        for motor in board.motors:
            if board.url == RP2040:
                table[motor.joint]["clock"] = None
                continue
            table[motor.joint]["clock"] = {"offset_us": board.clock.offset_us, "ppm": board.clock.drift_ppb / 1e3}
