"""Compiled recursions of rigid-body dynamics, sample by sample: joint torques, regressor columns, their derivatives.

Each sample goes outward from the base (how each body moves, in its own frame) and back from the tips. Importing this
module imports Numba, which takes about a second: callers do so where they call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from jointbench.model.tree import Slots, Tree

_Function = TypeVar("_Function", bound=Callable[..., Any])

Doubles: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = tuple[float, float, float]
Matrix: TypeAlias = tuple[float, float, float, float, float, float, float, float, float]
"""Row by row."""
Terms: TypeAlias = tuple[Matrix, Vector, Vector, Vector]

# Columns of `work`, whose row 0 is the base and row i + 1 body i: rotation and origin in the parent's frame; angular
# velocity and acceleration; acceleration of the origin minus gravity, as an accelerometer reads it; force and moment.
_ROTATION, _ORIGIN, _OMEGA, _ALPHA, _SPECIFIC_FORCE, _FORCE, _MOMENT, _WORK = 0, 9, 12, 15, 18, 21, 24, 27

# Columns of `twists`, whose row i + 1 is pair i of a coordinate and a body, and row 0 zero: angular and linear velocity
# of the body when the coordinate moves at unit speed, and the gradients by both.
_ANGULAR, _LINEAR, _BY_ANGULAR, _BY_LINEAR, _TWIST = 0, 3, 6, 9, 12


def part(function: _Function) -> _Function:
    """Compile a function that compiled ones call."""
    return cast(_Function, njit(forceinline=True, fastmath={"contract"}, error_model="numpy")(function))


def kernel(function: _Function) -> _Function:
    """Compile a function that Python calls: its machine code is kept on disk, and it runs beside other threads."""
    return cast(_Function, njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")(function))


@part
def _add(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@part
def _scale(factor: float, value: Vector) -> Vector:
    return factor * value[0], factor * value[1], factor * value[2]


@part
def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@part
def _cross(a: Vector, b: Vector) -> Vector:
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@part
def _rotate(r: Matrix, v: Vector) -> Vector:
    """R v: out of the rotated frame."""
    return (
        r[0] * v[0] + r[1] * v[1] + r[2] * v[2],
        r[3] * v[0] + r[4] * v[1] + r[5] * v[2],
        r[6] * v[0] + r[7] * v[1] + r[8] * v[2],
    )


@part
def _rotate_back(r: Matrix, v: Vector) -> Vector:
    """Rᵀ v: into the rotated frame."""
    return (
        r[0] * v[0] + r[3] * v[1] + r[6] * v[2],
        r[1] * v[0] + r[4] * v[1] + r[7] * v[2],
        r[2] * v[0] + r[5] * v[1] + r[8] * v[2],
    )


@part
def _vector(rows: Doubles, row: int, column: int) -> Vector:
    return rows[row, column], rows[row, column + 1], rows[row, column + 2]


@part
def _put(rows: Doubles, row: int, column: int, value: Vector) -> None:
    rows[row, column], rows[row, column + 1], rows[row, column + 2] = value


@part
def _add_to(rows: Doubles, row: int, column: int, value: Vector) -> None:
    rows[row, column] += value[0]
    rows[row, column + 1] += value[1]
    rows[row, column + 2] += value[2]


@part
def _rotation_of(work: Doubles, body: int) -> Matrix:
    r = work[body + 1]
    return r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]


@part
def _motion_of(work: Doubles, body: int) -> tuple[Vector, Vector, Vector]:
    """Angular velocity, angular acceleration and specific force at the origin."""
    row = body + 1
    return _vector(work, row, _OMEGA), _vector(work, row, _ALPHA), _vector(work, row, _SPECIFIC_FORCE)


@part
def _joint_axes(tree: Tree, body: int) -> tuple[Vector, Vector]:
    """Angular and linear velocity of a body when its joint moves at unit speed, in its own frame."""
    return _vector(tree.axis, body, 0), _vector(tree.axis, body, 3)


@part
def _new_work(tree: Tree) -> Doubles:
    """Rows of the base and the bodies; the base accelerates upwards, which is what gravity is."""
    work = np.zeros((len(tree.parent) + 1, _WORK))
    gravity = tree.gravity
    _put(work, 0, _SPECIFIC_FORCE, (-gravity[0], -gravity[1], -gravity[2]))
    return work


@part
def _new_twists(n: int) -> Doubles:
    """Rows of n pairs, behind one of zeros for what carries a pair whose body nothing else moves."""
    return np.zeros((n + 1, _TWIST))


@part
def _move_body(tree: Tree, body: int, work: Doubles, q: Doubles, dq: Doubles, ddq: Doubles) -> None:
    """Fill a body's row of `work` from its parent's, for the motion q, dq, ddq of the coordinates.

    Source: Luh, Walker & Paul, J. Dyn. Sys. Meas. Control 102(2), 1980; gravity as a base that accelerates upwards.
    """
    row, parent = body + 1, tree.parent[body] + 1
    coordinate, factor = tree.coordinate[body], tree.factor[body]
    position, velocity, acceleration = factor * q[coordinate], factor * dq[coordinate], factor * ddq[coordinate]
    position += tree.offset[body]
    cosine, sine, fixed = math.cos(position), math.sin(position), tree.rotation[body]
    for k in range(9):
        work[row, k] = fixed[0, k] + cosine * fixed[1, k] + sine * fixed[2, k]
    origin = _add(_vector(tree.origin, body, 0), _scale(position, _vector(tree.slide, body, 0)))
    rotation, (omega, alpha, specific_force) = _rotation_of(work, body), _motion_of(work, parent - 1)
    specific_force = _add(specific_force, _add(_cross(alpha, origin), _cross(omega, _cross(omega, origin))))
    omega, alpha, specific_force = (
        _rotate_back(rotation, omega),
        _rotate_back(rotation, alpha),
        _rotate_back(rotation, specific_force),
    )
    # The joint's own part; one of its two axes is zero.
    rotation_axis, slide_axis = _joint_axes(tree, body)
    spin = _scale(velocity, rotation_axis)
    alpha = _add(alpha, _add(_scale(acceleration, rotation_axis), _cross(omega, spin)))
    specific_force = _add(
        specific_force, _add(_scale(acceleration, slide_axis), _scale(2.0 * velocity, _cross(omega, slide_axis)))
    )
    _put(work, row, _ORIGIN, origin)
    _put(work, row, _OMEGA, _add(omega, spin))
    _put(work, row, _ALPHA, alpha)
    _put(work, row, _SPECIFIC_FORCE, specific_force)


@kernel
def fill_torques(tree: Tree, links: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, out: Doubles) -> None:
    """Fill `out` with joint torques: forces and moments summed from the tips to the base.

    Args:
        tree: of the robot.
        links: standard parameters, shape (n_bodies, 10).
        q, dq, ddq, out: shape (n_samples, n_coordinates).
    """
    work = _new_work(tree)
    for k in range(len(q)):
        for body in range(len(tree.parent)):
            _move_body(tree, body, work, q[k], dq[k], ddq[k])
            _load_body(body, work, links[body])
        out[k] = 0.0
        for body in range(len(tree.parent) - 1, -1, -1):
            row, parent = body + 1, tree.parent[body] + 1
            force, moment = _vector(work, row, _FORCE), _vector(work, row, _MOMENT)
            rotation_axis, slide_axis = _joint_axes(tree, body)
            out[k, tree.coordinate[body]] += tree.factor[body] * (_dot(rotation_axis, moment) + _dot(slide_axis, force))
            rotation = _rotation_of(work, body)
            force = _rotate(rotation, force)
            moment = _add(_rotate(rotation, moment), _cross(_vector(work, row, _ORIGIN), force))
            _add_to(work, parent, _FORCE, force)
            _add_to(work, parent, _MOMENT, moment)


@part
def _load_body(body: int, work: Doubles, link: Doubles) -> None:
    """Set the force and the moment about its origin that move a body.

    They are m a + alpha × mc + omega × (omega × mc), and mc × a + I alpha + omega × (I omega).
    """
    omega, alpha, specific_force = _motion_of(work, body)
    first = (link[1], link[2], link[3])
    inertia = (link[4], link[5], link[6], link[5], link[7], link[8], link[6], link[8], link[9])
    force = _add(_scale(link[0], specific_force), _add(_cross(alpha, first), _cross(omega, _cross(omega, first))))
    moment = _add(_cross(first, specific_force), _add(_rotate(inertia, alpha), _cross(omega, _rotate(inertia, omega))))
    _put(work, body + 1, _FORCE, force)
    _put(work, body + 1, _MOMENT, moment)


@kernel
def fill_regressor(tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, out: Doubles) -> None:
    """Fill the regressor W.

    Args:
        tree: of the robot.
        q, dq, ddq: shape (n_samples, n_coordinates).
        out: W, shape (n_samples, n_coordinates, n_bodies, 10).
    """
    work, twists = _new_work(tree), _new_twists(len(tree.row))
    for k in range(len(q)):
        out[k] = 0.0
        for body in range(len(tree.parent)):
            _move_body(tree, body, work, q[k], dq[k], ddq[k])
            terms = _body_terms(body, work)
            for pair in range(tree.first[body], tree.first[body + 1]):
                _set_twist(tree, body, pair, work, twists)
                _set_columns(pair, terms, twists, out[k, tree.row[pair], body])


@kernel
def fill_slots(tree: Tree, slots: Slots, roots: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, out: Doubles) -> None:
    """Fill those slots of chosen columns that belong to links.

    Args:
        tree: of the robot.
        slots: where the chosen columns are.
        roots: what each row is multiplied by, shape (n_coordinates,).
        q, dq, ddq: shape (n_samples, n_coordinates).
        out: shape (n_slots, n_samples).
    """
    work, twists, ten = _new_work(tree), _new_twists(len(tree.row)), np.empty(10)
    for k in range(len(q)):
        for body in range(len(tree.parent)):
            _move_body(tree, body, work, q[k], dq[k], ddq[k])
            terms = _body_terms(body, work)
            for pair in range(tree.first[body], tree.first[body + 1]):
                _set_twist(tree, body, pair, work, twists)
                _set_columns(pair, terms, twists, ten)
                slot = slots.of_pair[pair]
                for chosen in range(slots.of_body[body], slots.of_body[body + 1]):
                    out[slot, k] = roots[tree.row[pair]] * ten[slots.column[chosen]]
                    slot += 1


@part
def _body_terms(body: int, work: Doubles) -> Terms:
    """Terms that all pairs of a body share: matrix S of its force, omega, alpha, specific force at its origin."""
    omega, alpha, specific_force = _motion_of(work, body)
    x, y, z = omega
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    spin = (
        0.0 - (yy + zz), xy - alpha[2], xz + alpha[1],
        xy + alpha[2], 0.0 - (xx + zz), yz - alpha[0],
        xz - alpha[1], yz + alpha[0], 0.0 - (xx + yy),
    )  # fmt: skip
    return spin, omega, alpha, specific_force


@part
def _set_columns(pair: int, terms: Terms, twists: Doubles, ten: Doubles) -> None:
    """Set the ten columns of a pair: the coordinate's torque against the body.

    The coordinate moves the body with the twist (z, v) per unit speed; its torque is then z · moment + v · force, with
    force m a + S mc, S = [alpha]× + omega omegaᵀ - omega² E, and moment mc × a + I alpha + omega × (I omega).
    """
    spin, omega, alpha, specific_force = terms
    z, v = _vector(twists, pair + 1, _ANGULAR), _vector(twists, pair + 1, _LINEAR)
    first = _add(_rotate_back(spin, v), _cross(specific_force, z))
    axis_times_omega = _cross(z, omega)
    ten[0], ten[1], ten[2], ten[3] = _dot(v, specific_force), first[0], first[1], first[2]
    ten[4] = z[0] * alpha[0] + axis_times_omega[0] * omega[0]
    ten[5] = z[0] * alpha[1] + z[1] * alpha[0] + axis_times_omega[0] * omega[1] + axis_times_omega[1] * omega[0]
    ten[6] = z[0] * alpha[2] + z[2] * alpha[0] + axis_times_omega[0] * omega[2] + axis_times_omega[2] * omega[0]
    ten[7] = z[1] * alpha[1] + axis_times_omega[1] * omega[1]
    ten[8] = z[1] * alpha[2] + z[2] * alpha[1] + axis_times_omega[1] * omega[2] + axis_times_omega[2] * omega[1]
    ten[9] = z[2] * alpha[2] + axis_times_omega[2] * omega[2]


@part
def _set_twist(tree: Tree, body: int, pair: int, work: Doubles, twists: Doubles) -> None:
    """Set the twist of a pair: what carries it, and the joint's own share."""
    _carry_twist(tree, body, tree.carried_from[pair], pair, tree.own[pair] * tree.factor[body], work, twists)


