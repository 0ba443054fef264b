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
        of_machine: the machine or the network is at fault, so that another program would fail alike.
        of_network: the network is, so that the same program may do it another time.
    """

    def __init__(self, program: str, reason: str, of_machine: bool = False, of_network: bool = False) -> None:
        super().__init__(f"{program}: {reason}")
        self.of_machine = of_machine
        self.of_network = of_network


class DownloadFailed(SetupError):
    """A file did not come whole from a mirror; what has come of it is kept.

    Args:
        name: of the file.
        mirror: the address that was asked.
        reason: why it did not come.
    """

    def __init__(self, name: str, mirror: str, reason: str) -> None:
        super().__init__(f"{name} did not come from {mirror}: {reason}{self.next}")

    next = ". Type the same command again: it goes on from what has come"


class Gone(DownloadFailed):
    """No mirror holds a file (any more)."""

    next = ""
