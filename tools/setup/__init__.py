"""Set-up on first use: a private environment with the locked dependencies, and a 32-bit MicroPython.

Runs before any dependency exists, so it uses the standard library alone.
"""
