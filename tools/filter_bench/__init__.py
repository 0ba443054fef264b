"""The boards' filters against the host's knowledge of them: bit for bit, in decibels, and how fast."""
