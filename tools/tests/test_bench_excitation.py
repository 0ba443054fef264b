"""What `./run bench excitation` is made of: the problem, the peer, the race, and what it says of them."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from jointbench.dynamics import base_parameters
from jointbench.excitation import random_excitation
from tools.bench import excitation as peer_module
from tools.bench.__main__ import VERBS
from tools.bench.excitation import (
    PERIOD,
    SAMPLES,
    FirstOptimum,
    Peer,
    PeerFound,
    Planned,
    condition,
    first_table,
    make_checks,
    pivoted_base,
    plan_table,
    problem_of,
    ur10,
    violations,
)
from tools.bench.peers import BenchmarkFailed

PROBLEM = problem_of(ur10())
FIRST = FirstOptimum(0, 90.0, 16.0, 0.2, PeerFound(17.0, 20.0, 0.0, 20_000))
PLAN = Planned(0, 5.0, 4.9, 13.4, 0, 30, [(0.1, 40.0), (0.3, 16.5), (2.0, 13.4)])


def test_the_verb_is_there() -> None:
    assert "excitation" in VERBS


def test_the_arm_has_as_many_base_parameters_as_its_makers_urdf() -> None:
    robot = ur10()
    assert base_parameters(robot, drives=False).rank == pivoted_base(robot).rank == 36
    assert len(set(pivoted_base(robot).columns.tolist())) == 36


@pytest.mark.parametrize("seed", range(3))
def test_the_peer_sees_the_same_condition_number(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = PROBLEM.random(np.random.default_rng(seed))
    peer = Peer(PROBLEM)
    variables = peer.variables(PROBLEM, weights)

    # Two libraries' regressors agree to 1e-14; the condition number, some hundred, multiplies that.
    assert peer.condition(variables) == pytest.approx(PROBLEM.value(weights), rel=1e-11)
    monkeypatch.setattr(peer_module, "_ORDER", np.array([0, 1, 2, 3, 9, 8, 7, 6, 5, 4]))
    assert Peer(PROBLEM).condition(variables) != pytest.approx(PROBLEM.value(weights), rel=1e-3)


def test_the_peer_goes_downhill_within_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "_ITERATIONS", 3)
    weights = PROBLEM.random(np.random.default_rng(0))

    found = Peer(PROBLEM).run(PROBLEM, weights)

    assert found.value < PROBLEM.value(weights)
    assert found.evaluations >= 3 * 67
    assert found.seconds > 0.0
    # It linearises peaks that jump from sample to sample, and was stopped on its way.
    assert found.broken < 0.2


def test_without_pinocchio_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str):
        raise ImportError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(BenchmarkFailed, match=r"libgomp\.so\.1.*\./run test"):
        Peer(PROBLEM)


def test_violations_are_found_where_there_are_some() -> None:
    motion = random_excitation(ur10(), period=PERIOD, seed=0)

    assert violations(PROBLEM, motion) == 0
    assert violations(PROBLEM, replace(motion, weights=1.5 * motion.weights)) > 0


def test_the_condition_number_is_that_of_the_problem() -> None:
    motion = random_excitation(ur10(), period=PERIOD, seed=0)

    assert condition(PROBLEM, motion) == pytest.approx(PROBLEM.value(motion.weights), rel=1e-12)
    assert PROBLEM.samples == SAMPLES


def test_a_plan_says_when_it_was_how_good() -> None:
    assert PLAN.reached(17.0) == 0.3
    assert np.isnan(PLAN.reached(13.0))


def test_checks_hold_the_issues_limits() -> None:
    plans = [PLAN, replace(PLAN, time_limit=20.0)]
    checks = make_checks([FIRST], plans)
    assert all(check.ok for check in checks)
    assert [check.limit for check in checks] == [50.0, 14.5, 5.0, 0.0, 14.2, 20.0, 0.0]

    slow = replace(FIRST, seconds=0.41)
    worse = [
        replace(PLAN, value=14.6, seconds=5.1, violations=1),
        replace(PLAN, time_limit=20.0, value=14.3, seconds=20.1, violations=1),
    ]
    assert not any(check.ok for check in make_checks([slow], worse))


def test_tables_hold_every_row() -> None:
    assert "20000" in first_table([FIRST, FIRST])
    assert first_table([FIRST, FIRST]).count("\n") == 3
    assert plan_table([PLAN], [FIRST]).count("\n") == 2
