"""What is true of plant and boards, for judging a fit; a client may ask for it over the control socket."""

from collections.abc import Iterable
from typing import Any

from hil_tests.virtual_bench.bench_file import BoardEntry
from hil_tests.virtual_bench.model import PlantKind
from hil_tests.virtual_bench.plant_file import PlantFile
from hil_tests.virtual_bench.sensors import Sensors
from jointbench.robot import Robot


def true_parameters(robot: Robot, truth: PlantFile, kind: PlantKind, sensors: Sensors) -> dict[str, dict[str, Any]]:
    """True parameters of each joint by its name, in SI units at the joint side.

    Returns:
        Per joint: `standard_parameters` (ten, about the link frame, m first), `rotor_inertia` (J ratio²), `viscous`,
        `coulomb` and `offset` (torque that the calibrated current reads at no current). Of the harmonic plant viscous
        and coulomb are None: its friction is not of that form.
    """
    table: dict[str, dict[str, Any]] = {}
    for index, (joint, drive, part) in enumerate(zip(robot.joints, robot.drives, truth.joints, strict=True)):
        parameters = part.link.standard_parameters
        assert parameters is not None  # the plant file requires every inertia
        table[joint.name] = {
            "standard_parameters": parameters.tolist(),
            "rotor_inertia": part.rotor_inertia * drive.ratio**2,
            "viscous": part.viscous if kind == "ideal" else None,
            "coulomb": part.coulomb if kind == "ideal" else None,
            "offset": float(sensors.current_offset[index] * drive.torque_per_current),
        }
    return table


def add_clocks(table: dict[str, dict[str, Any]], boards: Iterable[BoardEntry]) -> None:
    """Add `clock` to each joint with a board: its `offset_us` and `ppm` against the bench's time.

    The clock shows offset_us + time_us (1 + ppm / 1e6); its board counts tick n when it shows n tick periods.
    """
    for board in boards:
        table[board.joint]["clock"] = {"offset_us": board.clock.offset_us, "ppm": board.clock.drift_ppb / 1e3}
