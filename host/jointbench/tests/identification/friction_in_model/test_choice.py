"""The data choose a law only where they tell it."""

import jointbench as jb
from jointbench.tests.identification.friction_in_model.law_runs import law_run, loaded, stribeck
from jointbench.tests.identification.synthetic import arm, synthetic_run

ROBOT = arm(2)


def test_coulomb_and_viscous_friction_is_told_as_such() -> None:
    model = jb.fit(synthetic_run(ROBOT, motion_seed=1, noise_seed=1), friction="choose")
    assert model.friction is None
    plain = jb.fit(synthetic_run(ROBOT, motion_seed=1, noise_seed=1))
    assert (model.parameters == plain.parameters).all()
    assert sum("coulomb_viscous chosen" in note for note in model.notes) == 2


def test_each_joint_gets_its_own() -> None:
    joints = {"j1": stribeck(6.0, 4.0, 9.0, 0.2), "j2": loaded(5.0, 8.0, 0.08)}
    model = jb.fit(law_run(ROBOT, joints, motion_seed=1, noise_seed=2), friction="choose")
    assert model.friction is not None
    assert {name: law.name for name, law in model.friction.laws.laws.items()} == {
        "j1": "stribeck",
        "j2": "coulomb_viscous+load",
    }
    assert any("stribeck chosen, its rms error on unseen rows" in note for note in model.notes)
