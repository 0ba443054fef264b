"""What identification costs: seconds for many rows, memory for long logs."""
