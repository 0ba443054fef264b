"""What boards say in codes, in words: refusals, trips and states."""

from __future__ import annotations

from jointwire import BY_NAME, MessageType, Refusal, Register, State, Trip

# Of each refusal: why, and what the ACK's value means; the fields are value (the ACK's), the same as a word without
# sign or as a state, and what is allowed.
_REFUSALS: dict[Refusal, str] = {
    Refusal.OK: "accepted",
    Refusal.BAD_LENGTH: "the request has a wrong length ({value} bytes arrived)",
    Refusal.UNKNOWN_MESSAGE: "this firmware does not know the request",
    Refusal.WRONG_STATE: "not allowed in state {state}",
    Refusal.UNKNOWN_REGISTER: "there is no register {value}",
    Refusal.READ_ONLY: "the register is a fact of the board and cannot be written",
    Refusal.OUT_OF_RANGE: "out of range, the nearest it takes is {value}; allowed is {allowed}",
    Refusal.BAD_TOKEN: "the arming token is not that of its last HELLO_ACK; does another program use this board?",
    Refusal.BAD_CRC: "the trajectory arrived damaged; send it again",
    Refusal.INCOMPLETE: "it has only {value} knots so far; send the trajectory from its start",
    Refusal.TOO_LONG: "it can hold {value} only; play a shorter trajectory",
    Refusal.OUTSIDE_LIMITS: "outside the position window or faster than the velocity limit (knot or count {value})",
    Refusal.NOT_AT_START: "the joint is {value} motor counts from the first knot; move_to() the start first",
    Refusal.BAD_CONFIG: "its registers or trajectory are not as this host last read, wrote or loaded them (CRC-32 is "
    "{word:08x}): another program changed them, or the board started again; connect() and configure() anew",
    Refusal.NO_MOTOR: "the board has no motor, as its channels ({value:#x}) say; leave it out of the motion",
    Refusal.PINS: "its pins keep the motor off: {pins}; release the emergency stop, or look after the power stage",
    Refusal.BRAKE: "its brake is still opening, a motion may begin at its tick {value}; start later after arm(), or at "
    "no tick of your own",
    Refusal.NOT_SAVED: "its flash could not be written (error {value} of its file system); is it full, or worn out?",
    Refusal.TOO_LATE: "the start tick has passed, its tick is {value}; is the computer too busy or the link too slow?",
}


# Where the same refusal of another request means something else.
_REFUSALS_OF: dict[tuple[MessageType, Refusal], str] = {
    (MessageType.LOAD, Refusal.OUT_OF_RANGE): "a trajectory has two knots at least and is played once at least",
    (MessageType.LOAD, Refusal.TOO_LONG): "it can be repeated {value} times at most; play it in parts",
    (MessageType.ARM, Refusal.INCOMPLETE): "knot {value} is outside the limits as they are now; load it anew",
    (MessageType.CONFIRM, Refusal.BAD_CONFIG): "it runs another image than that; flash it again",
    (MessageType.DICT, Refusal.INCOMPLETE): "its schema.bin cannot be read (error {value}); copy its firmware anew",
}


def refusal_text(refusal: int, value: int, allowed: str = "", request: MessageType | None = None) -> str:
    """A refusal of a request in words, with the number that came with it and what is allowed."""
    if refusal not in _REFUSALS:
        return f"refusal {refusal}, which this release does not know (value {value})"
    of_any = _REFUSALS[Refusal(refusal)]
    text = (_REFUSALS_OF.get((request, Refusal(refusal)), of_any) if request else of_any).format(
        value=value, word=value & 0xFFFFFFFF, state=state_text(value), allowed=allowed or "less", pins=pins_text(value)
    )
    if refusal == Refusal.WRONG_STATE and value == State.FAULT:
        text += f"; first {CLEARING}"
    return text


_STATES = frozenset(State)
# Bits of a board's pins, and what each says when it is low.
_PINS = {1: "stop is open", 2: "the power stage reports a fault", 4: "limit_low is reached", 8: "limit_high is reached"}


def pins_text(pins: int) -> str:
    """What the pins of a board say."""
    return ", ".join(text for bit, text in _PINS.items() if pins & bit) or "none"


CLEARING = "clear the fault (`jointbench run --clear`, or bench.clear())"

