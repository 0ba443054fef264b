"""Search for physically consistent parameters without units, every link relative to its reference body."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FitError, NumericalError
from jointbench.files import foreign_code
from jointbench.identification.physical.physical_parameters import BaseEstimate, PhysicalParameters
from jointbench.identification.physical.pseudo_inertia import (
    PRIORS,
    UNIT,
    Prior,
    PriorName,
    ReferenceBodies,
    as_matrix,
    make_prior,
    reference_bodies,
    relative_to,
)
from jointbench.identification.physical.solvers import Around, FreeNumbers, solve_conic, solve_newton
from jointbench.model import PARAMETER_NAMES, compensation_parameter_names, drive_parameter_names

_WIDTH = len(PARAMETER_NAMES)


@dataclass(frozen=True, eq=False)
class PhysicalProblem:
    """Find x so that ½ |rows @ x - values|² is least, every link is a body, and what must not be negative is not.

    Attributes:
        estimate: what is asked for.
        bodies: what links are relative to.
        scaling: T of full parameters = T @ x; rows of neglected links are zero, shape (n_full, n).
        rows, values: of the estimate [σ], shape (n_told, n) and (n_told,).
        signed: indices of x that must not be negative: rotor inertia and friction.
        prior: of x.
    """

    estimate: BaseEstimate
    bodies: ReferenceBodies
    scaling: Array
    rows: Array
    values: Array
    signed: NDArray[np.intp]
    prior: Prior

    @classmethod
    def of(cls, estimate: BaseEstimate, prior: PriorName, drives: tuple[Array, Array] | None = None) -> PhysicalProblem:
        """Set it up for an estimate, with a prior by name; `drives` as of `physical_parameters`."""
        base = estimate.base
        bodies = reference_bodies(base.robot)
        first = _WIDTH * base.robot.n_links
        n = _WIDTH * len(bodies.links) + base.n_full - first
        scaling = np.zeros((base.n_full, n))
        for place, (link, matrix) in enumerate(zip(bodies.links, bodies.matrices, strict=True)):
            block = slice(_WIDTH * place, _WIDTH * (place + 1))
            scaling[_WIDTH * link : _WIDTH * (link + 1), block] = relative_to(matrix)
        free = compensation_parameter_names(base.robot)
        signed = np.array(
            [not name.endswith(".offset") and name not in free for name in base.full_names[first:]], dtype=np.bool_
        )
        thought, units = drives or _drives(estimate, signed)
        places = np.arange(n - len(units), n)
        scaling[first + np.arange(len(units)), places] = units
        rows = estimate.root @ base.grouping @ scaling
        center = np.concatenate([np.tile(UNIT, len(bodies.links)), thought / units])
        return cls(
            estimate=estimate,
            bodies=bodies,
            scaling=scaling,
            rows=rows,
            values=estimate.root @ estimate.values,
            signed=places[signed],
            prior=make_prior(prior, len(bodies.links), center, rows),
        )

    @property
    def inside(self) -> Array:
        """The prior's center, moved away from the edge of what is possible, shape (n,)."""
        start = self.prior.center.copy()
        start[self.signed] = np.maximum(start[self.signed], 0.1)
        return start

    def smallest_eigenvalues(self, x: Array) -> Array:
        """Return the smallest eigenvalue of each link with parameters relative to its reference body, (n_bodies,)."""
        relative = as_matrix(x[: _WIDTH * len(self.bodies.links)].reshape(-1, _WIDTH))
        return np.linalg.eigvalsh(relative)[:, 0].astype(np.float64)

    def with_estimate(self) -> Array:
        """The parameters nearest to the prior's center that give the estimate exactly, possible or not, shape (n,)."""
        told, equations, inverse, _ = self._split
        return self.prior.center + inverse @ (told @ self.estimate.values - equations @ self.prior.center)

    @property
    def exactly(self) -> Around:
        """All parameters that give the estimate exactly, possible or not."""
        nothing = np.zeros(self.untold.shape[1])
        return Around(self.with_estimate(), self.untold, nothing, nothing)

    def anywhere(self, unit: float = 1.0) -> Around:
        """All parameters; those the data tell have the price of their distance from the estimate [unit² σ²].

        Around those that estimate and prior's center, one for each σ, make together, and along the singular vectors of
        the rows: what the data hardly tell is then near the center, and not wherever its noise has put it.
        """
        n = len(self.prior.center)
        away = self.values - self.rows @ self.prior.center
        both = np.vstack([self.rows, np.eye(n)]), np.concatenate([away, np.zeros(n)])
        origin = self.prior.center + np.linalg.lstsq(*both)[0]
        u, s, vt = np.linalg.svd(self.rows, full_matrices=False)
        lengths = 1.0 / np.maximum(s / unit, 1.0)
        root = s * lengths / unit
        slope = root * (u.T @ (self.rows @ origin - self.values)) / unit
        nothing = np.zeros(self.untold.shape[1])
        return Around(
            origin=origin,
            directions=np.hstack([vt.T * lengths, self.untold]),
            stiffness=np.concatenate([root**2, nothing]),
            slope=np.concatenate([slope, nothing]),
        )

    @property
    def by_sigma(self) -> Array:
        """Derivative of x by the data's residual: rows @ by_sigma = E, shape (n, n_told)."""
        told, _, inverse, _ = self._split
        return inverse @ np.linalg.inv(self.estimate.root @ told.T)

    @property
    def untold(self) -> Array:
        """Directions of x that change nothing the data tell, orthonormal, shape (n, n - n_told)."""
        return self._split[3]

    @cached_property
    def _split(self) -> tuple[Array, Array, Array, Array]:
        """Told rows of base parameters, what they are of x, the pseudo-inverse of that, and untold directions of x.

        Not from `rows`, whose information differs by many orders of magnitude, but from rows of the same span.
        """
        told = np.linalg.svd(self.estimate.root, full_matrices=False)[2]
        equations = told @ self.estimate.base.grouping @ self.scaling
        u, s, vt = np.linalg.svd(equations)
        return told, equations, (vt[: len(s)].T / s) @ u.T, vt[len(s) :].T


