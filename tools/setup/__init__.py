"""Set-up on first use: a private environment with the locked dependencies, and the emulated boards' interpreters.

Runs before any dependency exists, so it uses the standard library alone.
"""