# Of each trip: what happened, the register whose unit and limit it has, what to do.
TRIPS: dict[Trip, tuple[str, str | None, str]] = {
    Trip.NONE: ("no trip", None, ""),
    Trip.OVER_CURRENT: (
        "motor current over its limit", "limit.current", "look for a blocked joint or a motion beyond its torque"
    ),
    Trip.POSITION: (
        "position outside its window", "limit.position_max", "move the joint back by hand, or correct zero or limits"
    ),
    Trip.VELOCITY: ("velocity over its limit", "limit.velocity", "slow the motion down or raise the limit"),
    Trip.FOLLOWING: (
        "joint does not follow its reference", "limit.following", "look for a blocked joint, or stiffen the servo"
    ),
    Trip.LINK_LOSS: (
        "no valid frame from the host for too long", "limit.link_timeout", "check the cable and this computer's load"
    ),
    Trip.INTERNAL: ("the firmware failed", None, "read the board's error output and report it"),
    Trip.I2T: (
        "motor current over what the motor bears for long", "limit.continuous_current",
        "let it cool down; look for a jammed joint, or plan a gentler motion"
    ),
    Trip.ENCODER_JUMP: (
        "motor encoder jumped within a tick", "limit.jump", "check the encoder's cable, shield and supply"
    ),
    Trip.ENCODER_STUCK: (
        "motor encoder stands still though the motor is driven", "limit.stuck_time",
        "check the encoder's cable, then look for a blocked joint"
    ),
    Trip.SUPPLY: ("supply outside its window", "limit.supply_max", "check supply, fuse and braking resistor"),
    Trip.TEMPERATURE: ("motor too hot", "limit.temperature", "let it cool down, or plan a gentler motion"),
    Trip.OVERRUN: (
        "too many ticks missed in a row", "limit.missed_ticks", "stream fewer channels, or lengthen the tick"
    ),
    Trip.COMMAND: (
        "reference outside the position window", "limit.position_max", "plan the motion inside its limits"
    ),
    Trip.PARTNER: (
        "the other motor of its board tripped, was stopped or did not play", None,
        "find out what became of that one"
    ),
    Trip.HARDWARE: (
        "a sensor or drive of the board does not answer, or says what cannot be", None,
        "read on the board's console which, and check its wires and supply"
    ),
    Trip.STOP_PIN: ("the emergency stop is open", None, "release it when nobody is in the robot's reach"),
    Trip.FAULT_PIN: (
        "the power stage reports a fault", None, "look for a short circuit, heat or a low supply at the power stage"
    ),
    Trip.LIMIT_PIN: (
        "a limit switch was reached", None,
        "check zero and limits; from where it stands the motor may only leave the switch"
    ),
    Trip.TWIST: (
        "motor and link encoder disagree by more than the joint can twist", "limit.twist",
        "look for a slipping clutch or a bad encoder, then let the board start again, which finds the joint anew"
    ),
}  # fmt: skip


_OF_PINS = frozenset({Trip.STOP_PIN, Trip.FAULT_PIN, Trip.LIMIT_PIN})


def fault_text(trip: int, value: int, limit: int, tick: int) -> str:
    """A FAULT frame in words: what, value, limit, when, and what to do next."""
    what, register, advice = TRIPS[Trip(trip)]
    sizes = f": {si_text(BY_NAME[register], value)}, limit {si_text(BY_NAME[register], limit)}" if register else ""
    if trip == Trip.PARTNER and value:
        sizes = f" ({TRIPS[Trip(value)][0]})"
    if trip in _OF_PINS:
        sizes = f" ({pins_text(value)})"
    next_step = f"{advice[:1].upper()}{advice[1:]}, then {CLEARING} and play again"
    return f"tripped at tick {tick}, {what}{sizes}; its motor is off. {next_step}"


def si_text(register: Register, raw: int) -> str:
    """A raw register value in its unit."""
    unit = f" {register.unit}" if register.unit else ""
    return f"{raw * register.scale:.6g}{unit}"


def range_text(register: Register) -> str:
    """What a register allows, raw and in its unit."""
    low, high = register.minimum, register.maximum
    if register.unit in ("", "count"):
        return f"{low} to {high}"
    return f"{low} to {high} ({si_text(register, low)} to {si_text(register, high)})"


def state_text(state: int) -> str:
    """Name of a state."""
    return State(state).name if state in _STATES else f"{state}"
