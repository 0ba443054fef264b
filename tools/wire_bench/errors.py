"""What goes wrong while measuring."""


class PlayerFailed(Exception):
    """The process that plays recorded boards ended before it had ports; what it said stands above."""


class MachineTooBusy(Exception):
    """A process that must keep pace with the wall clock was kept from the processor for too long."""