@part
def _carry_twist(tree: Tree, body: int, carried: int, to: int, share: float, work: Doubles, twists: Doubles) -> None:
    """Set twist `to` of a body from the one that carries it, -1 for none, and the joint's; its gradients to zero."""
    rotation_axis, slide_axis = _joint_axes(tree, body)
    rotation, carrier_omega = _rotation_of(work, body), _vector(twists, carried + 1, _ANGULAR)
    carrier_velocity = _add(
        _vector(twists, carried + 1, _LINEAR), _cross(carrier_omega, _vector(work, body + 1, _ORIGIN))
    )
    _put(twists, to + 1, _ANGULAR, _add(_rotate_back(rotation, carrier_omega), _scale(share, rotation_axis)))
    _put(twists, to + 1, _LINEAR, _add(_rotate_back(rotation, carrier_velocity), _scale(share, slide_axis)))
    _put(twists, to + 1, _BY_ANGULAR, (0.0, 0.0, 0.0))
    _put(twists, to + 1, _BY_LINEAR, (0.0, 0.0, 0.0))


# Derivatives of weighted sums, by reverse accumulation. The sum is L = Σ z · N + v · F over pairs of a coordinate and a
# body: N and F are moment and force about the body's origin of a body with the weights in place of its ten parameters,
# (z, v) the pair's twist. The gradients, derivatives of L by the quantities of the bodies' motion, are carried from the
# tips to the base, against the way that the motion came.


