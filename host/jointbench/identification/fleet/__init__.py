"""Models of many runs, and what differs from unit to unit."""

from jointbench.identification.fleet.fleet import Fleet, Member, fit_fleet

__all__ = ["Fleet", "Member", "fit_fleet"]
