"""Friction with memory: recovered by itself, and in a model of a default fit."""

import ctypes
import dataclasses
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import signal

import jointbench as jb
from jointbench.arrays import Array
from jointbench.errors import FitError, ShapeError
from jointbench.identification import FitSettings, Model, load_model
from jointbench.identification.feedforward import planned_torque
from jointbench.identification.friction import ModelMemory
from jointbench.identification.friction.memory import Carriers, FrictionWithMemory, fit_with_memory
from jointbench.identification.friction.model_memory import MemoryColumns, axes_of
from jointbench.identification.observations import observe
from jointbench.identification.parallel_filter import cut
from jointbench.identification.predictor import Predictor
from jointbench.model import drive_columns, inverse_dynamics, model_parameter_names
from jointbench.recording import Run
from jointbench.results import export
from jointbench.tests.identification.synthetic import (
    COUNTS_PER_JOINT_TURN,
    CURRENT_NOISE_A,
    FILTER,
    PERIOD_S,
    arm,
    excitation,
    run_of,
    truth,
)
from jointbench.tests.results.test_c_header import assert_same_currents, compiled, needs_compiler
from jointbench.tests.results.test_ros2_package import built, played

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


ROBOT = arm(2)
STOPS = {0.0002: 2.0, 0.0015: 3.0}
"""Friction of the plant's first joint: thresholds between those of the grid [rad], and torques [N·m]."""

LOAD_SHARE = 0.05


def plant(seed: int) -> Run:
    """A motion of two joints; the first has friction that turns its sign over distance and grows with load."""
    plan = excitation(ROBOT, seed)
    ticks = round(plan.duration / PERIOD_S)
    q, dq, ddq = plan.evaluate(PERIOD_S * np.arange(ticks))
    full, first = truth(ROBOT), 10 * ROBOT.n_links
    full[model_parameter_names(ROBOT).index("j1.coulomb")] = 0.0
    columns, names = drive_columns(ROBOT, dq, ddq)
    own = np.array([name.endswith((".viscous", ".coulomb")) for name in names])
    torque = inverse_dynamics(ROBOT, q, dq, ddq, full[:first])
    load = torque + (columns @ np.where(own, 0.0, full[first:])).reshape(torque.shape)
    torque = torque + (columns @ full[first:]).reshape(torque.shape)
    for threshold, size in STOPS.items():
        turning, state = np.zeros(ticks), 0.0
        for k in range(1, ticks):
            state = min(max(state + q[k, 0] - q[k - 1, 0], -threshold), threshold)
            turning[k] = state / threshold
        torque[:, 0] += (size + LOAD_SHARE * np.abs(load[:, 0])) * turning
    rng = np.random.default_rng(seed)
    step = 2.0 * np.pi / COUNTS_PER_JOINT_TURN
    q = step * np.round(q / step + rng.uniform(-0.5, 0.5, ROBOT.n_joints))
    per_current = np.array([drive.torque_per_current for drive in ROBOT.drives])
    torque = torque + CURRENT_NOISE_A * per_current * rng.standard_normal(torque.shape)
    for b, a in FILTER.sections:
        torque = signal.lfilter(b, a, torque, axis=0, zi=signal.lfilter_zi(b, a)[:, None] * torque[:1])[0]
    return run_of(ROBOT, q, torque, plan=plan, repeats=1)


@pytest.fixture(scope="module")
def run() -> Run:
    return plant(1)


@pytest.fixture(scope="module")
def model(run: Run) -> Model:
    return jb.fit(run)


def swing(samples: int = 1500) -> tuple[Array, Array, Array]:
    """A random smooth motion with pauses' slowness and reversals."""
    rng = np.random.default_rng(5)
    time, size = PERIOD_S * np.arange(samples)[:, None], rng.uniform(0.1, 0.3, 2)
    rate = 2.0 * np.pi * rng.uniform(0.8, 1.6, 2)
    return size * np.sin(rate * time), size * rate * np.cos(rate * time), -size * rate**2 * np.sin(rate * time)


def test_a_default_fit_predicts_rest_too_on_other_motion(model: Model):
    assert model.memory is not None
    assert [axis.name for axis, _ in model.memory.axes] == ["j1"]
    (_, friction), other = model.memory.axes[0], plant(2)
    assert "distance" in friction.family
    check = jb.validate(model, other)
    assert check.coulomb_viscous is not None
    # The thresholds lie between those of the grid: a fifth of the error at most is left of it, and at speed no more.
    assert check.error_all.rms[0] < 0.2 * check.coulomb_viscous.all.rms[0]
    assert check.error.rms[0] < 1.05 * check.coulomb_viscous.moving.rms[0]
    # Steps at reversals are most of what plain friction errs without a low-pass, and little of it is noise.
    plain = jb.validate(model.coulomb_viscous, other)
    assert check.as_measured.all.rms[0] < 0.4 * plain.as_measured.all.rms[0]
    assert model.memory.held_out_rms[0] < 0.3 * model.memory.plain_held_out_rms[0]
    steady = model.memory.steady("j1", np.array([0.4]), np.zeros(1))
    viscous = model.memory.parameters[model.names.index("j1.viscous")] * 0.4
    assert float(steady[0] + viscous) == pytest.approx(sum(STOPS.values()) + 9.0 * 0.4, rel=0.03)


