"""A joint that follows, and a trajectory for it: just enough mechanics to let a board play."""

import math

from firmware.tests.driver import BoardProcess, Outputs
from jointwire import MessageType, Refusal

# 10 rad/s closed loop per 100 ticks, well damped, with the joint below.
SERVO = {"servo.kp": 256, "servo.kd": 320, "limit.current": 8000, "limit.following": 500}


class Joint:
    """Inertia and a little friction behind the motor encoder; a brake that holds when the drive is off."""

    def __init__(self, position: float = 0.0) -> None:
        self.position, self.velocity = position, 0.0

    def __call__(self, outputs: Outputs) -> int:
        """Motor count after the tick."""
        self.velocity = (self.velocity + 0.01 * outputs.command_mA) * 0.98 if outputs.enable else 0.0
        self.position += self.velocity
        return round(self.position)


def swing(knots: int = 5, amplitude: int = 2000, start: int = 0) -> list[tuple[int, int]]:
    """Knots of one cosine swing from `start` to `start + amplitude` and back, at rest at both ends."""
    phases = [2 * math.pi * k / (knots - 1) for k in range(knots)]
    rate = 2 * math.pi / (32 * (knots - 1))
    return [
        (start + round(amplitude * (1 - math.cos(p)) / 2), round(256 * amplitude / 2 * rate * math.sin(p)))
        for p in phases
    ]


def prepare(board: BoardProcess, knots: list[tuple[int, int]] | None = None, repeats: int = 1) -> None:
    """Give the board a joint to move, its servo, and a loaded trajectory."""
    board.plant = Joint()
    for name, value in SERVO.items():
        assert board.write(name, value) is Refusal.OK
    board.upload(knots or swing(), repeats)


def play(board: BoardProcess, at_tick: int = 0) -> None:
    """ARM and START a prepared board."""
    board.arm()
    assert board.refusal(MessageType.START, at_tick=at_tick) is Refusal.OK