@kernel
def fill_regressor_gradients(tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, weights: Doubles, out: Doubles) -> None:
    """Fill the derivatives of Σ weights * W.

    Args:
        tree: of the robot.
        q, dq, ddq: shape (n_samples, n_coordinates).
        weights: of each element of W, shape (n_samples, n_coordinates, n_bodies, 10).
        out: derivatives by q, dq, ddq, shape (n_samples, 3 * n_coordinates).
    """
    work, twists, gradients = _new_work(tree), _new_twists(len(tree.row)), np.empty((len(tree.parent) + 1, 9))
    for k in range(len(q)):
        _move_pairs(tree, q[k], dq[k], ddq[k], work, twists)
        gradients[:] = 0.0
        out[k] = 0.0
        for body in range(len(tree.parent) - 1, -1, -1):
            for pair in range(tree.first[body], tree.first[body + 1]):
                _add_pair(body, pair, weights[k, tree.row[pair], body], work, twists, gradients)
                _pull_twist(tree, body, pair, tree.carried_from[pair], work, twists, out[k])
            _pull_motion(tree, body, dq[k], work, gradients, out[k])


@kernel
def fill_slot_gradients(
    tree: Tree, slots: Slots, q: Doubles, dq: Doubles, ddq: Doubles, weights: Doubles, out: Doubles
) -> None:
    """Fill the derivatives of Σ weights * columns, of the slots that belong to links.

    Args:
        tree, slots, q, dq, ddq: as of `fill_slots`.
        weights: of each column, shape (n_slots, n_samples).
        out: derivatives by q, dq, ddq, shape (n_samples, 3 * n_coordinates).
    """
    work, twists, gradients = _new_work(tree), _new_twists(len(tree.row)), np.empty((len(tree.parent) + 1, 9))
    ten = np.zeros(10)
    for k in range(len(q)):
        _move_pairs(tree, q[k], dq[k], ddq[k], work, twists)
        gradients[:] = 0.0
        out[k] = 0.0
        for body in range(len(tree.parent) - 1, -1, -1):
            ten[:] = 0.0
            for pair in range(tree.first[body], tree.first[body + 1]):
                slot = slots.of_pair[pair]
                for chosen in range(slots.of_body[body], slots.of_body[body + 1]):
                    ten[slots.column[chosen]] = weights[slot, k]
                    slot += 1
                _add_pair(body, pair, ten, work, twists, gradients)
                _pull_twist(tree, body, pair, tree.carried_from[pair], work, twists, out[k])
            _pull_motion(tree, body, dq[k], work, gradients, out[k])


