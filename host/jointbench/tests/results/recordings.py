"""Recordings of robots as rigid links with friction and noise, and what `write_report` takes.

Robots to export, and what Pinocchio and MuJoCo make of the files.
"""

import dataclasses
import importlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.bench import BoardLedger, Ledger
from jointbench.excitation import Excitation, random_excitation
from jointbench.identification import Model, Validation, fit, validate
from jointbench.identification.feedforward import planned_torque
from jointbench.identification.proof import Control, HeavierLink, PredictedShare, Proof, Tracking
from jointbench.model import Link, Robot, compensation_parameter_names, drive_parameter_names, load_robot, model_columns
from jointbench.model.joint import as_matrix
from jointbench.recording import Run, Samples
from jointbench.results import FullModel
from jointbench.results.evidence import Evidence
from jointbench.tests.model.test_urdf import TREE

PERIOD_S, SAMPLE_PERIOD_S = 10.0, 0.005


@dataclass(frozen=True)
class Example:
    """What `write_report` takes."""

    model: Model
    fit_run: Run
    validation: Validation
    verification_run: Run


def judged_example(robot: Robot) -> Example:
    """A model of a robot, fitted to one recording and judged by another."""
    fit_run = recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=1), 11, "fit")
    verification_run = recorded_run(robot, random_excitation(robot, period=PERIOD_S, seed=2), 12, "verification")
    model = fit(fit_run)
    return Example(model, fit_run, validate(model, verification_run), verification_run)


def proof_of(example: Example) -> Proof:
    """A proof of an example's model, whose feed-forward is 97 % of the torque and leaves a twentieth of the error."""
    model, motion = example.model, example.verification_run.excitation
    assert motion is not None
    time = np.arange(0.3, motion.period, 1e-3)
    torque = planned_torque(model, motion, time)
    names, n = model.robot.joint_names, model.robot.n_joints

    def played(error: float, share: float) -> Tracking:
        return Tracking(np.full_like(torque, error), None, None, time, torque, share * torque, 1e-3)

    controls = Control("torque × 0.8", played(4e-4, 0.8)), Control(f"sign of {names[-1]}", None, "j2: FOLLOWING <1>")
    return Proof(
        joint_names=names,
        modelled=np.ones(n, dtype=np.bool_),
        without=(played(2e-3, 0.0),),
        fed=(played(1e-4, 0.97),),
        half=played(1e-3, 0.5),
        predicted=PredictedShare(np.full(n, 0.03), np.full(n, 0.01), np.full(n, 0.05)),
        moving_error=np.full(n, 0.02),
        distance=0.5,
        controls=controls,
        heavier=HeavierLink("link 2", 1, played(2e-4, 0.88)),
    )


def evidence_of(example: Example, **changes: Any) -> Evidence:
    """What a report on an example rests on, some of it changed."""
    example = dataclasses.replace(example, **changes)
    runs = example.fit_run, example.validation, example.verification_run
    return Evidence(example.model, *runs, example.fit_run.excitation)


def recorded_run(robot: Robot, plan: Excitation, seed: int, name: str) -> Run:
    """One period of a plan as rigid links with friction would answer it, with noise of 1 % of the largest torque."""
    time = SAMPLE_PERIOD_S * np.arange(round(PERIOD_S / SAMPLE_PERIOD_S), dtype=np.float64)
    columns, _ = model_columns(robot, *plan.evaluate(time))
    drives = np.tile([1.2, 8.0, 5.0, 0.3], robot.n_joints)
    assert robot.standard_parameters is not None
    torque = (columns @ np.concatenate([robot.standard_parameters, drives])).reshape(-1, robot.n_joints)
    noise = np.random.default_rng(seed).standard_normal(torque.shape)
    samples = Samples(
        time=time, joint_names=robot.joint_names, motor_position=plan.evaluate(time)[0], link_position=None,
        motor_current=None, motor_torque=torque + 0.01 * np.abs(torque).max(axis=0) * noise, joint_torque=None,
        play_tick=np.arange(time.size), valid=np.ones(torque.shape, dtype=np.bool_), board_filters=None,
        sample_period=SAMPLE_PERIOD_S,
    )  # fmt: skip
    boards = [
        {"node": node, "joint": joint, "uid": f"{node:016x}", "firmware": "1.0.0"}
        for node, joint in enumerate(robot.joint_names, start=1)
    ]
    return Run(
        path=Path("runs") / name, robot=robot, samples=samples, ledger=whole_ledger(robot, time.size), excitation=plan,
        repeats=1, provenance={"version": 1, "robot": robot.name, "seed": seed, "clock": "virtual", "board": boards},
        sha256=f"{seed:064x}", warnings=(),
    )  # fmt: skip