def test_parameters_stay_those_beside_coulomb_and_viscous_friction(run: Run, model: Model):
    plain = jb.fit(run, friction="coulomb_viscous")
    assert plain.memory is None
    assert np.array_equal(plain.parameters, model.parameters)
    assert np.array_equal(plain.covariance, model.covariance)
    again = model.coulomb_viscous
    assert again.error_all.total_relative == plain.error_all.total_relative
    assert again.error.total_relative == plain.error.total_relative
    moves = swing(5)
    assert np.array_equal(again.predict(*moves), plain.predict(*moves))
    assert model.error_all.total_relative < plain.error_all.total_relative


def test_it_is_refused_where_it_cannot_be(run: Run, model: Model):
    with pytest.raises(FitError, match=r"estimator 'ridge' fits no friction with memory .* wls, ols, irls"):
        jb.fit(run, estimator="ridge", friction="memory")
    assert jb.fit(run, estimator="ridge").memory is None
    assert any("friction with memory, fitted to all rows" in note for note in model.notes)


def test_stops_are_the_same_wherever_a_log_is_cut(run: Run):
    rows = observe(run, ROBOT, jb.base_parameters(ROBOT), FitSettings(average_periods=False))
    axes = [(axis, Carriers(stribeck_speeds=(), load=False)) for axis in axes_of(rows.filter.base)]
    parts = [rows.stretches[0].part]
    pieces = [
        dataclasses.replace(rows, stretches=tuple(cut(parts, rows.filter.low_pass, most=most)))
        for most in (100_000, 700)
    ]
    assert len(pieces[0].stretches) == 1 < len(pieces[1].stretches)
    whole, cut_up = (
        np.concatenate([block[0] for block in MemoryColumns(piece, axes).blocks()], axis=1) for piece in pieces
    )
    np.testing.assert_allclose(cut_up, whole, atol=1e-9)


def test_prediction_goes_on_where_it_stopped(model: Model, tmp_path: Path):
    assert model.memory is not None
    q, dq, ddq = swing()
    whole = model.predict(q, dq, ddq)
    early = model.predict_from(None, q[:600], dq[:600], ddq[:600])
    late = model.predict_from(early.state, q[600:], dq[600:], ddq[600:])
    np.testing.assert_allclose(np.vstack([early.torque, late.torque]), whole, atol=1e-12)
    assert np.abs(late.state.stops).max() <= 1.0
    kept = load_model(model.save(tmp_path / "model.json"))
    assert np.array_equal(kept.predict(q, dq, ddq), whole)
    assert kept.memory is not None
    assert kept.memory.sentence == model.memory.sentence
    assert kept.error_all.total_relative == model.error_all.total_relative
    values = model.memory.to_dict()
    for change in ({"widths": [-1.0]}, {"weights": [-1.0]}, {"weights": []}, {"shares": [1.0]}, {"widths": ["x"]}):
        with pytest.raises(ValueError, match=r"friction|could not convert|share"):
            ModelMemory.from_dict(values | {"axes": [values["axes"][0] | change]}, model.base)
    predict = Predictor.of(kept)
    found = np.array([predict(*each) for each in zip(q, dq, ddq, strict=True)])
    np.testing.assert_allclose(found, whole, atol=1e-10)
    np.testing.assert_allclose(predict.state.stops, late.state.stops, atol=1e-12)
    predict.restart(early.state)
    assert predict(q[600], dq[600], ddq[600]) == pytest.approx(whole[600])
    predict.restart()
    assert predict(q[0], dq[0], ddq[0]) == pytest.approx(whole[0])
    with pytest.raises(ShapeError, match=r"the friction state has 0 stops .*; this model's has"):
        model.predict_from(early.state._replace(stops=np.zeros(0)), q, dq, ddq)
    with pytest.raises(ShapeError, match="the friction state has 2 numbers"):
        predict.restart(early.state._replace(stops=np.zeros(0)))


def test_a_sample_by_itself_has_the_friction_of_steady_velocity(model: Model):
    assert model.memory is not None
    q, velocity, still = np.zeros((1, 2)), np.array([[0.3, 0.0]]), np.zeros((1, 2))
    both = model.predict(q, velocity, still) + model.predict(q, -velocity, still)
    friction = 0.5 * (model.predict(q, velocity, still) - model.predict(q, -velocity, still))[0, 0]
    load = 0.5 * both[0, 0]
    viscous = 0.3 * model.memory.parameters[model.names.index("j1.viscous")]
    assert friction - viscous == pytest.approx(
        float(model.memory.steady("j1", np.array([0.3]), np.array([load]))[0]), rel=1e-6
    )


