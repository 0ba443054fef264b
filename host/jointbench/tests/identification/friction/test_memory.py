"""Friction with memory: its columns by hand, recovery of known friction, and which carriers the rows ask for."""

import numpy as np
import pytest

from jointbench.arrays import Array
from jointbench.errors import FitError
from jointbench.identification.friction.memory import Carriers, FrictionWithMemory, fit_with_memory

STEP = 1e-3
NOISE_NM = 0.02
SMALL = Carriers(widths=(0.004, 0.016), thresholds=(0.0005, 0.002), stribeck_speeds=(0.1,))


def motion(seed: int, n: int = 12000) -> tuple[Array, Array, Array]:
    """Position, velocity and load of a swing with five harmonics."""
    rng = np.random.default_rng(seed)
    time = STEP * np.arange(n)
    q = 0.4 * np.sin(np.outer(time, np.pi * np.arange(1, 6) / 6.0) + rng.uniform(0, 6, 5)) @ rng.uniform(0.2, 1, 5)
    return q, np.gradient(q, STEP), 15.0 * np.sin(q)


def torque(family: str, q: Array, v: Array, load: Array) -> Array:
    """Friction of one of two joints, each with a carrier between those of the grid."""
    turning = np.tanh(v / 0.01) if family == "speed" else by_stops(q, 0.0008)
    return (3.0 + 0.05 * np.abs(load)) * turning


def by_stops(q: Array, threshold: float) -> Array:
    """The stop operator written out."""
    state, out = 0.0, np.empty_like(q)
    for k in range(len(q)):
        state = float(np.clip(state + (q[k] - q[k - 1] if k else 0.0), -threshold, threshold))
        out[k] = state / threshold
    return out


def test_columns_by_hand():
    q = np.array([0.0, 0.0003, 0.0009, 0.0008, 0.0001])
    v, load = np.full(5, 0.008), np.array([-2.0, 0.0, 1.0, 3.0, -4.0])
    columns = SMALL.columns(q, v, load)
    assert columns.shape == (5, SMALL.n_columns)
    by_name = dict(zip(SMALL.names, columns.T, strict=True))
    assert by_name["tanh(v/0.004)"] == pytest.approx(np.full(5, np.tanh(2.0)))
    # 0.0003, 0.0009 clipped to 0.0005, then back by 0.0001 and 0.0007
    assert by_name["stop(0.0005)"] == pytest.approx(np.array([0.0, 0.6, 1.0, 0.8, -0.6]))
    assert by_name["stop(0.0005)·|load|"] == pytest.approx(np.array([0.0, 0.0, 1.0, 2.4, -2.4]))
    assert by_name["stop(0.002)·exp(-(v/0.1)²)"][1] == pytest.approx(0.15 * np.exp(-0.0064))


def test_a_stop_gives_back_less_than_it_took():
    q, v, load = motion(1)
    weights = np.random.default_rng(2).uniform(0, 1, SMALL.n_columns)
    power = SMALL.columns(q, v, load) @ weights * v
    # Of stops some is stored and given back; over a swing that ends where it began friction only takes energy.
    assert np.sum(power) * STEP > 0.0


@pytest.mark.parametrize("family", ["speed", "distance"])
def test_known_friction_is_recovered_on_other_motion(family: str):
    carriers = Carriers()
    q, v, load = motion(1)
    noise = NOISE_NM * np.random.default_rng(3).standard_normal(len(q))
    free = np.stack([np.ones_like(v), v], axis=1)
    measured = 0.3 + 4.0 * v + torque(family, q, v, load) + noise
    p, friction = fit_with_memory(carriers, free, carriers.columns(q, v, load), measured)
    assert friction.family.startswith(family)
    assert "load" in friction.family
    assert min(friction.weights) >= 0.0
    q, v, load = motion(4)
    truth = 0.3 + 4.0 * v + torque(family, q, v, load)
    found = p[0] + p[1] * v + friction.torque(q, v, load)
    # The true width lies between those of the grid, which is a factor of 2 wide: 1 % of the friction is left.
    settled = slice(500, None)  # the stops begin in their middle
    assert np.sqrt(np.mean((found - truth)[settled] ** 2)) < 0.01 * 3.0 + NOISE_NM
    assert friction.steady(np.array([0.3]), np.array([0.0])) + 4.0 * 0.3 == pytest.approx(3.0 + 1.2, abs=0.05)


