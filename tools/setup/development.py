"""What only those who change the project need, in the same environment: linters, peers, what builds the pages."""

from pathlib import Path

from tools.setup import environment, libraries, packages
from tools.setup.checkout import Checkout


def is_ready(checkout: Checkout) -> bool:
    """Say whether the environment holds the whole lock as it is in the checkout now."""
    stamp = _stamp(checkout)
    return stamp.exists() and stamp.read_text() == environment.fingerprint(checkout)


def install(checkout: Checkout) -> None:
    """Install the rest of the lock; the environment is there.

    Raises:
        CommandFailed: a dependency cannot be installed.
    """
    packages.install_all(checkout)
    libraries.complete(checkout)
    _stamp(checkout).write_text(environment.fingerprint(checkout))


def _stamp(checkout: Checkout) -> Path:
    return checkout.venv / "jointbench-development"
