"""The robot to plan for."""

import pytest

from jointbench.model import Robot, load_robot


@pytest.fixture
def cobot() -> Robot:
    return load_robot("cobot6")
