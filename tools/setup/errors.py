"""Every error of the set-up."""


class SetupError(Exception):
    """A step of the set-up cannot be done; the message says why and what to do next."""


class Unavailable(SetupError):
    """A part cannot be had on this machine; whoever can do without may go on."""


class CommandFailed(SetupError):
    """A program the set-up needs ended with an error.

    Args:
        program: the name it is known by.
        reason: what its output says, in one line.
        of_machine: the machine is at fault (no network, no disk), so that another program would fail alike.
    """

    def __init__(self, program: str, reason: str, of_machine: bool = False) -> None:
        super().__init__(f"{program}: {reason}")
        self.of_machine = of_machine
