"""What a body's ten parameters do to force, momentum and energy: linear, column by column.

Vectors are in the body's frame, the last axis x, y, z; leading axes broadcast. A row is of a unit motion: z its angular
and v its linear velocity at the frame's origin, so that z · moment + v · force is what acts against it.
"""

import numpy as np

from jointbench.arrays import Array


def force_columns(z: Array, v: Array, omega: Array, alpha: Array, felt: Array) -> Array:
    """Columns of z · (mc × a + I alpha + omega × I omega) + v · (m a + alpha × mc + omega × (omega × mc)), (…, 10).

    Args:
        z, v: the unit motion.
        omega, alpha: angular velocity [rad/s] and acceleration [rad/s²].
        felt: acceleration of the frame's origin minus gravity [m/s²].
    """
    spinning = omega * _dot(v, omega) - v * _dot(omega, omega)
    first = np.cross(v, alpha) + spinning + np.cross(felt, z)
    return _columns(_dot(v, felt), first, _inertia(z, alpha) + _inertia(np.cross(z, omega), omega))


def momentum_columns(z: Array, v: Array, omega: Array, velocity: Array) -> Array:
    """Columns of z · (mc × velocity + I omega) + v · (m velocity + omega × mc), shape (…, 10)."""
    return _columns(_dot(v, velocity), np.cross(velocity, z) + np.cross(v, omega), _inertia(z, omega))


def energy_columns(omega: Array, velocity: Array) -> Array:
    """Columns of the kinetic energy ½ m v·v + v · (omega × mc) + ½ omega · I omega, shape (…, 10)."""
    return _columns(0.5 * _dot(velocity, velocity), np.cross(velocity, omega), 0.5 * _inertia(omega, omega))


def _columns(of_mass: Array, of_first_moment: Array, of_inertia: Array) -> Array:
    shape = np.broadcast_shapes(of_mass.shape[:-1], of_first_moment.shape[:-1], of_inertia.shape[:-1])
    parts = (of_mass, of_first_moment, of_inertia)
    return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)


def _inertia(left: Array, right: Array) -> Array:
    """Columns of left · I right for Ixx, Ixy, Ixz, Iyy, Iyz, Izz."""
    (a, b, c), (x, y, z) = (np.moveaxis(each, -1, 0) for each in (left, right))
    return np.stack([a * x, a * y + b * x, a * z + c * x, b * y, b * z + c * y, c * z], axis=-1)


def _dot(left: Array, right: Array) -> Array:
    return np.sum(left * right, axis=-1, keepdims=True)
