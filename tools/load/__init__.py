"""How much boards, host and bench carry, and for how long: many boards, fast ticks, real time, an hour in one go."""
