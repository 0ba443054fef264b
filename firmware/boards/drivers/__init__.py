"""What boards with real hardware are made of: one thing per file. Those called rp2_* or stm32_* know that chip's
registers, the others any port's `machine`. Only the files that a board imports are put onto it.

viper functions take memory as `_name` and use it as `name = ptr32(_name)`: type checkers understand that.
"""
