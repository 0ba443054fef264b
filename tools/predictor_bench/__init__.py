"""What one torque costs in a control loop in Python."""
