"""A pytest plugin for benches of joint boards: the same tests on emulated and on real ones.

A test says what it needs, and what kind of time:

    from jointbench.testing import deterministic, needs

    @deterministic
    @needs("motor", "torque_sensor")
    def test_the_gear_winds_up(live_bench): ...

`pytest --bench FILE` runs it there, or skips it and names what the bench lacks.
"""

from jointbench.testing.session import BenchUnderTest
from jointbench.testing.tiers import FEATURES, TIERS, deterministic, functional, needs, realtime

__all__ = ["FEATURES", "TIERS", "BenchUnderTest", "deterministic", "functional", "needs", "realtime"]