@needs_compiler
@pytest.mark.parametrize(("kind", "share"), [("double", 1e-12), ("float", 1e-4)])
def test_c_carries_the_stops(model: Model, kind: str, share: float, tmp_path: Path):
    header = export(model, tmp_path / "model.h")
    name, moves = re.sub(r"\W", "_", ROBOT.name), swing()
    (tmp_path / "model.c").write_text(
        f'#include "{header.name}"\n'
        f"void torques(int n, const {kind} *q, const {kind} *dq, const {kind} *ddq, {kind} *tau);\n"
        f"void torques(int n, const {kind} *q, const {kind} *dq, const {kind} *ddq, {kind} *tau)\n{{\n"
        f"    {name}_friction state = {{0}};\n    int k;\n"
        f"    for (k = 0; k < n; k++)\n"
        f"        {name}_inverse_dynamics_from(&state, q + 2 * k, dq + 2 * k, ddq + 2 * k, tau + 2 * k);\n"
        f"    if (n < 0)\n        {name}_inverse_dynamics(q, dq, ddq, tau);\n}}\n"
    )
    options = [f"-D{name.upper()}_FLOAT"] if kind == "float" else []
    path = compiled(tmp_path / "model.c", tmp_path / "model.so", "-shared", "-fPIC", *options)
    library = ctypes.CDLL(str(path))
    arrays = [np.ascontiguousarray(move, dtype=np.dtype(kind[0])) for move in moves]
    tau = np.full_like(arrays[0], np.nan)
    library.torques(len(tau), *(ctypes.c_void_p(each.ctypes.data) for each in (*arrays, tau)))
    wanted = model.predict(*moves)
    assert np.abs(tau - wanted).max() <= share * np.abs(wanted).max()
    without = model.coulomb_viscous.predict(*moves)
    assert np.abs(without - wanted).max() > 0.05 * np.abs(wanted).max()  # so that the test can fail


@needs_compiler
def test_c_feeds_a_planned_motion_forward_as_the_host_does(model: Model, tmp_path: Path):
    assert_same_currents(model, tmp_path, 0.02)


@needs_compiler
@pytest.mark.slow
def test_the_ros_2_controller_keeps_the_state(model: Model, tmp_path: Path):
    plan = excitation(ROBOT, 7)
    time = np.linspace(0.0, 0.25 * plan.period, 1000)
    found = played(built(model, tmp_path), *plan.evaluate(time))
    expected = planned_torque(model, plan, time)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    without = planned_torque(model.coulomb_viscous, plan, time)
    assert np.abs(without - expected).max() > 0.05 * np.abs(expected).max()  # so that the test can fail


def test_files_without_a_state_say_so(model: Model, tmp_path: Path):
    for suffix in ("urdf", "xml"):
        text = export(model, tmp_path / f"arm.{suffix}").read_text()
        assert "friction with memory of j1, whose state this format cannot carry, is not here" in text
        assert re.search(r"torque error of [\d.]+% over all samples and [\d.]+% where the joints move", text)
    assert model.memory is not None
    tables = json.loads(export(model, tmp_path / "arm.json").read_text())
    assert tomllib.loads(export(model, tmp_path / "arm.toml").read_text())["friction_with_memory"]
    (axis,) = tables["friction_with_memory"]["axes"]
    assert axis["weights"] == model.memory.axes[0][1].weights.tolist()
    assert axis["weights_order"] == list(model.memory.axes[0][1].carriers.names)


def test_carriers_are_chosen_by_some_stretches_of_a_long_log(run: Run):
    rows = observe(run, ROBOT, jb.base_parameters(ROBOT), FitSettings(average_periods=False))
    axes = [(axis, Carriers(stribeck_speeds=(), load=False)) for axis in axes_of(rows.filter.base)]
    pieces = tuple(cut([rows.stretches[0].part], rows.filter.low_pass, most=700))
    some = MemoryColumns(dataclasses.replace(rows, stretches=pieces), axes, most=100)
    blocks = list(some.blocks())
    assert 0 < len(some.asked) < len(blocks) == len(pieces)
    whole = list(dataclasses.replace(some, most=None).blocks())
    for stretch, block, same in zip(pieces, blocks, whole, strict=True):
        assert (0 in block) == (stretch.rows.start in some.asked)
        n_widths = len(axes[0][1].widths)
        if block:  # of the stops what they remember of before is not known
            np.testing.assert_allclose(block[0][:n_widths], same[0][:n_widths], atol=1e-9)
