"""Errors of the monitor's benchmark."""


class NoPicture(Exception):
    """Raised when there is no browser, or the monitor's page does not show the bench."""