def test_a_law_of_speed_cannot_tell_friction_over_distance():
    q, v, load = motion(1)
    free = np.stack([np.ones_like(v), v], axis=1)
    measured = torque("distance", q, v, load)
    by_speed = Carriers(thresholds=())
    told = fit_with_memory(by_speed, free, by_speed.columns(q, v, load), measured).friction
    both = fit_with_memory(Carriers(), free, Carriers().columns(q, v, load), measured).friction
    assert min(both.held_out_rms.values()) < 0.1 * min(told.held_out_rms.values())


@pytest.mark.parametrize("seed", range(3))
def test_stops_know_no_rate_and_never_leave_their_range(seed: int):
    """However fast a path is gone, and however it is sampled between its reversals, they stand where it ends alike."""
    rng = np.random.default_rng(seed)
    turns = np.cumsum(rng.normal(0.0, 0.002, 40))
    slow = np.interp(np.linspace(0.0, 39.0, 3901), np.arange(40), turns)
    sampled = np.unique(np.concatenate([rng.uniform(0.0, 39.0, 300), np.arange(40)]))
    quick = np.interp(sampled, np.arange(40), turns)
    carriers = Carriers()
    ends = [carriers.stops(path)[-1] for path in (turns, slow, quick)]
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)
    np.testing.assert_allclose(ends[2], ends[0], atol=1e-9)
    whole = carriers.stops(quick)
    assert np.abs(whole).max() == 1.0
    later = carriers.stops(quick[150:], whole[149], float(quick[149]))
    np.testing.assert_allclose(later, whole[150:], atol=1e-12)
    np.testing.assert_allclose(carriers.stops(-quick), -whole, atol=1e-12)


def test_weights_are_recovered_as_well_as_the_noise_allows():
    """Weights far from zero have no bound to feel: over draws of noise they spread by the Cramér–Rao bound."""
    carriers = Carriers((0.01,), (0.0008,), (), load=False)
    q, v, load = motion(1, 4000)
    columns, free = carriers.columns(q, v, load), np.stack([np.ones_like(v), v], axis=1)
    truth = np.array([0.3, 4.0, 1.5, 2.5])
    both = np.hstack([free, columns])
    bound = NOISE_NM * np.sqrt(np.diag(np.linalg.inv(both.T @ both)))
    rng, draws = np.random.default_rng(7), 40
    found: list[Array] = []
    for _ in range(draws):
        measured = both @ truth + NOISE_NM * rng.standard_normal(len(v))
        p, friction = fit_with_memory(carriers, free, columns, measured)
        found.append(np.concatenate([p, friction.weights]))
    deviations = (np.array(found) - truth) / bound
    # Their mean is 0 and their spread 1, to three deviations of what 40 draws tell of these.
    assert np.abs(deviations.mean(axis=0)).max() < 3.0 / np.sqrt(draws)
    assert np.abs(deviations.std(axis=0) - 1.0).max() < 3.0 / np.sqrt(2.0 * draws)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_columns_come_in_pieces_as_at_once(most: int):
    q, v, load = motion(2, 300)
    stops = SMALL.stops(q)
    pieces = [each.columns(q, v, load, stops[:, part]) for each, part in SMALL.pieces(most)]
    assert len(pieces) == (4 if most == 1 else 2)
    np.testing.assert_array_equal(np.hstack(pieces), SMALL.columns(q, v, load))


def test_a_compact_friction_is_the_same():
    carriers = Carriers(load=True)
    q, v, load = motion(2, 500)
    weights = np.zeros(carriers.n_columns)
    for name, weight in (("tanh(v/0.016)·|load|", 0.1), ("stop(0.0008)", 2.0), ("stop(0.0064)·exp(-(v/0.1)²)", 1.0)):
        weights[carriers.names.index(name)] = weight
    whole = FrictionWithMemory(carriers, weights, "by hand", {})
    compact = whole.compact
    assert (compact.carriers.widths, compact.carriers.stribeck_speeds) == ((0.016,), (0.1,))
    assert compact.used == whole.used
    np.testing.assert_allclose(compact.torque(q, v, load), whole.torque(q, v, load), atol=1e-12)
    unloaded = FrictionWithMemory(carriers, np.where(weights == 2.0, 2.0, 0.0), "by hand", {}).compact
    assert (unloaded.carriers.load, len(unloaded.weights)) == (False, 1)


def test_too_few_rows_are_refused():
    q, v, load = motion(1, 19)
    with pytest.raises(FitError, match=r"19 rows are too few .*; at least 20 are needed"):
        fit_with_memory(SMALL, np.stack([v, v], axis=1), SMALL.columns(q, v, load), v)
