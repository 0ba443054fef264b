"""What goes wrong while measuring."""


class PlayerFailed(Exception):
    """The process that plays recorded boards ended before it had ports; what it said stands above."""
