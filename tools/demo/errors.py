"""What can be wrong with what is asked of a demo."""

from jointbench.errors import JointbenchError


class UnknownDemo(JointbenchError, KeyError):
    """There is no demo of that robot."""

    def __str__(self) -> str:
        """The sentence, which a KeyError would quote."""
        return str(self.args[0])


class NotModular(JointbenchError, ValueError):
    """Modules of a robot that is not made of modules."""