@kernel
def fill_torque_gradients(
    tree: Tree, links: Doubles, q: Doubles, dq: Doubles, ddq: Doubles, weights: Doubles, out: Doubles
) -> None:
    """Fill the derivatives of Σ weights * torque.

    Like `fill_regressor_gradients`, with one pair a body: the twist of a robot whose coordinates move at speeds
    `weights`.

    Args:
        tree: of the robot.
        links: standard parameters, shape (n_bodies, 10).
        q, dq, ddq, weights: shape (n_samples, n_coordinates).
        out: derivatives by q, dq, ddq, shape (n_samples, 3 * n_coordinates).
    """
    bodies = len(tree.parent)
    work, twists, gradients = _new_work(tree), _new_twists(bodies), np.empty((bodies + 1, 9))
    for k in range(len(q)):
        for body in range(bodies):
            _move_body(tree, body, work, q[k], dq[k], ddq[k])
            speed = tree.factor[body] * weights[k, tree.coordinate[body]]
            _carry_twist(tree, body, tree.parent[body], body, speed, work, twists)
        gradients[:] = 0.0
        out[k] = 0.0
        for body in range(bodies - 1, -1, -1):
            _add_pair(body, body, links[body], work, twists, gradients)
            _pull_twist(tree, body, body, tree.parent[body], work, twists, out[k])
            _pull_motion(tree, body, dq[k], work, gradients, out[k])


