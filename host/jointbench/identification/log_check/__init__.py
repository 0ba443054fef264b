"""What may be wrong with a log: columns mixed up, signs, units, joints that stand still, currents that tell nothing."""

from jointbench.identification.log_check.log_check import LogCheck, check_log
from jointbench.identification.log_check.log_signals import Finding

__all__ = ["Finding", "LogCheck", "check_log"]
