"""What goes wrong while measuring."""


class ProcessFailed(Exception):
    """A process that was measured ended with an error; it says which."""
