"""The array type of the host's maths, and fixed-size vectors and matrices of frozen records."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Matrix3 = tuple[Vector3, Vector3, Vector3]

IDENTITY: Matrix3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Rotation by zero."""
