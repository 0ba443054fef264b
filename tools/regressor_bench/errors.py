"""What can go wrong with this benchmark."""


class PeerMissing(RuntimeError):
    """Raised when the library to compare with does not load."""


class StartFailed(RuntimeError):
    """Raised when a fresh process does not do what it was started for."""
