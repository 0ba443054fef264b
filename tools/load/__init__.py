"""Load that boards, host and bench carry: many boards, fast ticks, real time, an hour in one go."""
