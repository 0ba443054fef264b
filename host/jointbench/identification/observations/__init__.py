"""From a run to rows: signals, delay, filters, stretches."""

from jointbench.identification.observations.observations import Observations, observe

__all__ = ["Observations", "observe"]