def _drives(estimate: BaseEstimate, signed: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the prior of each parameter of drives and compensations, and a unit of its size [SI].

    Known ones are thought to be what the drive says; others what the estimate says where it tells them, so that they
    stay, and else nothing.
    """
    base = estimate.base
    if not len(signed):
        return np.zeros(0), np.zeros(0)
    led = dict(zip(base.columns.tolist(), np.where(estimate.root.any(axis=0), estimate.values, 0.0), strict=True))
    first = _WIDTH * base.robot.n_links
    estimated = np.array([led.get(first + k, 0.0) for k in range(len(signed))])
    thought = np.where(signed, np.maximum(estimated, 0.0), estimated)
    known = base.known_beside_links
    thought = np.where(np.isfinite(known), known, thought)
    units = np.maximum(np.abs(thought), np.abs(estimated))
    return thought, np.where(units > 0.0, units, 1.0)


Method = Literal["lmi", "log_cholesky"]
METHODS: tuple[Method, ...] = ("lmi", "log_cholesky")

MARGIN = 1e-5
"""Default share of its reference body that each link contains at least: as thin as 0.3 % of it."""

_LARGEST_MARGIN = 0.01

SLIGHT: dict[PriorName, float] = {"uniform": 1e-6, "observability": 1e-6, "log_det": 1e-4}
"""Weight of each prior [σ²] where the data shall rule and the estimate is impossible. It chooses among what gives the
same base parameters, and costs them less than weight * prior: some hundredths of a σ. Without any, parameters at the
edge of what is possible have no neighbours that give the same, and nothing chooses. Log det grows slowly."""

_UNITS = (1.0, 1e2, 1e4, 1e6)
"""Unit of distance [σ] in the conic program. Where an estimate is thousands of σ from all that is possible, the edge or
a slight weight is lost in rounding: then a larger unit, and a slight prior counts as if σ were that."""

_NOTHING = 1e-6
"""Distance [σ] at which base parameters count as the estimate's own."""

_MOST_ROUNDING = 1e-3
"""What a solver may leave of a link outside, relative to its reference; 1e-9 is usual, and 1e-5 seen of estimates that
are thousands of σ from all that is possible."""


@foreign_code(
    NumericalError,
    "the search for physically possible parameters has equations without a solution",
    "look at the fit that the estimate is of: its σ, and spikes in its torques",
    (LinAlgError,),
)
def physical_parameters(
    estimate: BaseEstimate,
    *,
    prior: PriorName = "log_det",
    weight: float | None = None,
    margin: float = MARGIN,
    method: Method = "lmi",
    drives: tuple[Array, Array] | None = None,
) -> PhysicalParameters:
    """Find parameters of all links and drives that a robot can have, nearest to an estimate of what the data tell.

    Without a weight the data rule: of all base parameters that are possible those nearest to the estimate in its own
    metric, min |root (b - estimate)|², and of the many standard parameters that give these the ones nearest to the
    prior. With a weight both are weighed: min ½ |root (b - estimate)|² + weight * prior.
    Possible means a pseudo-inertia P ⪰ margin * P_reference of each link, and no negative rotor inertia or friction.

    Args:
        estimate: base parameters and their information.
        prior: what is thought beforehand: the robot's file where it gives a link, else a ball of its size. "uniform":
            squares relative to it; "observability": the same, less where the data tell more; "log_det": the divergence
            of log det, which keeps away from the edge by itself.
        weight: None, or how much the prior counts [σ²]: its squares are relative, so 1 / 0.1² for a file that is
            thought right to a tenth.
        margin: share of its reference body that each link contains at least, above 0 and up to 0.01.
        method: "lmi", an interior-point solver with matrix cones, or "log_cholesky", Newton's method without
            constraints; they agree, the second less exactly where no weight is given.
        drives: what is thought of each parameter of drives and compensations and the unit of its squares [SI], shape
            (n_full - 10 * n_links,) each. None: what the robot's file says, else what the estimate does; so they stay,
            which is right where the data tell them.

    Returns:
        The parameters, and how far they are from the estimate.

    Raises:
        FitError: prior, weight, margin or method is not one of these.
        NumericalError: the search ends without an answer.

    Source: Sousa & Cortesão, IJRR 33(6), 2014 (the nearest possible base parameters); Wensing, Kim & Slotine,
    IEEE RA-L 3(1), 2018; Lee, Wensing & Park, IEEE T-RO 36(1), 2020; Rucker & Wensing, IEEE RA-L 7(2), 2022.
    """
    _check(prior, weight, margin, method)
    problem = PhysicalProblem.of(estimate, prior, drives)
    search = _by_cones if method == "lmi" else _by_newton
    x, status = search(problem, weight, SLIGHT[prior], margin)
    return _result(problem, x, margin, method, prior, status)


def _by_cones(problem: PhysicalProblem, weight: float | None, slight: float, margin: float) -> tuple[Array, str]:
    """Return the solution with no weight given: among what gives the estimate itself, else with a slight weight."""
    if weight is None:
        try:
            solution = solve_conic(problem.exactly, problem.prior, 1.0, problem.signed, margin)
            if solution.possible and problem.smallest_eigenvalues(solution.x).min(initial=margin) > 0.5 * margin:
                return solution.x, solution.status
        except NumericalError:
            pass  # at the very edge neither is proven; what is weighed is then next to it
    failure = NumericalError()
    for unit in _UNITS:
        counts = slight if weight is None else weight / unit**2
        try:
            solution = solve_conic(problem.anywhere(unit), problem.prior, counts, problem.signed, margin)
        except NumericalError as error:
            failure = error
            continue
        if problem.smallest_eigenvalues(solution.x).min(initial=margin) > -_MOST_ROUNDING:
            return solution.x, solution.status
        failure = NumericalError(f"the conic solver says {solution.status!r} and leaves links outside; give a weight")
    raise failure


def _by_newton(problem: PhysicalProblem, weight: float | None, slight: float, margin: float) -> tuple[Array, str]:
    """The same; but the search goes on among what gives the estimate where that is reached from what is weighed."""
    numbers = FreeNumbers(problem.prior.n_bodies, problem.signed, margin)
    x, steps = solve_newton(problem.anywhere(), problem.prior, weight or slight, numbers, problem.inside)
    if weight is None:
        missing = problem.by_sigma @ (problem.values - problem.rows @ x)
        if numbers.room(x, missing) > 1.0:
            x, more = solve_newton(problem.exactly, problem.prior, 1.0, numbers, x + missing)
            steps += more
    return x, f"solved in {steps} steps of Newton's method"


def _result(
    problem: PhysicalProblem, x: Array, margin: float, method: str, prior: str, status: str
) -> PhysicalParameters:
    estimate, robot = problem.estimate, problem.estimate.base.robot
    x = _without_rounding(problem, x, margin)
    full = problem.scaling @ x
    first = len(drive_parameter_names(robot))
    ends = [first, first + len(compensation_parameter_names(robot))]
    drives, compensations, further = np.split(full[10 * robot.n_links :], ends)
    least = np.full(robot.n_links, np.nan)
    least[list(problem.bodies.links)] = problem.smallest_eigenvalues(x)
    return PhysicalParameters(
        estimate=estimate,
        standard_parameters=full[: 10 * robot.n_links],
        drive_parameters=drives,
        compensation_parameters=compensations,
        further_parameters=further,
        smallest_eigenvalues=least,
        margin=margin,
        unchanged=estimate.distance(estimate.base.group(full)) < _NOTHING,
        method=method,
        prior=prior,
        status=status,
        notes=tuple(
            f"link {name!r}: what the robot's file says of it is flat or impossible; a thicker body is its reference"
            for name in problem.bodies.thickened
        ),
    )


def _without_rounding(problem: PhysicalProblem, x: Array, margin: float) -> Array:
    """The parameters with what the solver left outside: drawn towards the reference, which is possible, far enough.

    Raises:
        NumericalError: more is missing than rounding leaves.
    """
    x = x.copy()
    x[problem.signed] = np.maximum(x[problem.signed], 0.0)
    least = problem.smallest_eigenvalues(x)
    if not len(least) or least.min() >= 0.5 * margin:
        return x
    if least.min() < -_MOST_ROUNDING:
        worst = problem.estimate.base.robot.joints[problem.bodies.links[int(least.argmin())]].link.name
        raise NumericalError(
            f"link {worst!r} is left outside what is possible by {-least.min():.2g} of its reference body, which is "
            f"more than rounding; give the prior a weight, or take method='log_cholesky'"
        )
    share = (margin - least.min()) / (1.0 - least.min())
    return x + share * (problem.inside - x)


def _check(prior: str, weight: float | None, margin: float, method: str) -> None:
    if prior not in PRIORS:
        raise FitError(f"prior {prior!r} is not known; the priors are {', '.join(PRIORS)}")
    if method not in METHODS:
        raise FitError(f"method {method!r} is not known; the methods are {', '.join(METHODS)}")
    if weight is not None and not (np.isfinite(weight) and weight > 0.0):
        raise FitError(
            f"weight {weight!r} of the prior is not allowed; give a positive one, or None to let the data rule"
        )
    if not 0.0 < margin <= _LARGEST_MARGIN:
        raise FitError(f"margin {margin!r} is not allowed; give a share above 0 and up to {_LARGEST_MARGIN}")
