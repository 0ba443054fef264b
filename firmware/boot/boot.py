# Above this line stand the statements that switch ENABLE off on this very board, with its pin or address written out:
# they read no file and import nothing but the interpreter's own `machine`, so nothing can fail before the motor is off.
# `jointbench flash` writes this file once, from config.json, and never again. What runs next is main.py.
