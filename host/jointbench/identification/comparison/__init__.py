"""Whether two models say the same."""

from jointbench.identification.comparison.comparison import LEVEL, Comparison, check_comparable, compare, effective_rows

__all__ = ["LEVEL", "Comparison", "check_comparable", "compare", "effective_rows"]
