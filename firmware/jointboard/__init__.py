"""Jointbench's joint board: what runs on the microcontroller of one joint. Start with app.py; tick.py is the heart."""

from micropython import const

VERSION = const(0x00010100)  # 0x00MMmmpp