def whole_ledger(robot: Robot, samples: int, lost: int = 0) -> Ledger:
    """A ledger that closes, with this many samples of the first board lost on the link."""
    boards = tuple(
        BoardLedger(
            node=node, joint=joint, frames_sent=samples // 50, frames_received=samples // 50 - (node == 1 and lost > 0),
            frames_damaged=0, frames_vanished=int(node == 1 and lost > 0), samples_taken=samples,
            samples_received=samples - (lost if node == 1 else 0), crc_lost=0, link_lost=lost if node == 1 else 0,
            board_dropped=0, ticks_missed=0,
        )
        for node, joint in enumerate(robot.joint_names, start=1)
    )  # fmt: skip
    return Ledger(boards)


# They have no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")
mujoco: Any = importlib.import_module("mujoco")

# All digits are written; what the programs make of them is rounded in some hundred operations. The requirement.
AGREE = 1e-9

ROBOTS = ("cobot6", "nursing_arm", "rehab_arm", "gorobot2", "tree")


def robot_of(name: str) -> Robot:
    """One of the library; "tree" has welded links, slides, a mimic and axes in any direction."""
    if name != "tree":
        return load_robot(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.urdf"
        path.write_text(TREE, encoding="utf-8")
        return load_robot(path)


def full_model(name: str, seed: int = 1) -> FullModel:
    """One of the robots with other bodies than in its file, all possible, and random drives and springs."""
    return with_other_bodies(robot_of(name), seed)


def with_other_bodies(robot: Robot, seed: int = 1) -> FullModel:
    rng = np.random.default_rng(seed)
    joints = tuple(
        dataclasses.replace(joint, link=_other_body(joint.link.name, rng)) if joint.link.modelled else joint
        for joint in robot.joints
    )
    changed = dataclasses.replace(robot, joints=joints)
    assert changed.standard_parameters is not None
    drives, springs = _drives(robot, rng), rng.uniform(-9.0, 9.0, len(compensation_parameter_names(robot)))
    return FullModel(robot, changed.standard_parameters, drives, compensation_parameters=springs)


def _other_body(name: str, rng: np.random.Generator) -> Link:
    spread = rng.normal(size=(3, 3))
    moments = 0.01 * (spread @ spread.T + 0.1 * np.eye(3))
    inertia = as_matrix(np.trace(moments) * np.eye(3) - moments)
    x, y, z = rng.uniform(-0.2, 0.2, 3).tolist()
    return Link(name, float(rng.uniform(0.5, 5.0)), (x, y, z), inertia)


def _drives(robot: Robot, rng: np.random.Generator) -> Array:
    """Of joints more than of motors that they share, as it must be: these are parts of those."""
    names = drive_parameter_names(robot)
    own = [name.rpartition(".")[0] in robot.joint_names for name in names]
    return np.where(own, rng.uniform(3.0, 4.0, len(names)), rng.uniform(0.1, 0.4, len(names)))


def rates(robot: Robot) -> Array:
    """Positions of all joints by those of the independent ones."""
    index, factor, _ = robot.coordinates
    return factor[:, None] * np.eye(robot.n_joints)[index]


def motion(robot: Robot, samples: int = 6, seed: int = 2) -> tuple[Array, Array, Array]:
    q, dq, ddq = np.random.default_rng(seed).uniform(-1.5, 1.5, (3, samples, robot.n_joints))
    return q, dq, ddq


def pinocchio_torques(text: str, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Inverse dynamics of a URDF, joints found by name."""
    model = pinocchio.buildModelFromXML(text.replace("<mimic", "<was_mimic"))
    model.gravity.linear = np.array(robot.gravity)
    data, across = model.createData(), rates(robot)
    found = [model.joints[model.getJointId(joint.name)] for joint in robot.joints]
    torques: list[Array] = []
    for at, speed, speedup in zip(robot.all_positions(q), dq @ across.T, ddq @ across.T, strict=True):
        there, moving, faster = pinocchio.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for i, joint in enumerate(found):
            there[joint.idx_q : joint.idx_q + joint.nq] = at[i] if joint.nq == 1 else [np.cos(at[i]), np.sin(at[i])]
            moving[joint.idx_v], faster[joint.idx_v] = speed[i], speedup[i]
        effort = pinocchio.rnea(model, data, there, moving, faster)
        torques.append(effort[[joint.idx_v for joint in found]] @ across)
    return np.array(torques)


def smooth_mujoco(text: str) -> Any:
    """A MuJoCo model without constraints: Coulomb friction, limits and joints that follow are such."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def mujoco_torques(model: Any, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Inverse dynamics of a base at rest, joints found by name."""
    model.opt.gravity = robot.gravity
    data, across = mujoco.MjData(model), rates(robot)
    ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name) for joint in robot.joints]
    places, rows = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
    torques: list[Array] = []
    for at, speed, speedup in zip(robot.all_positions(q), dq @ across.T, ddq @ across.T, strict=True):
        data.qpos[places], data.qvel[rows], data.qacc[rows] = at, speed, speedup
        mujoco.mj_inverse(model, data)
        torques.append(data.qfrc_inverse[rows] @ across)
    return np.array(torques)


def assert_same(found: Array, expected: Array) -> None:
    """To AGREE of the largest."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREE * float(np.abs(expected).max()))