@part
def _move_pairs(tree: Tree, q: Doubles, dq: Doubles, ddq: Doubles, work: Doubles, twists: Doubles) -> None:
    """Fill `work` and the twists of all pairs."""
    for body in range(len(tree.parent)):
        _move_body(tree, body, work, q, dq, ddq)
        for pair in range(tree.first[body], tree.first[body + 1]):
            _set_twist(tree, body, pair, work, twists)


@part
def _add_pair(body: int, pair: int, ten: Doubles, work: Doubles, twists: Doubles, gradients: Doubles) -> None:
    """Add gradients of z · N + v · F by the twist and by the body's motion.

    F = m a + alpha × h + omega × (omega × h), N = h × a + J alpha + omega × (J omega).
    """
    omega, alpha, specific_force = _motion_of(work, body)
    z, v = _vector(twists, pair + 1, _ANGULAR), _vector(twists, pair + 1, _LINEAR)
    mass, first = ten[0], (ten[1], ten[2], ten[3])
    inertia = (ten[4], ten[5], ten[6], ten[5], ten[7], ten[8], ten[6], ten[8], ten[9])
    momentum, axis_times_omega = _rotate(inertia, omega), _cross(z, omega)
    force = _add(_scale(mass, specific_force), _add(_cross(alpha, first), _cross(omega, _cross(omega, first))))
    moment = _add(_cross(first, specific_force), _add(_rotate(inertia, alpha), _cross(omega, momentum)))
    by_omega = _add(
        _add(_cross(momentum, z), _rotate(inertia, axis_times_omega)), _centrifugal_gradient(omega, v, first)
    )
    _add_to(twists, pair + 1, _BY_ANGULAR, moment)
    _add_to(twists, pair + 1, _BY_LINEAR, force)
    _add_to(gradients, body + 1, 0, by_omega)
    _add_to(gradients, body + 1, 3, _add(_rotate(inertia, z), _cross(first, v)))
    _add_to(gradients, body + 1, 6, _add(_scale(mass, v), _cross(z, first)))


@part
def _centrifugal_gradient(omega: Vector, a: Vector, b: Vector) -> Vector:
    """Slope of left · (omega × (omega × right)) by omega."""
    parallel, transverse = _scale(_dot(omega, b), a), _scale(_dot(omega, a), b)
    return _add(_add(parallel, transverse), _scale(-2.0 * _dot(a, b), omega))


