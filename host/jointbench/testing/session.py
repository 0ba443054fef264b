"""The bench of a pytest run: started when a test first asks for it, broken for good once a board is, and ended."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress

import pytest

from jointbench.errors import BenchFileError
from jointbench.testing.bench_under_test import BenchOptions, BenchUnderTest
from jointbench.testing.broken import Broken, broken_by
from jointbench.testing.needs import FEATURES, SETTING, known_features


class BenchSession:
    """One bench for all tests of a run.

    Attributes:
        options: what the command line says of it.
        bench: what was started; None before.
        broken: what broke it; None while it is whole.
    """

    def __init__(self, config: pytest.Config, options: BenchOptions) -> None:
        """Start nothing yet."""
        self.options = options
        self.bench: BenchUnderTest | None = None
        self.broken: Broken | None = None
        self._config = config
        self._open = ExitStack()

    def start(self, test: str) -> BenchUnderTest:
        """Return the bench, started for this test if it was not before.

        Raises:
            Exception: what starting raised; the bench is broken then, and is not tried again.
        """
        if self.bench is None:
            try:
                self.options.folder.mkdir(parents=True, exist_ok=True)
                if not self.options.is_kept:
                    self._open.callback(_remove, self.options)
                self.bench = self._opened()
            except (Exception, pytest.fail.Exception) as error:
                cause = " ".join(str(error).split())
                self.broken = Broken(f"bench {self.options.bench.stem}", test, f"it did not start: {cause}")
                raise
        return self.bench

    def note_error(self, error: BaseException, test: str, in_setup: bool) -> None:
        """Remember the first error that leaves the bench without a board."""
        self.broken = self.broken or broken_by(error, test, in_setup)

    def close(self) -> None:
        """End the bench."""
        self._open.close()

    def _opened(self) -> BenchUnderTest:
        bench = self._open.enter_context(
            self._config.hook.pytest_jointbench_start(bench_file=self.options.bench, options=self.options)
        )
        unknown = bench.features - known_features(self._config)
        if unknown:
            raise BenchFileError(
                f"{self.options.bench}: features has {', '.join(sorted(unknown))}; there are "
                f"{', '.join(sorted(FEATURES))} (more by the setting {SETTING})"
            )
        return bench


SESSION = pytest.StashKey[BenchSession]()


def _remove(options: BenchOptions) -> None:
    """Remove what a bench left in a passing folder; the last of several processes removes the folder."""
    shutil.rmtree(options.folder, ignore_errors=True)  # a bench that was skipped is tried, and removed, by each test
    with suppress(OSError):
        options.out.rmdir()
