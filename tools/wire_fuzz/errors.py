"""What goes wrong while fuzzing."""


class FuzzError(Exception):
    """Base of this package's errors."""


class DecoderFailed(FuzzError):
    """The decoder under test crashed or hangs; `hangs` tells which."""

    def __init__(self, decoder: str, hangs: bool, what: str) -> None:
        super().__init__(f"{decoder} {'hangs' if hangs else 'crashed'}: {what}")
        self.decoder, self.hangs = decoder, hangs


class CaseError(FuzzError):
    """A saved case that cannot be read."""
