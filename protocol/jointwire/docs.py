"""Meaning of messages and numbers, for readers: no part of the schema, a better word makes no other wire."""

from enum import Enum

from jointwire.messages import EncoderSource, Feature, MessageType, Refusal, ResetCause, State, Trip

DOCS: dict[MessageType, str] = {
    MessageType.HELLO: "Greet a board.",
    MessageType.READ: "Ask for raw register values.",
    MessageType.WRITE: "Set one register.",
    MessageType.KNOTS: "Upload a part of a trajectory.",
    MessageType.FEEDFORWARD: "Upload a part of the feed-forward current of the trajectory that KNOTS has uploaded.",
    MessageType.COMPENSATE: "Let a motor that floats go on to, and give what its table does not know of its current.",
    MessageType.LOAD: "Have the board check the uploaded trajectory; it is LOADED afterwards.",
    MessageType.ARM: "Let the board hold its motor where it is.",
    MessageType.START: "Play the loaded trajectory.",
    MessageType.STOP: "Switch the motor off.",
    MessageType.HALT: "Slow the reference down by limit.deceleration to rest, then switch the motor off: LOADED.",
    MessageType.CLEAR: "Acknowledge a latched fault.",
    MessageType.PING: "Exchange times, and show that the host is alive.",
    MessageType.DICT: "Ask for the schema, text compressed by zlib, in parts.",
    MessageType.ECHO: "Ask for the same bytes back.",
    MessageType.SAVE: 'Keep the "persist" registers over a reset.',
    MessageType.REPL: "End the program and give the port back to the interpreter.",
    MessageType.CONFIRM: "Keep the firmware that runs: it has passed its trial.",
    MessageType.DATA: "The head of a block of samples; the packed samples follow it.",
    MessageType.STATUS: "Where a board stands, and its counters.",
    MessageType.FAULT: "The motor was switched off: which limit, and by how much.",
    MessageType.SYNC: "An edge on the SYNC line.",
    MessageType.YIELD: "The last frame of a board's turn on a shared line.",
    MessageType.ACK: "A request was carried out, or why not.",
    MessageType.HELLO_ACK: "Who a board is and what it can do.",
    MessageType.VALUES: "Raw register values.",
    MessageType.PONG: "Answer to PING; its header's time_us is the board's clock at this moment, not at its last tick.",
    MessageType.DICT_PART: "A part of the compressed schema text.",
    MessageType.ECHO_REPLY: "The bytes of an ECHO.",
}

