"""Every error the host raises for a reason its user can act on."""


class JointbenchError(Exception):
    """Base of all errors of the host: catch this one to catch them all."""

    def __str__(self) -> str:
        """Return the message as written: KeyError, a second base of some, would quote it."""
        return " ".join(str(argument) for argument in self.args)


class RobotError(JointbenchError, ValueError):
    """Raised when a robot cannot be what is asked of it: no such robot, joint or foot, parts that do not fit."""


class FileError(JointbenchError, ValueError):
    """Raised when a file is not what it was given as: a robot, a bench, a mapping, a log, a model or requirements.

    It has a missing, unknown, mistyped or contradictory entry, is damaged, or was written by something else.
    """


class ShapeError(JointbenchError, ValueError):
    """Raised when an array does not have the shape that the robot asks for."""


class NumericalError(JointbenchError, ArithmeticError):
    """Raised when a computation has no clear answer: no gap shows the rank, or a solver ends without a solution."""


class ExcitationError(JointbenchError, ValueError):
    """Raised when a motion cannot be planned as asked, or cannot be played by a robot's boards."""


class InfeasibleExcitation(ExcitationError):
    """Raised when no motion of the family keeps within a joint's limits, or a robot on one foot would tip over."""


class SignalError(JointbenchError, ValueError):
    """Raised when samples cannot be filtered as asked: too few, or an impossible cut-off."""


class FitError(JointbenchError, ValueError):
    """Raised when a fit, validation, comparison or export is asked of data or models that cannot give it."""


class StuckFootSensor(FitError):
    """Raised when a sensor under the support foot does not follow the force on it: stuck, dead, cut off, moved."""


class FootOffGround(FitError):
    """Raised when the support foot does not carry the robot, or another foot carries a part of it."""


class RobotFell(FitError):
    """Raised when a robot that stands on one foot tips over its edge or leaves the ground."""


class WrongTotalMass(FitError):
    """Raised when the support foot carries another weight than that of the mass given."""


class FileNotWritten(JointbenchError, OSError):
    """Raised when a file cannot be written: no room, not ours, or there already; what was there is as it was."""


class RunError(JointbenchError, ValueError):
    """Raised when a run directory cannot be written, or holds no run, or not any more the one recorded."""


class MissingExtra(JointbenchError, ImportError):
    """Raised when a function needs packages that only an extra of the distribution installs."""


class BeyondLimit(JointbenchError, AssertionError):
    """Raised when what was measured does not keep a requirement's limit, or is no number."""

    def __init__(self, text: str, value: float | None = None) -> None:
        """Say so; `value` is the worst of what was measured, None where nothing was."""
        super().__init__(text)
        self.value = value


class RoleError(JointbenchError, TimeoutError):
    """Raised when a role waits in vain for another's word, or roles are given boards that are not there."""


class PortInUse(JointbenchError, BlockingIOError):
    """Raised when a serial port is locked by another program; says who has it since when."""


class BenchLost(JointbenchError, ConnectionError):
    """Raised when a virtual bench does not answer, is busy with another client, or has ended."""


class FeedError(JointbenchError, OSError):
    """Raised when a bench's live feed or live page cannot be served or read: its folder, its address or its version."""


class StopAsked(JointbenchError):
    """Raised when a motion ends because somebody who looks on pressed STOP; says who."""


class BoardError(JointbenchError):
    """Base of what goes wrong with one board; it names the joint and the node."""

    def __init__(self, joint: str, node: int, text: str) -> None:
        """Say what happened to the board of this joint."""
        super().__init__(f"{joint} (node {node}): {text}")
        self.joint = joint
        self.node = node
        self.text = text


class BoardSilent(BoardError, TimeoutError):
    """Raised when a board does not answer, or what it sends is no frame."""


class BoardLost(BoardError, ConnectionError):
    """Raised when a board's process or port is gone."""


class BoardRefused(BoardError, ValueError):
    """Raised when a board answers with a refusal, or its wire or its registers are not what the host needs."""


class BoardFault(BoardError):
    """Raised when a board tripped and switched its motor off, or started again in the middle of a motion."""


class FlashError(JointbenchError):
    """Raised when firmware cannot be built for a board or put onto it; says what the board runs now."""
