"""What only some verbs take, such as conversions: fetched from the lock when such a verb first needs it."""

from dataclasses import dataclass
from pathlib import Path

from tools.setup import development, environment, libraries, packages
from tools.setup.checkout import Checkout


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
        libraries.complete(checkout)
        self._stamp(checkout).write_text(environment.fingerprint(checkout))

    def _stamp(self, checkout: Checkout) -> Path:
        return checkout.venv / f"jointbench-{self.name}"
