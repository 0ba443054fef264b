"""Random motions of a biped on one foot, which keep the zero-moment point inside that foot."""

from jointbench.excitation.single_support.balance import Balance
from jointbench.excitation.single_support.plan import plan_single_support, support_workspace
from jointbench.excitation.single_support.ranges import SupportRanges

__all__ = ["Balance", "SupportRanges", "plan_single_support", "support_workspace"]
