"""The robots that have a story, by the name that `./run demo` takes."""

from __future__ import annotations

from tools.demo import cobot6, gorobot2, modular7, nursing_arm, nursing_dual, rehab_arm
from tools.demo.errors import UnknownDemo
from tools.demo.story import Stage, Story

MODULAR = "modular7"
_STORIES = {
    "nursing_arm": nursing_arm.tell,
    "nursing_dual": nursing_dual.tell,
    "rehab_arm": rehab_arm.tell,
    "gorobot2": gorobot2.tell,
    MODULAR: modular7.tell,
    "cobot6": cobot6.tell,
}
ROBOTS = tuple(_STORIES)


def tell(robot: str, stage: Stage) -> Story:
    """Go one robot's way from boards to verdict.

    Raises:
        UnknownDemo: there is no such robot here.
    """
    if robot not in _STORIES:
        raise UnknownDemo(f"there is no demo of robot {robot!r}; there are {', '.join(ROBOTS)}")
    return _STORIES[robot](stage)
