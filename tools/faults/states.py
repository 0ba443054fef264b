"""The states of a board in which faults strike, and when after its power they do."""

from __future__ import annotations

from jointwire import State

# [µs] of true time. A board tells its STATUS each second, and a recording begins with one; by then it is where it is to
# be. Power comes at 0, so that a fault of BOOT is there before the first tick; a motion takes a second to reach DONE.
MOMENTS_US: dict[State, int] = {
    State.BOOT: 0,
    State.DISARMED: 1_200_000,
    State.LOADED: 1_200_000,
    State.ARMED: 1_200_000,
    State.RUNNING: 1_500_000,
    State.DONE: 2_200_000,
    State.FAULT: 1_200_000,
}
AT_REST = (State.DISARMED, State.LOADED, State.DONE, State.FAULT)
DRIVEN = (State.ARMED, State.RUNNING)
