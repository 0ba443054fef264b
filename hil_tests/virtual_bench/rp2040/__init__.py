"""A board that is a chip: an RP2040 emulated down to its pins, with MicroPython's real port for it.

`board` runs one, `parts` finds what it is made of, `wiring` says what is at its pins, `flash` fills its memory. The
emulator's side is JavaScript for node, `main.mjs` and what it imports.
"""
