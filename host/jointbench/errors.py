"""Every error the host raises for a reason its user can act on."""


class JointbenchError(Exception):
    """Base of all errors of the host: catch this one to catch them all."""

    def __str__(self) -> str:
        """Return the message as written: KeyError, a second base of some, would quote it."""
        return " ".join(str(argument) for argument in self.args)


class UnknownRobot(JointbenchError, KeyError):
    """Raised when a robot is neither in the library nor a readable robot file."""


class NoSuchChain(JointbenchError, ValueError):
    """Raised when a robot is asked for its first joints, and it has not as many or cannot be parted there."""


class RobotFileError(JointbenchError, ValueError):
    """Raised when a robot file has a missing, unknown, mistyped or contradictory entry."""


class BadModule(JointbenchError, ValueError):
    """Raised when modules make no arm: an unknown type, a serial number twice, a misfit, a gap, no word of one."""


class UnknownFoot(JointbenchError, KeyError):
    """Raised when a robot has no foot of the given name."""


class UnknownJoint(JointbenchError, KeyError):
    """Raised when a robot has no joint of the given name."""


class BadFoot(JointbenchError, ValueError):
    """Raised when the corners of a foot span no flat sole."""


class BadLinkKind(JointbenchError, ValueError):
    """Raised when links that are to be of one kind are not alike, or an axis has no direction."""


class BadCompensation(JointbenchError, ValueError):
    """Raised when a compensation's names clash with others, or its columns are of another shape or not finite."""


class ShapeError(JointbenchError, ValueError):
    """Raised when an array does not have the shape that the robot asks for."""


class UnclearRank(JointbenchError, ArithmeticError):
    """Raised when no gap separates independent from dependent parameters."""


class ExcitationError(JointbenchError, ValueError):
    """Raised when an excitation is asked for with impossible settings."""


class InfeasibleExcitation(ExcitationError):
    """Raised when no motion of the family keeps within a joint's limits."""


class LosesBalance(InfeasibleExcitation):
    """Raised when a robot on one foot would tip over it, or is not to stand on a foot that could carry it."""


class SignalError(JointbenchError, ValueError):
    """Raised when samples cannot be filtered as asked: too few, or an impossible cut-off."""


class FitError(JointbenchError, ValueError):
    """Raised when a fit or validation is asked of a run that cannot give it."""


class StanceError(FitError):
    """Raised when a recording is none of a robot standing on one foot, or too short of it."""


class StuckFootSensor(StanceError):
    """Raised when a sensor under the support foot does not follow the force on it: stuck, dead, cut off, moved."""


class FootOffGround(StanceError):
    """Raised when the support foot does not carry the robot, or another foot carries a part of it."""


class RobotFell(StanceError):
    """Raised when the robot tipped over the edge of its support foot while it was recorded."""


class WrongTotalMass(StanceError):
    """Raised when the support foot carries another weight than that of the mass given."""


class NotSimulable(FitError):
    """Raised when a robot cannot be simulated with the parameters at hand: they are no body's, or do not follow."""


class ModelFileError(JointbenchError, ValueError):
    """Raised when a model file cannot be read or was written by something else."""


class MappingError(JointbenchError, ValueError):
    """Raised when a mapping of somebody's log to a run has a missing, unknown, mistyped or contradictory entry."""


class ImportedDataError(JointbenchError, ValueError):
    """Raised when a log to import is missing, ragged, not numeric, too short or has a gap."""


class FileNotWritten(JointbenchError, OSError):
    """Raised when a file cannot be written: the disk is full or gone, or the place is not ours; it is as it was."""


class FileIsThere(JointbenchError, FileExistsError):
    """Raised when a named file would be overwritten, and nobody said that it may be."""


class RunError(JointbenchError, ValueError):
    """Raised when a run directory cannot be written, or holds no run that can be read."""


class RunChanged(RunError):
    """Raised when a run's files are not as they were recorded or imported, and nobody has accepted the change."""


class MissingExtra(JointbenchError, ImportError):
    """Raised when a function needs packages that only an extra of the distribution installs."""


