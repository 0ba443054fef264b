"""Parts of the lock that a user's environment starts without: extras, fetched when first needed, and development."""

from dataclasses import dataclass
from pathlib import Path

from tools.setup import environment, packages
from tools.setup.checkout import Checkout


class Development:
    """Part of the lock for those who change the project: linters, peers, what builds the pages; the whole lock."""

    def is_ready(self, checkout: Checkout) -> bool:
        """Say whether the environment holds the whole lock as it is in the checkout now."""
        stamp = self._stamp(checkout)
        return stamp.exists() and stamp.read_text() == environment.fingerprint(checkout)

    def install(self, checkout: Checkout) -> None:
        """Install the rest of the lock; the environment is there.

        Raises:
            CommandFailed: a dependency cannot be installed.
        """
        packages.install_all(checkout)
        packages.complete_libraries(checkout)
        self._stamp(checkout).write_text(environment.fingerprint(checkout))

    def _stamp(self, checkout: Checkout) -> Path:
        return checkout.venv / "jointbench-development"


development = Development()


@dataclass(frozen=True)
class Extra:
    """An extra of the distribution that a user's environment starts without."""

    name: str

    def is_ready(self, checkout: Checkout) -> bool:
        """Say whether the environment holds it as the lock has it now."""
        stamp = self._stamp(checkout)
        made = stamp.exists() and stamp.read_text() == environment.fingerprint(checkout)
        return made or development.is_ready(checkout)

    def install(self, checkout: Checkout) -> None:
        """Install it from the lock; the environment is there.

        Raises:
            SetupError: a dependency cannot be installed.
        """
        packages.install_extra(checkout, self.name)
        packages.complete_libraries(checkout)
        self._stamp(checkout).write_text(environment.fingerprint(checkout))

    def _stamp(self, checkout: Checkout) -> Path:
        return checkout.venv / f"jointbench-{self.name}"