@part
def _pull_twist(tree: Tree, body: int, pair: int, carried: int, work: Doubles, twists: Doubles, out: Doubles) -> None:
    """Carry the gradient by a body's twist to that which carries it, and to the joint's position."""
    z, v = _vector(twists, pair + 1, _ANGULAR), _vector(twists, pair + 1, _LINEAR)
    by_z, by_v = _vector(twists, pair + 1, _BY_ANGULAR), _vector(twists, pair + 1, _BY_LINEAR)
    _add_rotation(tree, body, _add(_cross(z, by_z), _cross(v, by_v)), out)
    rotation = _rotation_of(work, body)
    by_v = _rotate(rotation, by_v)
    by_z = _add(_rotate(rotation, by_z), _cross(_vector(work, body + 1, _ORIGIN), by_v))
    _add_to(twists, carried + 1, _BY_ANGULAR, by_z)
    _add_to(twists, carried + 1, _BY_LINEAR, by_v)
    _add_slide(tree, body, _cross(by_v, _vector(twists, carried + 1, _ANGULAR)), out)


@part
def _pull_motion(tree: Tree, body: int, dq: Doubles, work: Doubles, gradients: Doubles, out: Doubles) -> None:
    """Carry the gradients by a body's motion to its parent's, and to the joint's."""
    factor, coordinate, rows = tree.factor[body], tree.coordinate[body], len(tree.pair_of)
    velocity = factor * dq[coordinate]
    omega, alpha, specific_force = _motion_of(work, body)
    by_omega, by_alpha, by_specific_force = (
        _vector(gradients, body + 1, 0),
        _vector(gradients, body + 1, 3),
        _vector(gradients, body + 1, 6),
    )
    rotation_axis, slide_axis = _joint_axes(tree, body)
    _add_rotation(
        tree,
        body,
        _add(_cross(omega, by_omega), _add(_cross(alpha, by_alpha), _cross(specific_force, by_specific_force))),
        out,
    )
    # The joint's own part of the motion: a turning axis crossed with itself is nothing, so omega may be the whole.
    omega_gradient = _add(_cross(by_alpha, omega), by_omega)
    by_velocity = _dot(rotation_axis, omega_gradient) + _dot(slide_axis, _scale(2.0, _cross(by_specific_force, omega)))
    out[rows + coordinate] += factor * by_velocity
    out[2 * rows + coordinate] += factor * (_dot(rotation_axis, by_alpha) + _dot(slide_axis, by_specific_force))
    parent, rotation, origin = tree.parent[body], _rotation_of(work, body), _vector(work, body + 1, _ORIGIN)
    by_joint_motion = _add(
        _cross(_scale(velocity, rotation_axis), by_alpha), _scale(2.0 * velocity, _cross(slide_axis, by_specific_force))
    )
    by_omega = _rotate(rotation, _add(by_omega, by_joint_motion))
    by_alpha, by_specific_force = _rotate(rotation, by_alpha), _rotate(rotation, by_specific_force)
    omega, alpha, specific_force = _motion_of(work, parent)
    _add_to(gradients, parent + 1, 0, _add(by_omega, _centrifugal_gradient(omega, by_specific_force, origin)))
    _add_to(gradients, parent + 1, 3, _add(by_alpha, _cross(origin, by_specific_force)))
    _add_to(gradients, parent + 1, 6, by_specific_force)
    _add_slide(tree, body, _add(_cross(by_specific_force, alpha), _cross(omega, _cross(omega, by_specific_force))), out)


@part
def _add_rotation(tree: Tree, body: int, moment: Vector, out: Doubles) -> None:
    """Add the gradient by a rotation of the joint: it turns all vectors x that come into its frame, by -axis × x each.

    Args:
        tree: of the robot.
        body: that the joint moves.
        moment: Σ x × (gradient by x). The joint's own part of x, along the axis, drops out.
        out: derivatives of the sample.
    """
    rotation_axis, _ = _joint_axes(tree, body)
    out[tree.coordinate[body]] -= tree.factor[body] * _dot(rotation_axis, moment)


@part
def _add_slide(tree: Tree, body: int, by_origin: Vector, out: Doubles) -> None:
    """Add the gradient by a slide of the joint, which moves the origin of the body's frame."""
    out[tree.coordinate[body]] += tree.factor[body] * _dot(_vector(tree.slide, body, 0), by_origin)
