"""Which law explains best: the true one, and no richer one."""

import numpy as np
import pytest

from jointbench.errors import FitError
from jointbench.identification.friction import FrictionData, compare_laws, friction_law
from jointbench.tests.identification.friction.sweeps import LAWS, measured

# Noise small against what each law has that simpler ones lack.
NOISE = 0.1


@pytest.mark.parametrize("name", ["coulomb_viscous", "asymmetric", "stribeck", "makkar", "stribeck+load"])
def test_rows_of_their_own_choose_the_true_law(name):
    data = measured(name, LAWS[name], NOISE)
    kept = FrictionData(data.velocity, data.torque, data.load if "load" in name else None)

    compared = compare_laws(kept)

    assert compared.by == "bic"
    assert compared.best_fit.law.name == name
    assert compared.sentence.startswith(f"{name} explains best: its BIC is ")
    assert compared.best_fit.bic == min(fit.bic for fit in compared.fits)
    # New noise and a fit of four fifths of the rows: somewhat more than the noise, and not twice.
    assert NOISE * 0.8 < compared.held_out_rms[compared.best] < NOISE * 2.0


def in_time(torque_of, seed=0):
    """A motion at many speeds, its torque's noise alike over twenty rows."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, 1500)
    velocity = 0.5 * np.sin(2.0 * np.pi * 9.0 * t) * (1.0 + 0.5 * np.sin(2.0 * np.pi * t))
    noise = 0.5 * np.convolve(rng.standard_normal(1519), np.ones(20) / 20**0.5, mode="valid")
    return FrictionData(velocity, torque_of(velocity) + noise, in_time=True).moving(0.01)


def test_rows_in_time_choose_by_what_they_have_not_seen():
    compared = compare_laws(in_time(lambda v: 6.0 * np.sign(v) + 9.0 * v))
    assert compared.by == "held_out"
    assert compared.best_fit.law.name == "coulomb_viscous"
    # BIC would count each row as evidence of its own, and take the noise for an effect in some such record.
    assert compared.best_fit.lags > 0

    falling = compare_laws(in_time(lambda v: np.sign(v) * (6.0 + 4.0 * np.exp(-((v / 0.1) ** 2))) + 9.0 * v))
    assert falling.best_fit.law.name == "stribeck"
    assert "explains best" in falling.sentence


def test_one_law_alone_is_said_to_be():
    data = measured("makkar", LAWS["makkar"], NOISE)
    compared = compare_laws(data, [friction_law("stribeck", data)])
    assert compared.sentence == "stribeck is the only law that was fitted"


def test_too_few_rows():
    data = measured("makkar", LAWS["makkar"])
    plain = FrictionData(data.velocity, data.torque)
    with pytest.raises(FitError, match="4 rows are too few to compare friction laws"):
        compare_laws(plain.part(np.arange(120) < 4))
    few = compare_laws(plain.part(np.arange(120) % 24 == 0))
    assert {len(fit.parameters) for fit in few.fits} <= {2, 3}
