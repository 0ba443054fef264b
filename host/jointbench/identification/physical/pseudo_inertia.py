"""The pseudo-inertia of a body: the 4 × 4 matrix that is positive definite exactly when a body can have its parameters.

P = ∫ [r; 1] [r; 1]ᵀ dm = [[Σ, m c], [m cᵀ, m]] with Σ = ∫ r rᵀ dm = ½ tr(I) E - I: linear in the ten parameters.
A density that is nowhere negative gives a P without negative eigenvalues, and each such P belongs to one.
"""

import numpy as np
from numpy.typing import ArrayLike

from jointbench.arrays import Array

_ROWS = np.array([0, 0, 1, 0, 1, 2, 0, 1, 2, 3])
_COLUMNS = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3])
"""The upper triangle column by column: the order in which a symmetric matrix is written as a vector."""

_STRETCH = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))
"""Of each entry, so that the vector is as long as the matrix (Frobenius)."""


def pseudo_inertia(parameters: ArrayLike) -> Array:
    """Pseudo-inertia of standard parameters about the same frame.

    Args:
        parameters: m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz [kg, kg·m, kg·m²], shape (…, 10).

    Returns:
        P, symmetric, shape (…, 4, 4).

    Source: Wensing, Kim & Slotine, IEEE RA-L 3(1), 2018.
    """
    mass, first, inertia = np.split(np.asarray(parameters, dtype=np.float64), [1, 4], axis=-1)
    xx, xy, xz, yy, yz, zz = np.moveaxis(inertia, -1, 0)
    matrix = np.empty((*mass.shape[:-1], 4, 4))
    matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 2, 2] = (yy + zz - xx) / 2, (xx + zz - yy) / 2, (xx + yy - zz) / 2
    matrix[..., 0, 1] = matrix[..., 1, 0] = -xy
    matrix[..., 0, 2] = matrix[..., 2, 0] = -xz
    matrix[..., 1, 2] = matrix[..., 2, 1] = -yz
    matrix[..., :3, 3] = matrix[..., 3, :3] = first
    matrix[..., 3, 3] = mass[..., 0]
    return matrix


def standard_parameters(matrix: Array) -> Array:
    """Standard parameters, shape (…, 10), of pseudo-inertias, shape (…, 4, 4)."""
    p = np.moveaxis(matrix, (-2, -1), (0, 1))
    first = (p[3, 3], p[0, 3], p[1, 3], p[2, 3])
    inertia = (p[1, 1] + p[2, 2], -p[0, 1], -p[0, 2], p[0, 0] + p[2, 2], -p[1, 2], p[0, 0] + p[1, 1])
    return np.stack([*first, *inertia], axis=-1)


def as_vector(matrix: Array) -> Array:
    """The ten entries of symmetric matrices, (…, 4, 4) to (…, 10), those beside the diagonal times √2."""
    return matrix[..., _ROWS, _COLUMNS] * _STRETCH


def as_matrix(vector: Array) -> Array:
    """Undo `as_vector`."""
    matrix = np.empty((*vector.shape[:-1], 4, 4))
    entries = vector / _STRETCH
    matrix[..., _ROWS, _COLUMNS] = entries
    matrix[..., _COLUMNS, _ROWS] = entries
    return matrix


def relative_to(reference: Array) -> Array:
    """The linear map from P relative to a reference body, as a vector, to the standard parameters.

    With L Lᵀ the reference, P = L P' Lᵀ; P' has no unit, does not depend on the frame but for a rotation, and is E for
    the reference itself.

    Args:
        reference: pseudo-inertia, positive definite, shape (4, 4).

    Returns:
        T of parameters = T @ as_vector(P'), shape (10, 10).
    """
    root = np.linalg.cholesky(reference)
    return standard_parameters(root @ as_matrix(np.eye(10)) @ root.T).T


def smallest_eigenvalue(matrix: Array, reference: Array) -> float:
    """Least eigenvalue of a pseudo-inertia relative to a reference body's: the share of it that the body contains."""
    root = np.linalg.inv(np.linalg.cholesky(reference))
    return float(np.linalg.eigvalsh(root @ matrix @ root.T)[0])
