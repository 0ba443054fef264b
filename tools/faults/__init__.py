"""The fault campaign: every fault in every state of a board, each held against what must come of it."""
