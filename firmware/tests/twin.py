"""The board's tick in plain Python: what jointboard/tick.py must compute, bit for bit.

Integers here are unbounded, so that wherever the board's 32 bits would overflow the two differ; only what is meant to
wrap (the motor counter, the sums inside the biquad) is wrapped by name.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from jointwire import BY_NAME, CHANNELS, MAX_BODY, Channel, State, Trip

DRIVING = (State.ARMED, State.RUNNING)
KNOT_TICKS = 32
SAMPLES_ROOM = MAX_BODY - 18  # bytes behind the head of a DATA frame


@dataclass
class Inputs:
    """One tick's sensors."""

    tick: int
    motor_count: int
    link_count: int
    current: list[int]
    torque: list[int]
    supply: int = 0
    temperature: int = 0
    forces: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass
class Twin:
    """State of a board between ticks; `register` holds raw register values by name."""

    register: dict[str, int]
    knots: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0)])
    state: int = State.DISARMED
    trip_counts: int = 32736
    timeout: int = 500
    silence: int = 0
    x: tuple[int, int] = (0, 0)
    y: tuple[int, int] = (0, 0)
    remainder: int = 0
    counter: int = 0
    position: int = 0
    velocity_q12: int = 0
    innovation: int = 0
    reference: int = 0
    reference_velocity: int = 0
    wait: int = 0
    played: int = 0
    repeats: int = 1
    play: int = -1
    trip: tuple[int, int, int] = (0, 0, 0)
    outputs: tuple[int, int] = (0, 0)
    sample: bytes | None = None

    def tick(self, inputs: Inputs) -> None:
        """One tick; what came of it: `state`, `outputs` (enable, mA), `play`, `sample` (None: none taken), `trip`."""
        raw = sum(inputs.current) - 32768
        filtered = self._filter(raw)
        velocity = self._track(inputs.motor_count)
        was_driven = self.state in DRIVING
        self.silence = min(self.silence + 1, self.timeout)
        self.play = -1
        if self.state == State.RUNNING:
            self._play()
        if self.state in DRIVING:
            trip = self._trip(raw, velocity)
            if trip:
                self.trip, self.state = trip, State.FAULT
        driven = self.state in DRIVING
        self.outputs = (int(driven), self._servo(velocity) if driven else 0)
        taken = (was_driven and self.state != State.DONE) or self.register["stream.always"]
        values = {
            "motor_current": filtered,
            "motor_position": self.position,
            "link_position": wrap(inputs.link_count - self.register["encoder.link_zero"]),
            "joint_torque": sum(inputs.torque) - 32768,
            "current_command": self.outputs[1],
            "bus_voltage": inputs.supply,
            "temperature": inputs.temperature,
            **{f"foot_force_{k + 1}": force for k, force in enumerate(inputs.forces)},
        }
        due = [c for c in self.channels() if inputs.tick % self.every(c) == 0]
        packed = b"".join(struct.pack("<" + c.format, values[c.name]) for c in due)
        self.sample = packed if taken else None

    def channels(self) -> list[Channel]:
        """Those of the mask, in the order of their bits."""
        return [c for c in CHANNELS if self.register["stream.channels"] >> c.bit & 1]

    def every(self, channel: Channel) -> int:
        """Ticks from one sample of the channel to the next."""
        return 1 << self.register[f"stream.every_{channel.kind.name.lower()}"]

    def block(self) -> int:
        """Ticks in a full DATA frame: as asked, but never more than fit one that begins at the worst tick."""
        channels = [(struct.calcsize(c.format), self.every(c)) for c in self.channels()]
        asked = range(1, self.register["stream.block"] + 1)
        return max(ticks for ticks in asked if sum(s * -(-ticks // e) for s, e in channels) <= SAMPLES_ROOM)

    def _filter(self, raw: int) -> int:
        r = self.register
        total = r["filter.b0"] * raw + r["filter.b1"] * self.x[0] + r["filter.b2"] * self.x[1]
        total -= r["filter.a1"] * self.y[0] + r["filter.a2"] * self.y[1]
        total = wrap(total + self.remainder)
        self.remainder = total % 2**14
        y = max(-32768, min(32767, total // 2**14))
        self.x, self.y = (raw, self.x[0]), (y, self.y[0])
        return y

    def _track(self, count: int) -> int:
        """Velocity, Q8."""
        moved = (count - self.counter + 2**15) % 2**16 - 2**15
        self.counter = count
        self.position = wrap(self.position + moved)
        self.innovation += 256 * moved - self.velocity_q12 // 16
        self.velocity_q12 += 2 * self.innovation
        self.innovation -= self.innovation // 2
        return self.velocity_q12 // 16

    def _play(self) -> None:
        intervals = len(self.knots) - 1
        if self.wait:
            self.wait -= 1
        elif self.played == self.repeats * intervals * KNOT_TICKS:
            self.state = State.DONE
        else:
            k, i = divmod(self.played % (intervals * KNOT_TICKS), KNOT_TICKS)
            self.reference, self.reference_velocity = hermite(self.knots[k], self.knots[k + 1], i)
            self.play = self.played
            self.played += 1

    def _trip(self, raw: int, velocity: int) -> tuple[int, int, int] | None:
        r = self.register
        current, error = abs(raw - r["current.zero"]), self.reference - self.position
        if current > self.trip_counts:
            return Trip.OVER_CURRENT, current, self.trip_counts
        if self.position > r["limit.position_max"]:
            return Trip.POSITION, self.position, r["limit.position_max"]
        if self.position < r["limit.position_min"]:
            return Trip.POSITION, self.position, r["limit.position_min"]
        if abs(velocity) > r["limit.velocity"]:
            return Trip.VELOCITY, velocity, r["limit.velocity"]
        if self.silence >= self.timeout:
            return Trip.LINK_LOSS, self.silence, self.timeout
        if abs(error) > r["limit.following"]:
            return Trip.FOLLOWING, error, r["limit.following"]
        return None

    def _servo(self, velocity: int) -> int:
        r = self.register
        damping = max(-65536, min(65536, self.reference_velocity - velocity))
        command = (self.reference - self.position) * r["servo.kp"] // 2**8 + damping * r["servo.kd"] // 2**12
        command += self.reference_velocity // 16 * r["servo.velocity_feedforward"] // 2**8
        return max(-r["limit.current"], min(r["limit.current"], command))


def hermite(start: tuple[int, int], end: tuple[int, int], i: int) -> tuple[int, int]:
    """Position [counts] and velocity [counts/tick Q8] of the board's cubic, `i` ticks after the knot `start`."""
    w, span = KNOT_TICKS - i, end[0] - start[0]
    moved = span * i * i * (48 - i) // 4 + i * w * (start[1] // 8 * w - end[1] // 8 * i) // 8
    velocity = 3 * span * i * w // 64 + (start[1] * w * (32 - 3 * i) + end[1] * i * (3 * i - 64)) // 1024
    return start[0] + (moved + 2048) // 4096, max(-(2**20), min(2**20, velocity))


def wrap(number: int) -> int:
    """The number as a 32-bit signed integer holds it."""
    return (number + 2**31) % 2**32 - 2**31


def defaults() -> dict[str, int]:
    """Every register at its default."""
    return {name: register.default for name, register in BY_NAME.items()}
