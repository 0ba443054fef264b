"""Faults of the hardware around a board, on purpose: what it senses, its clock, its line, and hands at its joints.

They act on what the bench gives a board and on the plant, never on the board: all kinds of boards meet the same. A
fault begins at the board's next tick and lasts until it is healed or its client leaves. docs/faults.md describes them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from cobs import cobs
from numpy.typing import NDArray

from hil_tests.virtual_bench.errors import ControlError
from jointbench.arrays import Array

_NODE_AT = 2  # in a frame's header


class SilentNode:
    """One way of a line without the frames of a node; what else is said passes when its delimiter has come.

    Frames to every node pass: what its neighbours hear, it hears.
    """

    def __init__(self, node: int) -> None:
        """Lose the frames to or from this node."""
        self._node = node
        self._begun = b""

    def passes(self, data: bytes) -> bytes:
        """Return what is left of the bytes that came now and before."""
        *chunks, self._begun = (self._begun + data).split(b"\0")
        return b"".join([chunk + b"\0" for chunk in chunks if _node_of(chunk) != self._node])


def _node_of(chunk: bytes) -> int | None:
    """The node that a frame names; None for what is no frame."""
    try:
        return cobs.decode(chunk)[_NODE_AT]
    except (cobs.DecodeError, IndexError):
        return None


_TOP_COUNT = 2**15 - 1  # of supply and temperature, which a sample packs into 16 bits
_ABSOLUTE_ZERO = -273.15  # [degC]


@dataclass(frozen=True)
class Value:
    """What a fault has to be told: its name with the unit, and its range, both ends included."""

    name: str
    lowest: float
    highest: float
    whole: bool = True


_CORNERS = [f"foot_force_{corner}" for corner in range(1, 5)]
_OFF_BY = Value("force_N", -1000, 1000, whole=False)
_SAMPLES = ("current", "torque")  # what the converter samples, in the order of TICK_IN's adc
_TOP_SAMPLE = 4095
_PAUSED_TICKS = 64  # from one of the pauses of `pauses` to the next
# By name; None: nothing has to be told.
FAULTS: dict[str, Value | None] = {
    "encoder_stuck": None,
    "encoder_reversed": None,
    "encoder_jump": Value("counts", -(2**15), 2**15 - 1),
    "encoder_noise": Value("counts", 1, 2**15 - 1),
    "encoder_wire_cut": None,
    "link_stuck": None,
    "link_reversed": None,
    "link_jump": Value("counts", -(2**19), 2**19),
    "link_offset": Value("counts", -(2**19), 2**19),
    "link_noise": Value("counts", 1, 2**19),
    "link_slips": Value("counts", 1, 2**19),
    "link_wire_cut": None,
    **{f"{what}_stuck": Value("sample", 0, _TOP_SAMPLE) for what in _SAMPLES},
    **{f"{what}_reversed": None for what in _SAMPLES},
    **{f"{what}_jump": Value("samples", -_TOP_SAMPLE, _TOP_SAMPLE) for what in _SAMPLES},
    **{f"{what}_offset": Value("samples", -_TOP_SAMPLE, _TOP_SAMPLE) for what in _SAMPLES},
    **{f"{what}_noise": Value("samples", 1, _TOP_SAMPLE) for what in _SAMPLES},
    "supply": Value("voltage_mV", 0, 100_000),
    "temperature": Value("temperature_degC", -50, 300, whole=False),
    "ticks_missed": Value("ticks", 1, 10_000),
    "pauses": Value("ticks", 1, _PAUSED_TICKS - 1),
    "drive_dead": None,
    "drive_runs_away": Value("current_mA", -100_000, 100_000),
    "drive_swapped": Value("other_node", 1, 254),
    "jammed": None,
    "pins_low": Value("pins", 1, 15),
    "line_silent": None,
    "motor_silent": None,
    "push": Value("torque_Nm", -1000, 1000, whole=False),
    "shove": Value("force_N", -10_000, 10_000, whole=False),
    "pull": Value("force_N", -1000, 1000, whole=False),
    **{f"{corner}_stuck": None for corner in _CORNERS},
    **{f"{corner}_dead": None for corner in _CORNERS},
    **{f"{corner}_offset": _OFF_BY for corner in _CORNERS},
}
_OF_BOARD = frozenset({"supply", "ticks_missed", "pauses", "line_silent"})  # whichever of its motors is named
_OF_ENCODER = frozenset({"encoder_stuck", "encoder_reversed", "encoder_jump"})  # those that it never gets over
_OF_DRIVE = frozenset({"drive_dead", "drive_runs_away", "drive_swapped"})
_NOT_OF_CHIPS = _OF_DRIVE | {"ticks_missed", "pauses"}
_OF_CHIPS = frozenset({"encoder_wire_cut", "link_wire_cut"})  # the other boards are told counts
_OF_SENSORS = {fault for fault in FAULTS if fault.startswith(("encoder_", "link_", *[f"{what}_" for what in _SAMPLES]))}
_OF_MOTOR = _OF_SENSORS | _OF_DRIVE | {"temperature", "supply", "pins_low", "jammed"}
_OF_FOOT = frozenset(fault for fault in FAULTS if fault.startswith("foot_force"))


@dataclass(frozen=True)
class Injection:
    """A fault for one motor, or for its board; `value` is 0 where it has none."""

    node: int
    fault: str
    value: float


def parse_injection(request: Any, nodes: Iterable[int]) -> Injection:
    """Check {"node": …, "fault": …} with the fault's own value, such as {"node": 1, "fault": "push", "torque_Nm": 50}.

    Raises:
        ControlError: board, fault or value is none of those there are; the text says which there are.
    """
    values = cast(dict[str, Any], request) if isinstance(request, dict) else {}
    node: Any = values.get("node")
    fault = values.get("fault")
    if not isinstance(node, int) or isinstance(node, bool) or node not in nodes:
        raise ControlError(f"inject: node = {node!r} is no board; this bench has {', '.join(map(str, sorted(nodes)))}")
    if not isinstance(fault, str) or fault not in FAULTS:
        raise ControlError(f"inject: fault = {fault!r} is none of {', '.join(FAULTS)}")
    wanted = FAULTS[fault]
    keys = {"node", "fault"} | ({wanted.name} if wanted else set())
    if set(values) != keys:
        raise ControlError(f"inject: {fault} takes {', '.join(sorted(keys))}; it was given {', '.join(sorted(values))}")
    value: Any = values[wanted.name] if wanted else 0
    if wanted and not _fits(value, wanted):
        what = "a whole number" if wanted.whole else "a number"
        raise ControlError(f"inject: {wanted.name} = {value!r} must be {what} from {wanted.lowest} to {wanted.highest}")
    return Injection(node, fault, float(value))


def _fits(value: Any, wanted: Value) -> bool:
    numbers = (int,) if wanted.whole else (int, float)
    return isinstance(value, numbers) and not isinstance(value, bool) and wanted.lowest <= value <= wanted.highest


@dataclass
class _Encoder:
    """A motor encoder that has been wrong: what it missed it never learns, so its count goes on from what it showed."""

    true: int
    shown: int
    edge: int

    def show(self, inputs: np.void, way: int, jump: int) -> None:
        """Replace the true count; `way` is 1, or -1 when it counts backwards, or 0 when it stands."""
        true = int(inputs["motor_count"])
        moved = (true - self.true + 2**15) % 2**16 - 2**15
        self.true, self.shown = true, (self.shown + way * moved + jump) % 2**16
        if way:
            self.edge = int(inputs["motor_edge"])
        inputs["motor_count"], inputs["motor_edge"] = self.shown, self.edge


@dataclass
class _Slip:
    """A coupling that slips: behind so many counts of its link's way the link stands for as many, and so on."""

    true: int
    shown: int
    gone: int = 0

    def show(self, count: int, turn: int, counts: int) -> int:
        """Return the count of a link that slips, of `turn` counts a turn."""
        moved = (count - self.true + turn // 2) % turn - turn // 2
        self.true, self.gone = count, self.gone + abs(moved)
        if self.gone // counts % 2 == 0:
            self.shown = (self.shown + moved) % turn
        return self.shown


class HardwareFaults:
    """The faults there are now, of all boards.

    Attributes:
        torque: what pushes at each link from outside [N·m], by joint.
        force: the same in N along the world's axes, shape (1 + n, 3), the base first; None as long as nothing ever did.
        pull: along the world's z at what each link carries last of its fixed frames [N], shape (n,); None as long as
            nothing ever did.
        struck: nodes of all motors of boards that have had a fault since the bench started: the only ones to `alter`.
    """

    def __init__(
        self,
        facts: Mapping[int, Mapping[str, int]],
        joints: Mapping[int, int],
        n_joints: int,
        pairs: Iterable[tuple[int, ...]] = (),
        chips: Iterable[int] = (),
        is_arm: bool = True,
    ) -> None:
        """Start with none.

        Args:
            facts: of each motor by node, for what a count of its converters is.
            joints: where each motor sits, by node; of a foot's board the joint that moves the foot, -1 for the base.
            n_joints: of the robot.
            pairs: nodes of the boards that have several motors.
            is_arm: whether its base stands still, so that things can be hung on it.
            chips: nodes of the boards that have a time of their own, and a bridge for a drive.
        """
        self._facts = facts
        self._chips, self._is_arm = frozenset(chips), is_arm
        self._joints = joints
        alone = [(node,) for node in facts]
        self._nodes = {node: nodes for nodes in (*alone, *pairs) for node in nodes}  # of its board
        self._silent: dict[tuple[int, str], SilentNode] = {}  # by node and way
        self._present: dict[int, dict[str, float]] = {}
        self._encoders: dict[int, _Encoder] = {}
        self._slips: dict[int, _Slip] = {}
        self._paused: dict[int, int] = {}  # ticks since the pauses of a board began
        self._altered: Counter[int] = Counter()  # ticks in which a motor's faults changed anything
        self._noise = np.random.default_rng(0)  # drawn from only where there is a noise, so that it is the same again
        self.torque: Array = np.zeros(n_joints)
        self.force: Array | None = None
        self.pull: Array | None = None
        self.struck: set[int] = set()

    def inject(self, injection: Injection) -> None:
        """Let a fault begin; one that is there already has its new value from now on.

        Raises:
            ControlError: the board has nothing that it could strike.
        """
        self._check(injection)
        nodes = self._nodes[injection.node]
        node = nodes[0] if injection.fault in _OF_BOARD else injection.node
        self._present.setdefault(node, {})[injection.fault] = injection.value
        if injection.fault == "motor_silent":
            self._silent |= {(node, way): SilentNode(node) for way in ("to", "from") if (node, way) not in self._silent}
        self.struck.update(nodes)
        self._set_pushes()

    def _check(self, injection: Injection) -> None:
        node, fault = injection.node, injection.fault
        on_foot = "force.scale" in self._facts[node]
        if fault in (_OF_MOTOR if on_foot else _OF_FOOT):
            raise ControlError(f"inject: node {node} is {'a foot' if on_foot else 'no foot'}; it cannot have {fault}")
        if node in self._chips and fault in _NOT_OF_CHIPS:
            raise ControlError(f"inject: node {node} is a chip, with its own time and voltage; it cannot have {fault}")
        if node not in self._chips and fault in _OF_CHIPS:
            raise ControlError(f"inject: node {node} is told counts, and has no wires; a chip can have {fault}")
        if fault == "drive_swapped" and int(injection.value) not in self._joints:
            raise ControlError(f"inject: other_node = {injection.value:g} is no board of this bench")
        if fault == "pull" and not self._is_arm:
            raise ControlError("inject: a pull is at an arm whose base stands still; this robot can have a shove")
        if fault == "push" and self._joints[node] < 0:
            raise ControlError(f"inject: node {node} is at the base, which no joint moves; a shove is a force")

    def heal(self, node: int) -> int:
        """End all faults of a board, whichever motor's node is named; an encoder counts on from where it is.

        Returns:
            Ticks in which they changed what a sensor says, what a drive gives, or whether there was a tick.
        """
        for each in self._nodes[node]:
            self._present.pop(each, None)
            self._slips.pop(each, None)
            self._silent = {key: silent for key, silent in self._silent.items() if key[0] != each}
        self._set_pushes()
        return sum(self._altered.pop(each, 0) for each in self._nodes[node])

    def heal_all(self) -> None:
        """End all faults of all boards."""
        for node in list(self._present):
            self.heal(node)

    def missing(self, nodes: Iterable[int]) -> set[int]:
        """Which of the boards that tick now get no tick; each has one fewer to miss afterwards."""
        if not self._present:
            return set()
        missing = {node for node in nodes if node in self._present and self._misses(node, self._present[node])}
        self._altered.update(missing)
        return missing

    def passes(self, node: int, received: bytes) -> bytes:
        """What a board's line brings it of the bytes that should come."""
        if not received or not self._present:
            return received
        if "line_silent" in self._present.get(node, ()):
            return b""
        return self._without_silent(node, "to", received)

    def says(self, node: int, sent: bytes) -> bytes:
        """What the line takes of the bytes that a board sends."""
        return sent if not self._silent else self._without_silent(node, "from", sent)

    def _without_silent(self, node: int, way: str, data: bytes) -> bytes:
        for each in self._nodes[node] if self._silent else ():
            if (each, way) in self._silent:
                data = self._silent[each, way].passes(data)
        return data

    def alter(self, node: int, inputs: np.void, before: np.void) -> None:
        """Put what the board's sensors say with its faults into its TICK_IN; `before` is that of its last tick."""
        present, true = any(self._present.get(each) for each in self._nodes[node]), inputs.tobytes()
        self._put_faults(node, inputs, before)
        if present and inputs.tobytes() != true:
            self._altered[node] += 1

    def _put_faults(self, node: int, inputs: np.void, before: np.void) -> None:
        faults = self._present.get(node, {})
        if node in self._encoders or _OF_ENCODER & faults.keys():
            count = int(before["motor_count"])
            encoder = self._encoders.setdefault(node, _Encoder(count, count, int(before["motor_edge"])))
            way = 0 if "encoder_stuck" in faults else -1 if "encoder_reversed" in faults else 1
            encoder.show(inputs, way, int(faults.pop("encoder_jump", 0)))
        facts = self._facts[node]
        if noise := int(faults.get("encoder_noise", 0)):
            inputs["motor_count"] = (int(inputs["motor_count"]) + self._noise.integers(-noise, noise + 1)) % 2**16
        if any(fault.startswith("link_") for fault in faults):
            count = self._link_count(int(inputs["link_count"]), int(before["link_count"]), faults)
            if "link_slips" in faults:
                slip = self._slips.setdefault(node, _Slip(count, count))
                count = slip.show(count, facts["encoder.link_counts"], int(faults["link_slips"]))
            inputs["link_count"] = count % facts["encoder.link_counts"]
        for samples, what in zip(inputs["adc"], _SAMPLES, strict=True):
            self._alter_samples(samples, what, faults)
        if "force.scale" in facts:
            _alter_forces(inputs["foot_force"], before["foot_force"], faults, facts["force.scale"])
        supply = self._present.get(self._nodes[node][0], {}).get("supply")
        if supply is not None:
            inputs["bus_voltage"] = min(round(1e3 * supply / facts["voltage.scale"]), _TOP_COUNT)
        inputs["pins"] = int(faults.get("pins_low", 0))
        if "temperature" in faults:
            kelvin = faults["temperature"] - _ABSOLUTE_ZERO
            count = facts["temperature.zero"] + round(1e6 * kelvin / facts["temperature.scale"])
            inputs["temperature"] = min(count, _TOP_COUNT)

    def has_wire_cut(self, node: int, encoder: str) -> bool:
        """Whether in this tick a wire of this encoder is cut off."""
        is_cut = f"{encoder}_wire_cut" in self._present.get(node, ())
        self._altered[node] += is_cut
        return is_cut

    def misdrive(self, enabled: NDArray[np.bool_], current: Array) -> None:
        """Put what broken drives give their motors into the currents [A] that their boards ask for.

        All obey `enabled`, as a power stage without power does. Where two motors' cables have changed places, `enabled`
        does with them.
        """
        for node, faults in self._present.items():
            joint = self._joints[node]
            asked = current[joint]
            if "drive_dead" in faults:
                current[joint] = 0.0
            elif "drive_runs_away" in faults and enabled[joint]:
                current[joint] = 1e-3 * faults["drive_runs_away"]
            self._altered[node] += int(current[joint] != asked)
        for node, pair in self._swapped():
            self._altered[node] += int(enabled[pair].any())
            enabled[pair], current[pair] = enabled[pair[::-1]], current[pair[::-1]]

    def currents_of_boards(self, adc: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Samples of the converters, by joint; a board measures the current that its own power stage gives."""
        for _, pair in self._swapped():
            adc = adc.copy()
            adc[pair, 0] = adc[pair[::-1], 0]
        return adc

    def _swapped(self) -> list[tuple[int, list[int]]]:
        """Nodes whose motor's cable has changed places with another's, and the joints of both."""
        return [
            (node, [self._joints[node], self._joints[int(faults["drive_swapped"])]])
            for node, faults in self._present.items()
            if "drive_swapped" in faults
        ]

    def jam(self, held: NDArray[np.bool_] | None, enabled: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Which joints are held where they are, those that are jammed among them; None for those without power."""
        jammed = [node for node, faults in self._present.items() if "jammed" in faults]
        if not jammed:
            return held
        held = ~enabled if held is None else held
        for node in jammed:
            self._altered[node] += int(enabled[self._joints[node]])
            held[self._joints[node]] = True
        return held

    def _link_count(self, count: int, before: int, faults: dict[str, float]) -> int:
        """What the link encoder shows; it is absolute, so that it is right again as soon as it is healed."""
        if "link_stuck" in faults:
            return before
        count = -count if "link_reversed" in faults else count
        noise = int(faults.get("link_noise", 0))
        noise = int(self._noise.integers(-noise, noise + 1)) if noise else 0
        return count + int(faults.get("link_offset", 0)) + int(faults.pop("link_jump", 0)) + noise

    def _alter_samples(self, samples: NDArray[np.uint16], what: str, faults: dict[str, float]) -> None:
        """Put what a tick's samples say with their faults in their place; the converter ends at its rails."""
        if not any(fault.startswith(f"{what}_") for fault in faults):
            return
        if (stuck := faults.get(f"{what}_stuck")) is not None:
            samples[:] = int(stuck)
            return
        shown = samples.astype(np.int64)
        if f"{what}_reversed" in faults:
            shown = _TOP_SAMPLE + 1 - shown
        shown += int(faults.get(f"{what}_offset", 0)) + int(faults.pop(f"{what}_jump", 0))
        if noise := int(faults.get(f"{what}_noise", 0)):
            shown += self._noise.integers(-noise, noise + 1)  # of the wiring, alike in all samples of a tick
        samples[:] = np.clip(shown, 0, _TOP_SAMPLE)

    def _misses(self, node: int, faults: dict[str, float]) -> bool:
        if "pauses" in faults:
            tick = self._paused.get(node, -1) + 1
            self._paused[node] = tick
            return tick % _PAUSED_TICKS < faults["pauses"]
        self._paused.pop(node, None)
        left = faults.pop("ticks_missed", 0)
        if left > 1:
            faults["ticks_missed"] = left - 1
        return left > 0

    def _set_pushes(self) -> None:
        """Add up what pushes at each link; a foot's board and that of its joint are at the same one."""
        self.torque[:] = 0.0
        if self.force is not None:
            self.force[:] = 0.0
        if self.pull is not None:
            self.pull[:] = 0.0
        for node, faults in self._present.items():
            joint = self._joints[node]
            if "push" in faults:
                self.torque[joint] += faults["push"]
            if "shove" in faults:
                self.force = np.zeros((1 + len(self.torque), 3)) if self.force is None else self.force
                self.force[joint + 1, 1] += faults["shove"]
            if "pull" in faults:
                self.pull = np.zeros(len(self.torque)) if self.pull is None else self.pull
                self.pull[joint] += faults["pull"]


def _alter_forces(
    forces: NDArray[np.int32], before: NDArray[np.int32], faults: Mapping[str, float], scale: int
) -> None:
    """Put what a foot's corners say with their faults into their counts; a dead one reads its converter's middle."""
    for k, corner in enumerate(_CORNERS):
        if f"{corner}_stuck" in faults:
            forces[k] = before[k]
        elif f"{corner}_dead" in faults:
            forces[k] = 0
        elif offset := faults.get(f"{corner}_offset"):
            count = int(forces[k]) + round(1e6 * offset / scale)
            forces[k] = max(-_TOP_COUNT, min(count, _TOP_COUNT))
