"""What the firmware costs, in instructions of the emulated Cortex-M3: nothing here is timed, everything is counted."""
