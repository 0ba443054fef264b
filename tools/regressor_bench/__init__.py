"""What the dynamics' kernels cost, beside Pinocchio and beside writing nothing but one number."""
