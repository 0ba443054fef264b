"""What `./run bench predictor` times computes what it should, and its limits can be missed."""

import numpy as np
import pytest

from jointbench.robot import load_robot
from tools.bench.predictor import DISAGREEMENT, OURS, PEER, REGRESSOR, ROBOTS, race


@pytest.mark.parametrize("name", ROBOTS)
def test_all_take_their_turn_and_agree(name: str) -> None:
    seconds, apart = race(load_robot(name), seed=0, rounds=3)
    assert set(seconds) == {OURS, REGRESSOR, PEER}
    assert all(each.shape == (3,) and (each > 0.0).all() for each in seconds.values())
    assert apart <= DISAGREEMENT
    # A regressor makes sixty columns for what the recursion sums up at once: no noise turns that around.
    assert np.min(seconds[OURS]) < np.min(seconds[REGRESSOR])
