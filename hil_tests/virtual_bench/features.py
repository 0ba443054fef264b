"""What a bench of emulated boards has, in the words in which tests ask for it (jointbench.testing)."""

from collections.abc import Iterable

from jointwire import CHANNEL_BY_NAME

_MEASURED = {  # feature: channel
    "motor": "current_command",
    "current": "motor_current",
    "link_encoder": "link_position",
    "torque_sensor": "joint_torque",
    "supply": "bus_voltage",
    "temperature": "temperature",
}
_BY_CONTROL = {"faults", "outputs", "power"}  # what a client may ask of the control socket
_ALWAYS = {"flash"}


def features_of(channels: Iterable[int], has_control: bool, has_sync: bool) -> set[str]:
    """Name what all boards of joints have, and what can be done to them.

    Args:
        channels: masks of what each joint's board measures, its register `board.channels`.
        has_control: whether there is a control socket.
        has_sync: whether pulses on the SYNC line reach all boards.
    """
    masks = list(channels)
    measured = {
        feature for feature, name in _MEASURED.items() if all(mask >> CHANNEL_BY_NAME[name].bit & 1 for mask in masks)
    }
    return measured | _ALWAYS | (_BY_CONTROL if has_control else set()) | ({"sync"} if has_sync else set())
