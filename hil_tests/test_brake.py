"""A loaded joint and its holding brake: the motor holds until the brake does, so the joint does not sag when it ends.

The plant's brake takes as long as config.json says, and gives way like a spring: by the load over its stiffness.
"""

import json
import math
from pathlib import Path

import pytest

from hil_tests.pendulum import COBOT6_PLANT
from hil_tests.safety_rig import SafetyRig, stream
from hil_tests.test_rp2040_board import StartChip
from hil_tests.test_rp2040_board import start_chip as start_chip  # a fixture
from hil_tests.virtual_bench import virtual_bench
from hil_tests.virtual_bench.plant_file import read_plant_file
from jointbench.model import load_robot
from jointbench.testing.requirements import Measured
from jointwire import State

ENGAGE, RELEASE = 40, 30  # ms
HELD, OPEN = 1, 3  # outputs: power; and the brake opened
LOAD = 60.0  # N·m at the joint

BRAKE = {"engage_ms": ENGAGE, "release_ms": RELEASE}


def give(load: float) -> float:
    """By how much the first joint's brake gives way under a load [motor counts]."""
    robot = load_robot("cobot6")
    plant = read_plant_file(COBOT6_PLANT, robot)
    ratio = abs(robot.drives[0].ratio)
    stiffness = plant.joints[0].rotor_inertia * ratio**2 * plant.brake_frequency**2
    return load / stiffness * ratio * 4096 / (2 * math.pi)


def test_the_give_of_the_brake_is_small() -> None:
    """So that the others say something: a hundredth of a turn of the motor."""
    assert 10 < give(LOAD) < 41


def test_a_loaded_joint_does_not_sag_at_a_halt_and_falls_at_a_cut(tmp_path: Path, measured: Measured) -> None:
    path = tmp_path / "bench.toml"
    path.write_text(
        f'version = 1\nname = "brake"\nrobot = "cobot6"\nplant = {json.dumps(str(COBOT6_PLANT))}\n[[board]]\nnode = 1\n'
        f'joint = "j1"\nurl = "unix:"\nbrake_ms = [{ENGAGE}, {RELEASE}]\n',
        encoding="utf-8",
    )
    sagged: dict[str, int] = {}
    with virtual_bench(path, seed=4, out=tmp_path / "sim") as live, SafetyRig(live) as rig:
        for end in ("halt", "stop"):
            rig.heal()
            rig.prepare({"following": 60000, "current": 8000})
            rig.arm()
            rig.run(150)
            rig.inject("push", torque_Nm=LOAD)
            rig.data.clear()
            rig.run(300)
            rig.outputs()
            before = stream(rig.data, "motor_position")[-130:]
            rig.board.halt() if end == "halt" else rig.board.stop()
            rig.data.clear()
            rig.run(300)
            told = [enable for enable, _ in rig.outputs().values()]
            assert set(told) == ({OPEN, HELD, 0} if end == "halt" else {0})
            if end == "halt":
                assert told.count(HELD) > ENGAGE
                assert sorted(told, reverse=True) == told
                assert rig.board.state is State.LOADED
            sagged[end] = sag_of(before, stream(rig.data, "motor_position"))
    assert sagged["stop"] > 1000  # what falls meanwhile
    measured("safety.brake_sag", sagged["halt"] - give(LOAD))


def sag_of(before: list[int], after: list[int]) -> int:
    """By how much a joint left the band [counts] in which its servo held it."""
    return max(max(after) - max(before), min(before) - min(after), 0)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 0])
def test_a_hung_program_lets_the_brake_engage_with_the_power(start_chip: StartChip, level: int) -> None:
    chip = start_chip(
        f"""
from drivers.rp2_heartbeat import Heartbeat, brake_machine
enable = Heartbeat(22, 1, 1000)
brake = Heartbeat(9, 1, 1000, brake_machine({{}}), {level})
say("begin")
for _ in range(20):
    enable.value(1)
    brake.value(1)
    time.sleep_ms(1)
machine.disable_irq()
while True:
    pass
""",
        {"pins": {"enable": 22, "sync": 14, "brake": 9}, "brake": {**BRAKE, "open_level": level}},
        drivers=("rp2_heartbeat", "rp2_chip", "errors"),
    )
    chip.until("begin")
    chip.run(10)
    assert chip.brake_changes[-1][1]
    chip.run(40)
    (off, powered), (closed, opened) = chip.changes[-1], chip.brake_changes[-1]
    assert not powered
    assert not opened
    assert abs(closed - off) < 100_000  # ns
