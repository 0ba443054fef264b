"""What is left unexplained is noise, or follows from what was left unexplained before."""

import dataclasses

import numpy as np
import pytest
from scipy import signal, stats

from jointbench.arrays import Array
from jointbench.identification import fit, validate
from jointbench.identification.whiteness import (
    STRUCTURED_SHARE,
    WHITE_SHARE,
    Whiteness,
    WhitenessSums,
    whiteness,
)
from jointbench.signals import LowPass
from jointbench.tests.identification.synthetic import arm, synthetic_run

N = 2000


def everywhere(values: Array) -> np.ndarray:
    return np.ones(values.shape, dtype=np.bool_)


def autoregressive(correlation: float, seed: int = 0, n: int = N) -> Array:
    noise = np.random.default_rng(seed).standard_normal((n + 500, 1))
    return signal.lfilter([1.0], [1.0, -correlation], noise, axis=0)[500:]


@pytest.mark.parametrize("correlation", [0.0, 0.3, -0.5, 0.9])
def test_share_and_correlation_of_a_known_process(correlation: float):
    """Of an autoregression of first order ρ² follows from the row before, and neighbours correlate by ρ."""
    residual = autoregressive(correlation)
    found = whiteness(residual, everywhere(residual))
    # 2000 rows tell a correlation to 0.022 and ρ² to 2 ρ of that; five fitted coefficients add 5/2000.
    assert found.predictable[0] == pytest.approx(correlation**2, abs=0.01 + 0.1 * abs(correlation))
    np.testing.assert_allclose(found.correlation[0, :3], [correlation, correlation**2, correlation**3], atol=0.1)


def test_white_noise_is_called_coloured_as_often_as_it_says():
    """Noise of any changing size: that is what an ordinary portmanteau is fooled by."""
    rng = np.random.default_rng(0)
    size = np.exp(1.5 * np.sin(np.arange(N) / 30.0))[:, None]
    p_values = np.array(
        [whiteness(size * rng.standard_normal((N, 6)), np.ones((N, 6), bool)).p_value for _ in range(60)]
    )
    # 360 draws: 5 % with a standard error of 1.2 %.
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.04)
    ordinary = np.array([_ljung_box(size[:, 0] * rng.standard_normal(N)) for _ in range(60)])
    assert np.mean(ordinary < 0.05) > 0.2


def _ljung_box(residual: Array) -> float:
    lags = np.arange(1, 21)
    correlation = np.array([residual[lag:] @ residual[:-lag] for lag in lags]) / (residual @ residual)
    return float(stats.chi2.sf(N * (N + 2) * np.sum(correlation**2 / (N - lags)), 20))


def test_correlation_is_found():
    residual = autoregressive(0.2)
    assert whiteness(residual, everywhere(residual)).p_value[0] < 1e-6


def test_words_and_what_they_advise():
    residual = np.hstack([autoregressive(rho, seed) for seed, rho in enumerate((0.0, 0.5, 0.9))])
    found = whiteness(residual, everywhere(residual))
    assert found.words == ("white", "coloured", "structured")
    assert WHITE_SHARE < found.predictable[1] <= STRUCTURED_SHARE < found.predictable[2]
    assert "j2 2" in found.sentence(("j1", "j2", "j3"))
    assert "j1" not in found.sentence(("j1", "j2", "j3"))
    assert "trust the held-out error" in found.sentence(("j1", "j2", "j3"))
    assert "most often friction: try `jointbench fit RUN --friction choose`" in found.sentence(("j1", "j2", "j3"))
    alone = whiteness(residual[:, :1], everywhere(residual[:, :1]))
    assert alone.sentence(("j1",)).startswith("The residuals are noise: at most 0% of their power")


def test_the_low_pass_alone_stays_white():
    low_pass = LowPass(20.0, 0.001)
    rows = low_pass.apply(np.random.default_rng(0).standard_normal((100_000, 1)))[:: low_pass.stride]
    found = whiteness(rows, everywhere(rows))
    assert 0.01 < found.predictable[0] < 0.05
    assert found.words == ("white",)


def test_blocks_gaps_and_rows_left_out():
    residual, used = autoregressive(0.6), np.random.default_rng(1).random((N, 1)) > 0.05
    whole = whiteness(residual, used)
    for size in (3, 19, 500):
        sums = WhitenessSums(1)
        for start in range(0, N, size):
            sums.add(start, residual[start : start + size], used[start : start + size])
        parts = sums.result()
        np.testing.assert_allclose(parts.correlation, whole.correlation, rtol=1e-9)  # sums in another order
        np.testing.assert_allclose(parts.p_value, whole.p_value, rtol=1e-6)
    apart = WhitenessSums(1)
    for start in range(0, N, 100):  # the same rows in pieces of 100, with gaps between
        apart.add(2 * start, residual[start : start + 100], used[start : start + 100])
    np.testing.assert_allclose(apart.result().correlation[0, :3], whole.correlation[0, :3], atol=0.05)


def test_too_few_rows_tell_nothing():
    few = whiteness(np.ones((50, 2)), np.ones((50, 2), dtype=np.bool_))
    assert few.words == ("unknown", "unknown")
    assert few.sentence(("a", "b")) == "There are too few rows to tell whether the residuals are noise."
    read = Whiteness.from_dict(Whiteness.unknown(2).to_dict())
    np.testing.assert_array_equal(read.correlation, few.correlation)


def test_a_constant_residual_is_no_noise():
    found = whiteness(np.ones((500, 1)), np.ones((500, 1), dtype=np.bool_))
    assert found.predictable[0] > 0.99


def test_a_model_without_what_its_robot_has_leaves_structure():
    """Noise is left of a right model; of one that lacks friction, friction."""
    robot = arm(3)
    run = synthetic_run(robot, motion_seed=1, noise_seed=1)
    model = fit(run)
    assert set(model.whiteness.words) == {"white"}
    other = synthetic_run(robot, motion_seed=2, noise_seed=2)
    # On another motion the parameters' own errors are left over as well, which are no noise.
    assert set(validate(model, other).whiteness.words) <= {"white", "coloured"}
    lacking = model.parameters.copy()
    lacking[model.names.index("j2.coulomb")] = 0.0
    check = validate(dataclasses.replace(model, parameters=lacking), other)
    assert check.whiteness.words[1] == "structured"
    assert "structured" not in (check.whiteness.words[0], check.whiteness.words[2])
