"""A bench live in the Foxglove app: joint states, poses of the links, a model's torque, what boards say, and a stop."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import foxglove
import numpy as np
from foxglove.channels import FrameTransformsChannel, JointStatesChannel, LogChannel
from foxglove.messages import (
    FrameTransform,
    FrameTransforms,
    JointState,
    JointStates,
    Log,
    LogLevel,
    Quaternion,
    Timestamp,
    Vector3,
)
from foxglove.websocket import Capability, Service, ServiceRequest, ServiceSchema
from scipy.spatial.transform import Rotation

from jointbench.arrays import Array
from jointbench.bench import read_bench_file
from jointbench.bench.monitor.attachment import Attachment
from jointbench.errors import FeedError
from jointbench.identification import Model
from jointbench.identification.prove import check_same_robot
from jointbench.model import Robot, forward_kinematics, load_robot

HOST = "127.0.0.1"
JOINT_STATES, MODEL_TORQUE, TRANSFORMS, BOARDS, LOG, STOP = (
    "/joint_states", "/model_torque", "/tf", "/boards", "/log", "/stop",
)  # fmt: skip
_BASE = "base"  # frame of the robot's base
_NUMBER = {"type": ["number", "null"]}
_TEXT = {"type": ["string", "null"]}
_BOARD_FIELDS = {
    "joint": _TEXT, "state": _TEXT, "fault": _TEXT, "position_rad": _NUMBER, "velocity_rad_s": _NUMBER,
    "torque_Nm": _NUMBER, "current_A": _NUMBER, "temperature_C": _NUMBER, "voltage_V": _NUMBER, "samples": _NUMBER,
    "samples_lost": _NUMBER, "frames_bad": _NUMBER, "clock_offset_us": _NUMBER, "clock_drift_ppm": _NUMBER,
    "age_s": _NUMBER, "force_N": {"type": ["array", "null"], "items": {"type": "number"}},
}  # fmt: skip
_BOARDS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "jointbench.Boards",
    "properties": {
        "time_us": {"type": "integer"},
        "doing": {"type": "string"},
        "elapsed_s": {"type": "number"},
        "duration_s": {"type": "number"},
        "boards": {"type": "array", "items": {"type": "object", "properties": _BOARD_FIELDS}},
    },
}


class Bridge:
    """A server of the Foxglove WebSocket protocol for one bench, which it only watches: it moves nothing.

    Attributes:
        states: that were sent so far.
        stops: that were asked for.
    """

    def __init__(self, bench: str | Path, model: Model | None = None, port: int = 8765) -> None:
        """Serve; the bench is attached to, or held while nobody else has it, as by the live page.

        Args:
            bench: a bench file.
            model: whose torque at each state is sent beside the measured one.
            port: of this machine's own address; 0: any free one.

        Raises:
            FileError: the bench file is wrong.
            FitError: the model is of another robot.
            FeedError: the port cannot be had.
        """
        file = read_bench_file(bench)
        self._robot, self._model = load_robot(file.robot), model
        if model is not None:
            check_same_robot(model, self._robot)
        self.states: int = 0
        self.stops: int = 0
        self._state_before: dict[str, str] = {}
        self._motion_before: tuple[float, Array] | None = None
        self._context = context = foxglove.Context()  # its channels close when it is gone
        self._joint_states = JointStatesChannel(JOINT_STATES, context=context)
        self._model_torque = None if model is None else JointStatesChannel(MODEL_TORQUE, context=context)
        self._transforms = None
        if self._robot.base_link is None:  # where a base that is free to move stands, no board knows
            self._transforms = FrameTransformsChannel(TRANSFORMS, context=context)
        self._boards = foxglove.Channel(BOARDS, schema=_BOARDS_SCHEMA, context=context)
        self._log = LogChannel(LOG, context=context)
        stop = Service(STOP, schema=ServiceSchema("jointbench.Stop", request=None, response=None), handler=self._stop)
        try:
            self._server = foxglove.start_server(
                name=f"Jointbench, {file.name}", host=HOST, port=port, context=context,
                capabilities=[Capability.Services], services=[stop], supported_encodings=["json"],
            )  # fmt: skip
        except (RuntimeError, OverflowError) as error:  # it is taken, or no port
            raise FeedError(
                f"port {port} of {HOST} cannot be served ({error}); give another with --port, 0 for any free one"
            ) from error
        self._attachment = Attachment(Path(bench), self._tell)

    @property
    def url(self) -> str:
        """Address to open in the app as "Foxglove WebSocket"."""
        return f"ws://{HOST}:{self._server.port}"

    def __enter__(self) -> Bridge:
        """Return the bridge."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the bench, and end the server."""
        self._attachment.close()
        self._server.stop()

    def _stop(self, request: ServiceRequest) -> bytes:
        self.stops += 1
        if self._attachment.ask("stop"):
            return json.dumps({"asked": True}).encode()
        raise FeedError("nobody holds the bench now, so there is nobody to stop it; cut the power")

    def _tell(self, line: dict[str, Any]) -> None:
        """Send on a line of the feed; called in the reader's thread."""
        match line["kind"]:
            case "state":
                self._send_state(line)
            case "link" if not line["up"]:
                self._say(LogLevel.Warning, f"the bench is not watched: {line['why']}")
            case "error":
                self._say(LogLevel.Error, line["why"])
            case "stopped" if line["ok"]:
                self._say(LogLevel.Warning, "stopped: all motors are off")
            case "stopped":
                joints = ", ".join(line["unconfirmed"])
                self._say(LogLevel.Fatal, f"stop was not confirmed by {joints}: cut the power")
            case _:
                pass

    def _send_state(self, line: dict[str, Any]) -> None:
        now_ns = time.time_ns()
        boards = line["boards"]
        self._boards.log({key: line[key] for key in _BOARDS_SCHEMA["properties"]}, log_time=now_ns)
        for board in boards:
            self._say_changes(board)
        joints = [board for board in boards if board["joint"] in self._robot.joint_names]
        stamp = Timestamp(sec=now_ns // 10**9, nsec=now_ns % 10**9)
        states = [
            JointState(
                name=board["joint"],
                position=board["position_rad"],
                velocity=board["velocity_rad_s"],
                effort=board["torque_Nm"],
            )
            for board in joints
        ]
        self._joint_states.log(JointStates(timestamp=stamp, joints=states), log_time=now_ns)
        motion = _motion(self._robot, joints)
        if motion is not None:
            self._send_motion(line["time_us"] * 1e-6, *motion, stamp, now_ns)
        self.states += 1

    def _send_motion(self, at_s: float, q: Array, dq: Array, stamp: Timestamp, now_ns: int) -> None:
        """Poses, and the model's torque with the acceleration between the state before and this one."""
        if self._transforms is not None:
            self._transforms.log(poses(self._robot, q, stamp), log_time=now_ns)
        before, self._motion_before = self._motion_before, (at_s, dq)
        if self._model is None or self._model_torque is None or before is None or at_s <= before[0]:
            return
        torque = self._model.predict(q[None], dq[None], (dq - before[1])[None] / (at_s - before[0]))[0]
        states = [
            JointState(name=name, effort=float(t)) for name, t in zip(self._robot.joint_names, torque, strict=True)
        ]
        self._model_torque.log(JointStates(timestamp=stamp, joints=states), log_time=now_ns)

    def _say_changes(self, board: dict[str, Any]) -> None:
        """Log a board that trips, is lost, or is there again."""
        joint, state = board["joint"], board["state"]
        before = self._state_before.get(joint)
        self._state_before[joint] = state
        if before in (None, state):
            return
        is_bad = state in ("FAULT", "LOST")
        words = f"{joint}: {before} → {state}" + (f", {board['fault']}" if board["fault"] else "")
        self._say(LogLevel.Error if is_bad else LogLevel.Info, words)

    def _say(self, level: LogLevel, words: str) -> None:
        now_ns = time.time_ns()
        stamp = Timestamp(sec=now_ns // 10**9, nsec=now_ns % 10**9)
        self._log.log(Log(timestamp=stamp, level=level, name="jointbench", message=words), log_time=now_ns)


def poses(robot: Robot, q: Array, stamp: Timestamp) -> FrameTransforms:
    """Return the pose of every link in the base's frame.

    Args:
        robot: the kinematic tree.
        q: joint position [rad; m for prismatic joints], shape (n_joints,).
        stamp: its time.
    """
    rotations, origins = forward_kinematics(robot, q[None])
    quaternions = Rotation.from_matrix(rotations[0]).as_quat()
    return FrameTransforms(
        transforms=[
            FrameTransform(
                timestamp=stamp,
                parent_frame_id=_BASE,
                child_frame_id=joint.link.name,
                translation=Vector3(x=origin[0], y=origin[1], z=origin[2]),
                rotation=Quaternion(x=quaternion[0], y=quaternion[1], z=quaternion[2], w=quaternion[3]),
            )
            for joint, origin, quaternion in zip(robot.joints, origins[0], quaternions, strict=True)
        ]
    )


def _motion(robot: Robot, joints: list[dict[str, Any]]) -> tuple[Array, Array] | None:
    """Position and velocity of all joints; None while any of them is unknown."""
    by_name = {board["joint"]: board for board in joints}
    rows = [
        [by_name.get(name, {}).get(quantity) for name in robot.joint_names]
        for quantity in ("position_rad", "velocity_rad_s")
    ]
    if any(value is None for row in rows for value in row):
        return None
    return np.array(rows[0]), np.array(rows[1])
