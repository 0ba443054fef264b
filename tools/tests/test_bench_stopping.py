"""The benchmark of identifications that end by their own σ."""

import numpy as np
import pytest

from jointbench.cli.console import Console
from tools.bench import stopping


@pytest.mark.slow
def test_one_identification_ends_and_is_held_against_the_truth() -> None:
    identification = stopping.identified(3)
    outcome = stopping.outcome(identification)
    assert outcome.motion <= stopping.MOST_S
    assert len(outcome.deviations) == identification.model.base.rank
    # Five standard deviations: one in two million of so many draws.
    assert np.max(np.abs(outcome.deviations)) < 5.0
    assert stopping.default_motion(identification, Console()) >= stopping.LEAST_RATIO
