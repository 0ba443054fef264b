"""What is said of a result: verdicts, errors, information in torques, whiteness of residuals."""
