"""A mapping proposed for somebody's log: what its columns seem to mean, why, and what only its user knows."""

from jointbench.recording.proposal.proposal import Proposal
from jointbench.recording.proposal.propose import propose_mapping

__all__ = ["Proposal", "propose_mapping"]
