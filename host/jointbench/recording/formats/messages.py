"""The messages of a run in MCAP: ROS 2's own, and two that are defined in the file itself.

Definitions travel with the data, so Foxglove and PlotJuggler read both kinds without a plugin.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jointbench.recording.formats.columns import QUANTITIES

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

JOINT_STATE = "sensor_msgs/msg/JointState"
LOG = "rcl_interfaces/msg/Log"
STRING = "std_msgs/msg/String"
JOINT = "jointbench_msgs/msg/JointSample"
FOOT = "jointbench_msgs/msg/FootForces"

CORNER_FIELDS = ("front_left", "front_right", "rear_right", "rear_left")

_FIELDS: dict[str, dict[str, str]] = {
    JOINT: {"time": "float64", **dict.fromkeys(QUANTITIES, "float64"), "play_tick": "int64", "valid": "bool"},
    FOOT: dict.fromkeys(CORNER_FIELDS, "float64"),
}
_COMMENTS = {
    JOINT: "A sample of one joint, SI; NaN: not measured; valid is false where the sample is missing; play_tick -1: "
    "nothing plays",
    FOOT: "Forces at the corners of a foot [N]; NaN: not measured",
}
_CDR = np.frombuffer(b"\0\1\0\0", "V4")[0]
"""Stands before a message: little-endian."""


@cache
def message_types() -> Typestore:
    """Every type of message that is written, and what makes bytes of them."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    for kind, fields in _FIELDS.items():
        lines = [
            f"# {_COMMENTS[kind]}",
            "builtin_interfaces/Time stamp",
            *(f"{of} {name}" for name, of in fields.items()),
        ]
        store.register(get_types_from_msg("\n".join(lines), kind))
    return store


def definition(name: str) -> bytes:
    """The text that tells a reader what such a message holds."""
    return message_types().generate_msgdef(name, ros_version=2)[0].encode()


def packed(kind: str, /, **values: Any) -> bytes:
    """A message as bytes (CDR)."""
    store = message_types()
    return bytes(store.serialize_cdr(store.types[kind](**values), kind))


def records(kind: str, times_ns: NDArray[np.int64]) -> NDArray[np.void]:
    """Messages of one of our own kinds, stamped, their other fields still to be filled in: each one's bytes are CDR.

    All fields have one size and lie where they are aligned, so that an array of them needs no serialiser.
    """
    messages = np.zeros(len(times_ns), record_type(kind))
    messages["cdr"] = _CDR
    messages["sec"], messages["nanosec"] = np.divmod(times_ns, 1_000_000_000)
    return messages


@cache
def record_type(kind: str) -> np.dtype[np.void]:
    """Layout of a message of one of our own kinds."""
    head = [("cdr", "V4"), ("sec", "<i4"), ("nanosec", "<u4")]
    return np.dtype(head + [(name, np.dtype(of).newbyteorder("<")) for name, of in _FIELDS[kind].items()])


def stamp(time_ns: int) -> Any:
    """A moment as ROS 2 writes it."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return message_types().types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=rest)


def header(time_ns: int) -> Any:
    """A header with a moment and no frame."""
    return message_types().types["std_msgs/msg/Header"](stamp=stamp(time_ns), frame_id="")