MEMBERS: dict[type[Enum], dict[str, str]] = {
    State: {
        "BOOT": "starting; answers nobody",
        "DISARMED": "motor off, no trajectory",
        "LOADED": "motor off, a trajectory is checked and ready",
        "ARMED": "the motor holds its position",
        "RUNNING": "the trajectory is played",
        "DONE": "motor off after the last knot",
        "FAULT": "motor off, a trip is latched until CLEAR",
    },
    Trip: {
        "NONE": "none",
        "OVER_CURRENT": "|motor current| above limit.current",
        "POSITION": "outside limit.position_min … limit.position_max",
        "VELOCITY": "above limit.velocity",
        "FOLLOWING": "reference and position further apart than limit.following",
        "LINK_LOSS": "no valid frame from the host for limit.link_timeout",
        "INTERNAL": "the program itself failed",
        "I2T": "root mean square of the motor current, over limit.thermal_time, above limit.continuous_current",
        "ENCODER_JUMP": "the motor encoder moved more than limit.jump in a tick",
        "ENCODER_STUCK": "less than two counts of motion in limit.stuck_time, driven at limit.stuck_current",
        "SUPPLY": "outside limit.supply_min … limit.supply_max",
        "TEMPERATURE": "of the motor, above limit.temperature",
        "OVERRUN": "more ticks missed in a row than limit.missed_ticks",
        "COMMAND": "the reference itself is outside the position window",
        "PARTNER": "of a board with two motors: the other tripped, value: by what; or was stopped, or one of the two "
        "did not play; value: 0",
        "HARDWARE": "a sensor or drive does not answer, or says what cannot be; the board's console says which",
        "STOP_PIN": "the pin `stop` is low: an emergency stop's contact is open; value: bits of the pins, 1 stop, "
        "2 fault, 4 limit_low, 8 limit_high",
        "FAULT_PIN": "the pin `fault` is low: the power stage says that it has failed; value: as above",
        "LIMIT_PIN": "a limit switch was reached that the motor did not stand at when it was armed, or the plan goes "
        "on into it; value: as above",
        "TWIST": "motor and link encoder disagree by more than limit.twist; value: motor counts",
        "UNEXPECTED": "the servo adds more than limit.unexpected to the feed-forward of the motion being played: "
        "something pushes, or the model is wrong; value: that current behind its low-pass",
    },
    Refusal: {
        "OK": "carried out",
        "BAD_LENGTH": "the body has not the length of its message; value: its length",
        "UNKNOWN_MESSAGE": "value: the type",
        "WRONG_STATE": "not in this state; value: the state",
        "UNKNOWN_REGISTER": "value: the id",
        "READ_ONLY": "a fact of the board; value: what it is",
        "OUT_OF_RANGE": "value: the nearest that is allowed; of a LOAD its count, of a DICT the last byte",
        "BAD_TOKEN": "not that of the last HELLO_ACK, or used before",
        "BAD_CRC": "of the knots, or of their feed-forward currents",
        "INCOMPLETE": "knots, or feed-forward currents of some, are missing, value: how many there are; at ARM, a knot "
        "or its feed-forward is not within the limits any more, value: which; of a DICT, the schema cannot be read, "
        "value: errno",
        "TOO_LONG": "value: the most there may be",
        "OUTSIDE_LIMITS": "the position, or a knot; value: which",
        "NOT_AT_START": "the joint is too far from the first knot; value: how far",
        "TOO_LATE": "at_tick has passed; value: the tick",
        "BAD_CONFIG": "registers are not what the host believes; value: the board's CRC, as int32",
        "NOT_SAVED": "value: errno",
        "NO_MOTOR": "the board has none to move, as board.channels says; value: the channels it has",
        "PINS": "its pins keep the motor off; value: 1 stop, 2 fault, 3 both",
        "BRAKE": "its brake is still opening; value: first tick at which a motion may begin",
        "FEEDFORWARD": "a knot's feed-forward current is beyond limit.feedforward, or limit.float where it is a table; "
        "value: which knot",
        "TABLE": "no table to float by: limit.float is 0, knots have no currents, or are not evenly 2^8 … 2^20 counts "
        "apart; value: which knot",
        "NO_MEMORY": "a motor is on, and as many requests were served since ARM as there is memory for; PING, "
        "COMPENSATE and STOP are served; value: how many it can serve",
    },
    ResetCause: {
        "UNKNOWN": "the hardware does not tell",
        "POWER_ON": "power, or a brown-out",
        "RESET_PIN": "the pin or the button",
        "WATCHDOG": "the watchdog: the program hung",
        "WAKE_UP": "from deep sleep",
        "SOFT": "by the program or the interpreter",
    },
    EncoderSource: {
        "NONE": "there is no motor encoder",
        "TIMER": "a timer in encoder mode",
        "PIO": "a PIO program",
        "SOFTWARE": "interrupts",
        "EMULATED": "a virtual bench",
    },
    Feature: {
        "PLAYBACK": "plays trajectories",
        "CURRENT_FILTER": "filters current and torque by the sections of the filter registers",
        "SHARED_LINE": "on a line with other boards",
        "SYNC_INPUT": "reports edges of a SYNC line",
        "SAVE": "keeps its calibration over a reset",
        "REPL": "can give the port back to the interpreter",
        "SIGNED_ONLY": "its loader has a key, and starts only images that are signed by it",
        "IMAGE_REFUSED": "its loader has refused a slot for its signature, and started the other one",
    },
}
