"""What `./run bench regressor` is made of: the arms, the peer, the race, two processes, and what it says of them."""

import importlib

import numpy as np
import pytest

from jointbench.dynamics import base_parameters, regressor
from tools.bench import regressor as peer_module
from tools.bench.__main__ import VERBS
from tools.bench.peers import BenchmarkFailed
from tools.bench.regressor import (
    FILL,
    NORMAL,
    PEER,
    REGRESSOR,
    TORQUES,
    Peer,
    Start,
    Times,
    _start,
    disagreement,
    make_checks,
    race,
    robots,
    starts_table,
    times_table,
    two_starts,
)

STARTS = (Start(1.0, 9.0, 3, 0), Start(1.0, 1.0, 0, 3))


def times_of(name: str, size: int, **seconds: float) -> Times:
    given = {PEER: 10.0, REGRESSOR: 1.0, FILL: 0.5, TORQUES: 0.2, NORMAL: 1.0} | seconds
    return Times(name, size, {method: np.full(3, 1e-6 * size * value) for method, value in given.items()})


def test_the_verb_is_there() -> None:
    assert "regressor" in VERBS


@pytest.mark.parametrize(("arm", "rank"), list(zip(robots(), (36, 43), strict=True)), ids=["UR10", "Panda"])
def test_the_arms_are_those_that_others_time(arm, rank: int) -> None:
    """As many base parameters as their makers' URDF files give."""
    assert base_parameters(arm, drives=False).rank == rank


def test_the_peer_agrees_and_a_wrong_one_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = robots()[1]
    assert disagreement(arm, seed=3, n_samples=50) < 1e-13
    monkeypatch.setattr(peer_module, "_ORDER", list(range(10)))
    assert disagreement(arm, seed=3, n_samples=50) > 1e-2


def test_without_pinocchio_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str):
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BenchmarkFailed, match=r"libgomp\.so\.1.*\./run test"):
        Peer(robots()[0])


def test_the_race_times_every_method_and_leaves_results() -> None:
    arm = robots()[0]
    times = race(arm, 100, seed=0, rounds=3)
    assert set(times.seconds) == {PEER, REGRESSOR, FILL, TORQUES, NORMAL}
    assert all(len(seconds) == 3 and (seconds > 0.0).all() for seconds in times.seconds.values())
    assert times.rate(PEER) == pytest.approx(100 / np.median(times.seconds[PEER]))


def test_ratios_are_of_the_same_round() -> None:
    """The machine slowed down by ten in two of three rounds, for both alike."""
    slowed = np.array([1.0, 10.0, 10.0])
    times = Times("arm", 1000, {PEER: 8.0 * slowed, REGRESSOR: slowed})
    assert times.ratio(PEER, REGRESSOR) == 8.0


@pytest.mark.slow
def test_the_second_process_has_the_kernels_from_disk() -> None:
    first, second = two_starts()
    assert (first.compiled, first.loaded) == (3, 0)
    assert (second.compiled, second.loaded) == (0, 3)
    assert second.calls_s < first.calls_s


def test_a_process_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.bench.regressor._PROGRAM", "raise SystemExit('no such robot')")
    with pytest.raises(BenchmarkFailed, match="ended with 1: no such robot"):
        _start("unused")


def test_checks_hold_the_issues_limits() -> None:
    good = [times_of("UR10", size) for size in (1_000, 10_000, 100_000)]
    checks = make_checks(good, {"UR10": 1e-14}, STARTS)
    assert all(check.ok for check in checks)
    assert len(checks) == 3 * 3 + 1 + 3
    assert [check.limit for check in checks if "Pinocchio" in check.name] == [10.0, 6.0, 6.0, 1e-10]

    bad = [times_of("UR10", 1_000, regressor=1.3), times_of("UR10", 10_000, **{NORMAL: 1.01})]
    bad.append(times_of("UR10", 100_000, **{PEER: 5.9}))
    recompiled = (STARTS[0], Start(1.0, 1.0, 1, 2))
    failed = {check.name for check in make_checks(bad, {"UR10": float("nan")}, recompiled) if not check.ok}
    assert failed == {
        "UR10, 1000: regressor, times as fast as Pinocchio",
        "UR10, 1000: regressor over filling",
        "UR10, 10000: normal equations",
        "UR10, 100000: regressor, times as fast as Pinocchio",
        "UR10: from Pinocchio",
        "kernels the second process compiled",
        "kernels it had from disk",
    }


def test_tables_hold_every_batch() -> None:
    text = times_table([times_of("UR10", 1_000), times_of("Panda", 10_000)])
    assert "UR10, 1000" in text
    assert "Panda, 10000" in text
    assert starts_table(STARTS).count("\n") == 3


def test_the_arms_regressors_are_of_their_shape() -> None:
    for arm in robots():
        still = np.zeros((2, arm.n_joints))
        assert regressor(arm, still, still, still).shape == (2 * arm.n_joints, 10 * arm.n_joints)