class ReportError(JointbenchError, OSError):
    """Raised when a report's file cannot be written."""


class MonitorError(JointbenchError, OSError):
    """Raised when the live page of a bench cannot be served where it is wanted."""


class BenchFileError(JointbenchError, ValueError):
    """Raised when a bench file has a missing, unknown, mistyped or contradictory entry."""


class RequirementsError(JointbenchError, ValueError):
    """Raised when requirements cannot be read, have a wrong entry, or no limit to hold a value against."""


class UnknownRequirement(RequirementsError, KeyError):
    """Raised when there is no requirement of an id."""


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
    """Raised when the live feed of a bench cannot be served or read: its folder, its socket or its version."""


class StopAsked(JointbenchError):
    """Raised when a motion ends because somebody who looks on pressed STOP; says who."""


class TrajectoryError(JointbenchError, ValueError):
    """Raised when a trajectory cannot be played: its period, its length or its limits do not suit the boards."""


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


class BoardReset(BoardError, ConnectionError):
    """Raised when a board starts again in the middle of a motion."""


class BoardRefused(BoardError, ValueError):
    """Raised when a board answers a request with a refusal."""


class BoardFault(BoardError):
    """Raised when a board tripped and switched its motor off."""


class RobotFalls(JointbenchError):
    """Raised when a robot that stands on a foot tips over its edge or leaves the ground while it moves."""


class SchemaMismatch(BoardError):
    """Raised when a board was built from another definition of the wire than this host."""


class ConfigurationDiffers(BoardError, ValueError):
    """Raised when a board's registers are not what was written, or do not suit the robot."""


class FaultUrlError(JointbenchError, ValueError):
    """Raised when a fault:// URL names an unknown fault, a value that is not allowed, or no port."""


class FlashError(JointbenchError):
    """Raised when firmware cannot be built for a board or put onto it; says what the board runs now."""


class WrongBoard(FlashError, ValueError):
    """Raised when a board is of another kind, or its interpreter cannot run the image."""


class FlashFailed(FlashError, OSError):
    """Raised when a board's file system cannot be written, or does not hold what was written."""


class BadWeight(JointbenchError, ValueError):
    """Raised when a weight of least squares is negative or not a number."""


class WorkspaceError(JointbenchError, ValueError):
    """Raised when a workspace is impossible, cannot be read, or names what the robot does not have."""


class RedundantDrives(JointbenchError, ValueError):
    """Raised when a robot has more motors than joints where one motor of each joint is needed."""


class UnknownStiffness(JointbenchError, ValueError):
    """Raised when it matters how far a flexible drive gives, and its stiffness is not known."""


class UnknownInertia(JointbenchError, ValueError):
    """Raised when it matters what a robot's links weigh, and its file does not say it."""


class NoLinkKinds(JointbenchError, ValueError):
    """Raised when a robot's file does not say which of its links are alike."""


class NotMirrored(JointbenchError, ValueError):
    """A biped's legs are to be mirror images of each other, and are not."""


class FixedBase(JointbenchError, ValueError):
    """Raised when a robot whose base stands still is asked what a base that moves does."""


class SchedulerUnreachable(JointbenchError, ConnectionError):
    """Raised when the scheduler of a Dask cluster does not answer."""


class ExportError(JointbenchError, ValueError):
    """Raised when a model cannot be written in a format: nothing can have such values, or the format no such thing."""


class ImpossibleParameters(JointbenchError, ValueError):
    """Raised when an estimate is too far from everything that is physically possible to be taken for noise."""


class PhysicalSolverFailed(JointbenchError, ArithmeticError):
    """Raised when the search for physically possible parameters ends without an answer."""


class IncomparableModels(JointbenchError, ValueError):
    """Raised when two models' parameters do not stand for the same things."""


class FleetError(JointbenchError, ValueError):
    """Raised when a fleet is asked for with impossible settings, or none of its runs can be fitted."""


class LogCheckError(JointbenchError, ValueError):
    """Raised when a log has too little in one piece to be looked at."""
