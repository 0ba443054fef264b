"""The board's tick in plain Python: what jointboard/tick.py must compute, bit for bit.

Integers here are unbounded, so that wherever the board's 32 bits would overflow the two differ; only what is meant to
wrap (counters, positions, times, the sums inside the biquads) is wrapped by name.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from jointwire import BY_NAME, CHANNELS, MAX_BODY, Channel, State, Trip

DRIVING = (State.ARMED, State.RUNNING)
KNOT_TICKS = 32
SAMPLES_ROOM = MAX_BODY - 20  # bytes behind the head of a DATA frame


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
    motor_edge: int = 0
    pins: int = 0


@dataclass
class Bounds:
    """What the board derives from registers and hard facts (jointboard/bounds.py), in the units the tick compares."""

    trip_counts: int = 32736
    jump: int = 32767
    fastest: int = 2**20
    clamp: int = 32000
    stuck_current: int = 32000
    stuck_ticks: int = 200
    timeout: int = 500
    supply: tuple[int, int] = (-(2**31) + 1, 2**31 - 1)
    hottest: int = 2**31 - 1
    hard_counts: int = 32736
    heat_rate: int = 210
    heat_limit: int = 2**30
    twist: int = 2**31 - 1
    ratio: tuple[int, int] = (0, 0)  # motor counts of a count of the link encoder: whole ones, 2^18 of the rest


@dataclass
class Signal:
    """Decimator and filter of motor current or joint torque: nodes are inputs, middles and outputs, newest first."""

    weighted: int = 0
    rest: int = 0
    nodes: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0), (0, 0)])
    errors: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0)])  # of each section's rounding

    def decimate(self, samples: list[int], order: int) -> int:
        """The tick's sample, centred: the sum of the block, or a triangle over it and the one before."""
        if order == 1:
            return sum(samples) - 2**15
        weighted = sum(i * s for i, s in enumerate(samples, 1))
        total = self.weighted + 16 * sum(samples) - weighted - 256 * 2**11 + self.rest
        self.weighted, self.rest = weighted, total % 16
        return total // 16

    def filter(self, value: int, sections: Sequence[Sequence[int]]) -> int:
        """Through both biquads, coefficients Q27; the error of each rounding takes part in the recursion."""
        for k, (b0, b1, b2, a1, a2) in enumerate(sections):
            (x1, x2), (y1, y2) = self.nodes[k : k + 2]
            terms = ((b0, value), (b1, x1), (b2, x2), (-a1, y1), (-a2, y2))
            signs = (1, 1, 1, -1, -1)
            high = sum(s * (s * c // 2**13) * v for s, (c, v) in zip(signs, terms, strict=True))
            low = sum(s * (s * c % 2**13) * v for s, (c, v) in zip(signs, terms, strict=True))
            e1, e2 = self.errors[k]
            low += 2**12 - (a1 // 2**13 * e1 + a2 // 2**13 * e2) // 2
            total = wrap(high + low // 2**13 + 2**13)
            self.errors[k] = (total % 2**14 - 2**13, e1)
            self.nodes[k] = (value, x1)
            value = max(-(2**15), min(2**15 - 1, total // 2**14))
        self.nodes[2] = (value, self.nodes[2][0])
        return value


@dataclass
class Twin:
    """State of a board between ticks; `register` holds raw register values by name."""

    register: dict[str, int]
    knots: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0), (0, 0)])
    state: int = State.DISARMED
    bounds: Bounds = field(default_factory=Bounds)
    silence: int = 0
    missed: int = 0
    stuck: int = 0
    stuck_at: int = 0
    heat: int = 0
    squares: list[int] = field(default_factory=list[int])
    current: Signal = field(default_factory=Signal)
    torque: Signal = field(default_factory=Signal)
    counter: int = 0
    position: int = 0
    link_count: int = 0
    link_position: int = 0
    twist: int = 0
    twist_rest: int = 0
    excused: int = 0
    halting: int = 0  # 1 and LOADED comes of it, 2 DONE, from 4 on a trip
    power: int = 1  # 3: the brake is open; and 4 for each tick until then
    release_ticks: int = 1
    engage_ticks: int = 0
    engaging: int = 0
    rest: int = 0
    velocity_q12: int = 0
    innovation: int = 0
    edge_time: int = 0
    still: int = 257
    edge_clocks: int = 0
    integral: int = 0
    reference: int = 0
    reference_velocity: int = 0
    wait: int = 0
    played: int = 0
    repeats: int = 1
    play: int = -1
    link_halt: bool = False  # the brake takes over from now on, for nobody is heard
    trip: tuple[int, int, int] = (0, 0, 0)
    outputs: tuple[int, int] = (0, 0)
    sample: bytes | None = None
    feedforward: list[int] = field(default_factory=list[int])  # current at each knot [mA]; empty: there is none
    feedforward_mA: int = 0  # of this tick; before the motion that of knot 0
    feedforward_share: int = 0  # of 256, how much of it is given
    feedback: int = 0  # what the servo adds to it, behind a low-pass [mA / 8]
    floating: int = (
        0  # 1: the feed-forward is a table to float by, its knots' positions are evenly spaced; 2: it floats
    )
    float_silence: int = 0  # ticks since the last COMPENSATE
    float_ticks: int = 100
    rest_current: int = 0  # what that said [mA], and behind a low-pass [mA / 256]
    rest_smooth: int = 0
    velocity_mean: int = 0  # Q12
    has_let_go: bool = False  # nobody holds it since this tick

    def tick(self, inputs: Inputs) -> None:
        """One tick; what came of it: `state`, `outputs` (enable, mA), `play`, `sample` (None: none taken), `trip`."""
        raw = sum(inputs.current) - 2**15
        order, sections = self.register["adc.cic_order"], self.sections()
        filtered = self.current.filter(self.current.decimate(inputs.current, order), sections)
        torsion = self.torque.filter(self.torque.decimate(inputs.torque, order), sections)
        moved = self._count(inputs)
        velocity = self._mt(moved, inputs.motor_edge) if self.register["velocity.source"] else self._track(moved)
        was_driven = self.state in DRIVING
        self.play = -1
        self.has_let_go = False
        enable = self._open_brake() if was_driven else 0
        if self.state == State.RUNNING:
            enable = self._play() or enable
        self.silence = min(self.silence + 1, self.bounds.timeout)
        self._heat_up(abs(raw - self.register["current.zero"]))
        if abs(self.position - self.stuck_at) <= 1 and abs(self.outputs[1]) >= self.bounds.stuck_current:
            self.stuck += 1
        else:
            self.stuck, self.stuck_at = 0, self.position
        if self.state in DRIVING:
            trip = self._trip(raw, moved, velocity, inputs)
            if trip:
                self.trip, self.state = trip, State.FAULT
        self.missed = 0
        driven = self.state in DRIVING
        command = self._servo(velocity) if driven else 0
        self.outputs = (enable if self.state in DRIVING else 0, command)
        taken = (was_driven and self.state not in (State.DONE, State.LOADED)) or self.register["stream.always"]
        values = {
            "motor_current": filtered,
            "motor_position": self.position,
            "link_position": self.link_position,
            "joint_torque": torsion,
            "current_command": self.outputs[1],
            "bus_voltage": inputs.supply,
            "temperature": inputs.temperature,
            **{f"foot_force_{k + 1}": force for k, force in enumerate(inputs.forces)},
            "motor_velocity": velocity,
            "bridge_torque": inputs.forces[0],
            "torque_age": inputs.forces[1],
            "force_age": inputs.temperature,
        }
        due = [c for c in self.channels() if inputs.tick % self.every(c) == 0]
        packed = b"".join(struct.pack("<" + c.format, values[c.name]) for c in due)
        self.sample = packed if taken else None

    def sections(self) -> list[list[int]]:
        """The filter's coefficients b0, b1, b2, a1, a2 of both sections, Q27."""
        names = ("b0", "b1", "b2", "a1", "a2")
        return [[self.register[f"filter.{section}.{name}"] for name in names] for section in (1, 2)]

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

    def _count(self, inputs: Inputs) -> int:
        """Motor counts since the last tick; both positions go on."""
        moved = (inputs.motor_count - self.counter + 2**15) % 2**16 - 2**15
        self.counter = inputs.motor_count
        self.position = wrap(self.position + moved)
        turn = self.register["encoder.link_counts"]
        step = wrap(inputs.link_count - self.link_count)
        step += turn if step < -(turn // 2) else -turn if step > turn // 2 else 0
        self.link_count, self.link_position = inputs.link_count, wrap(self.link_position + step)
        step, (whole, part) = max(-4096, min(4095, step)), self.bounds.ratio
        carried, self.twist_rest = divmod(self.twist_rest + step * part, 2**18)
        self.twist = wrap(self.twist + moved - step * whole - carried)
        return moved

    def _track(self, moved: int) -> int:
        """Velocity, Q8, by the tracking observer."""
        error = self.innovation + 256 * moved - self.velocity_q12 // 16
        error = max(-(2**20), min(2**20, error))
        self.velocity_q12 += error * self.register["velocity.beta"] // 2**8
        self.innovation = error - error * self.register["velocity.alpha"] // 2**8
        return self.velocity_q12 // 16

    def _mt(self, moved: int, edge: int) -> int:
        """Velocity, Q8, by the counts between two edges over the time between them."""
        velocity = self.velocity_q12 // 16
        if moved:
            ticks = (edge - self.edge_time) % 2**32 or 1
            known = ticks <= 2**22 and self.still < 257
            self.edge_time, self.still = edge, 0
            counts = min(abs(moved), self.edge_most) * self.edge_clocks
            whole = min(counts // ticks, 2**15 - 1)
            speed = 256 * whole + counts % ticks * 256 // ticks if known else 0
            velocity = speed if moved > 0 else -speed
        else:
            self.still = min(self.still + 1, 257)
            velocity = max(-(256 // self.still), min(256 // self.still, velocity))
        self.velocity_q12 = 16 * velocity
        return velocity

    @property
    def edge_most(self) -> int:
        """Largest move whose product with the clock's counts in a tick fits 31 bits."""
        return min(2**15, (2**31 - 1) // max(1, self.edge_clocks))

    def _heat_up(self, current: int) -> None:
        """Mean square of the current, brought up to date after each 64 ticks."""
        gain = 2**24 // self.bounds.hard_counts
        self.squares.append((min(current, self.bounds.hard_counts) * gain // 2**12) ** 2)
        if len(self.squares) == 64:
            self.heat += (sum(self.squares) - self.heat) // 2**15 * self.bounds.heat_rate
            self.squares = []

    def _open_brake(self) -> int:
        """What the Hal is told of a driven motor: 1 power, 3 and its brake is open."""
        if self.power <= 3:
            return self.power
        left = self.power // 4 - 1
        enable = 3 if left < self.release_ticks else 1
        self.power = enable + 4 * left
        return enable

    def _play(self) -> int:
        """Go on in the motion, or to its end; 1 when the brake engages."""
        intervals = len(self.knots) - 1
        if self.halting:
            step, speed = self.register["limit.deceleration"], self.reference_velocity
            self.reference_velocity = speed - step if speed > step else speed + step if speed < -step else 0
            moved, self.rest = divmod(self.rest + self.reference_velocity, 256)
            self.reference += moved
            if self.reference_velocity == 0:
                return self._end_of_halt()
        elif self.wait:
            self.wait -= 1
        elif self.floating:
            self._float()
        elif self.played == self.repeats * intervals * KNOT_TICKS:
            self.state = State.DONE
        else:
            k, i = divmod(self.played % (intervals * KNOT_TICKS), KNOT_TICKS)
            self.reference, self.reference_velocity = hermite(self.knots[k], self.knots[k + 1], i)
            if self.feedforward:
                start, end = self.feedforward[k], self.feedforward[k + 1]
                self.feedforward_mA = (start * (KNOT_TICKS - i) + end * i) // KNOT_TICKS
            self.play = self.played
            self.played += 1
            if self.engage_ticks and self.played == self.repeats * intervals * KNOT_TICKS:
                self.halting = 2
        return 0

    def _float(self) -> None:
        """The reference goes with the motor, but for the walls, and at rest for what little holds it there."""
        r, velocity, position = self.register, self.velocity_q12 // 16, self.position
        if self.floating == 1:
            self.floating, self.rest_smooth, self.velocity_mean = 2, 256 * self.rest_current, self.velocity_q12
        self.float_silence += 1
        if self.float_silence >= self.float_ticks:
            self.halting, self.has_let_go = 1, True
        held = r["float.hold"] if abs(velocity) <= r["float.dead_band"] else 0
        self.reference = max(position - held, min(position + held, self.reference))
        self.reference_velocity = max(-r["float.velocity"], min(r["float.velocity"], velocity))
        low, high = r["limit.position_min"] + r["float.wall"], r["limit.position_max"] - r["float.wall"]
        if position > high:
            self.reference, self.reference_velocity = high, 0
        if position < low:
            self.reference, self.reference_velocity = low, 0
        self.integral = 0
        self.play = self.played
        self.played += 1

    def compensation(self) -> int:
        """Current by which a floating motor is compensated [mA]: table, what the host says, and inertia."""
        first, step = self.knots[0][0], self.knots[1][0] - self.knots[0][0]
        k, rest = divmod(self.position - first, step)
        weight = rest * 256 // step
        table = (self.feedforward[k] * (256 - weight) + self.feedforward[k + 1] * weight) // 256
        self.rest_smooth += (256 * self.rest_current - self.rest_smooth) // 16
        change = (self.velocity_q12 - self.velocity_mean) // 16
        self.velocity_mean += change
        inertial = max(-65535, min(65535, change)) * self.register["float.inertia"] // 2**12
        most = self.register["limit.float"]
        return max(-most, min(most, table + self.rest_smooth // 256 + inertial))

    def _end_of_halt(self) -> int:
        if self.engaging:
            self.engaging, self.power = self.engaging - 1, 1
            return 1
        if self.halting & 4:
            self.silence = self.bounds.timeout
        else:
            self.state = State.DONE if self.halting == 2 else State.LOADED
        return 0

    @property
    def _letting_go(self) -> bool:
        return self.silence > self.bounds.timeout // 2

    def _trip(self, raw: int, moved: int, velocity: int, inputs: Inputs) -> tuple[int, int, int] | None:
        """The first trip in the board's order that happens, with its value and its limit."""
        r, b = self.register, self.bounds
        current, error = abs(raw - r["current.zero"]), self.reference - self.position
        low, high = r["limit.position_min"], r["limit.position_max"]
        self.excused &= inputs.pins
        toward = 0 if self.reference_velocity == 0 else 4 if self.reference_velocity < 0 else 8
        pins = inputs.pins & ~(self.excused & ~toward)
        checks = (
            (Trip.STOP_PIN, pins, 0, pins & 1),
            (Trip.FAULT_PIN, pins, 0, pins & 2),
            (Trip.LIMIT_PIN, pins, 0, pins & 12),
            (Trip.OVER_CURRENT, current, b.trip_counts, current > b.trip_counts),
            (Trip.I2T, self.heat, b.heat_limit, self.heat > b.heat_limit),
            (Trip.OVERRUN, self.missed, r["limit.missed_ticks"], self.missed > r["limit.missed_ticks"]),
            (Trip.ENCODER_JUMP, moved, b.jump, abs(moved) > b.jump * (self.missed + 1)),
            (Trip.ENCODER_STUCK, self.stuck, b.stuck_ticks, self.stuck >= b.stuck_ticks),
            (Trip.TWIST, self.twist, b.twist, max(self.twist, ~self.twist) > b.twist),
            (Trip.POSITION, self.position, low, self.position < low),
            (Trip.POSITION, self.position, high, self.position > high),
            (Trip.VELOCITY, velocity, b.fastest, abs(velocity) > b.fastest),
            (Trip.LINK_LOSS, self.silence, b.timeout, self.silence >= b.timeout),
            (Trip.SUPPLY, inputs.supply, b.supply[0], inputs.supply < b.supply[0]),
            (Trip.SUPPLY, inputs.supply, b.supply[1], inputs.supply > b.supply[1]),
            (Trip.TEMPERATURE, inputs.temperature, b.hottest, inputs.temperature > b.hottest),
            (Trip.COMMAND, self.reference, low, self.reference < low),
            (Trip.COMMAND, self.reference, high, self.reference > high),
            (Trip.FOLLOWING, error, r["limit.following"], abs(error) > r["limit.following"] and not self._letting_go),
        )
        return next(((trip, value, limit) for trip, value, limit, happens in checks if happens), None)

    def _servo(self, velocity: int) -> int:
        r, clamp = self.register, self.bounds.clamp
        following, band = r["limit.following"], r["servo.friction_band"]
        error = max(-following, min(following, self.reference - self.position))
        damping = max(-65536, min(65536, self.reference_velocity - velocity))
        command = error * r["servo.kp"] // 2**8 + damping * r["servo.kd"] // 2**12
        planned = self.reference_velocity
        if self.floating == 2:
            dead = r["float.dead_band"]
            planned = planned - dead if planned > dead else planned + dead if planned < -dead else 0
            command += self.compensation()
        command += planned // 16 * r["servo.velocity_feedforward"] // 2**8
        slope = r["servo.friction"] * 2**12 // band
        command += max(-band, min(band, planned)) * slope // 2**12
        command += self.integral // 2**14
        if self.feedforward and not self.floating:
            self.feedforward_share += -1 if self.halting else 1
            self.feedforward_share = max(0, min(256, self.feedforward_share))
            if self._is_unexpected(command):
                self.state, clamp = State.FAULT, 0
            command += self.feedforward_mA * self.feedforward_share // 256
        step = error * r["servo.ki"] // 4
        let_go = self._letting_go and not self.engage_ticks
        if (command > clamp and step > 0) or (command < -clamp and step < 0) or let_go:
            step = 0
        command = max(-clamp, min(clamp, command))
        self.link_halt = False
        if self._letting_go and self.engage_ticks:
            self.link_halt, self.halting, self.state = not self.halting & 4, self.halting | 4, State.RUNNING
        elif self._letting_go:
            left, span = self.bounds.timeout - self.silence, self.bounds.timeout - self.bounds.timeout // 2
            command = abs(command) * left // span * (1 if command > 0 else -1)
        self.integral = max(-clamp * 2**14, min(clamp * 2**14, self.integral + step))
        return command

    def _is_unexpected(self, feedback: int) -> bool:
        """Whether the servo adds more to the feed-forward, behind a low-pass, than allowed; notes the trip.

        From the 1024th tick of the motion on, when all of the feed-forward is given and START is over.
        """
        limit = self.register["limit.unexpected"]
        if not limit or self.play < 1024 or self._letting_go:
            return False
        self.feedback += feedback - self.feedback // 8
        smooth = self.feedback // 8
        if abs(smooth) <= limit:
            return False
        self.trip = (Trip.UNEXPECTED, smooth, limit)
        return True


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
