"""What may be wrong with a log: columns mixed up, signs, units, joints that stand still, currents that tell nothing."""

from jointbench.identification.log_check.finding import Finding
from jointbench.identification.log_check.log_check import LogCheck, check_log

__all__ = ["Finding", "LogCheck", "check_log"]
