"""The paper's objective, its gradient and its Hessian against automatic differentiation."""

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.identification.zero_moment_point import ReducedParameters, mean_distance
from jointbench.identification.zero_moment_point.bounded_least_squares import Objective
from jointbench.identification.zero_moment_point.stance import Stance
from jointbench.tests.identification.zero_moment_point.simulated_stance import biped, simulated_stance
from jointbench.tests.identification.zero_moment_point.taylor import Taylor

POINT = np.array([0.25, 0.2, 0.1, 0.03, 9.0, 3.9, 3.1, 1.5])


@pytest.fixture(scope="module")
def stance() -> Stance:
    return simulated_stance(duration=8.0)


def differentiated(stance: Stance, reduced: ReducedParameters, phi: Array) -> Taylor:
    """The mean of squares from the sums of the paper, with nothing taken from the objective."""
    variables = Taylor.variables(phi)
    n = reduced.n_kinds
    standard = [Taylor(value, np.zeros(2 * n), np.zeros((2 * n, 2 * n))) for value in reduced.terms[:, 0]]
    for k in range(n):
        lc, m = variables[k], variables[n + k]
        for power, factor in enumerate((m, m * lc, m * lc * lc)):
            for row in np.flatnonzero(reduced.terms[:, 1 + power * n + k]):
                standard[row] = standard[row] + factor * float(reduced.terms[row, 1 + power * n + k])
    total: Taylor | float = 0.0
    for columns, measured in zip(stance.columns, stance.measured, strict=True):
        x, y, force = (
            sum((standard[i] * float(row[i]) for i in np.flatnonzero(row)), start=variables[0] * 0.0) for row in columns
        )
        for coordinate, value in zip((x, y), measured, strict=True):
            off = coordinate / force - float(value)
            total = off * off + total
    assert isinstance(total, Taylor)
    return total * (1.0 / len(stance.measured))


@pytest.mark.parametrize("rotary", ["cad", "none"])
def test_gradient_and_hessian_are_those_of_automatic_differentiation(stance: Stance, rotary: str) -> None:
    reduced = ReducedParameters(biped(), "cad" if rotary == "cad" else "none")
    exact = differentiated(stance, reduced, POINT)
    found = Objective(stance, reduced)(POINT)

    assert found.value == pytest.approx(exact.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, exact.gradient, rtol=1e-9, atol=1e-12 * np.abs(exact.gradient).max())
    np.testing.assert_allclose(found.hessian, exact.hessian, rtol=1e-9, atol=1e-12 * np.abs(exact.hessian).max())


def test_the_differentiation_itself_knows_a_quotient() -> None:
    """f = x²/y at (3, 2), by hand."""
    x, y = Taylor.variables(np.array([3.0, 2.0]))
    f = x * x / y
    assert f.value == pytest.approx(4.5)
    np.testing.assert_allclose(f.gradient, [3.0, -2.25])
    np.testing.assert_allclose(f.hessian, [[1.0, -1.5], [-1.5, 2.25]])


def test_where_all_masses_grow_together_the_point_stays(stance: Stance) -> None:
    """So that H of all eight parameters is no definite one, and the paper's descent is steepest descent."""
    reduced = ReducedParameters(biped(), "none")
    heavier = POINT.copy()
    heavier[4:] *= 1.1
    both = [mean_distance(stance, reduced.standard(each)) for each in (POINT, heavier)]
    # The links of no kind, 6 % of the mass, do not grow with them.
    assert both[0] == pytest.approx(both[1], rel=0.02)
    assert np.linalg.eigvalsh(Objective(stance, reduced)(POINT).hessian)[0] < 0.0
