"""An estimate of a stance comes back from its file as it was, and other files are refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from jointbench.errors import ModelFileError
from jointbench.identification.judgement import Verdict
from jointbench.identification.zero_moment_point.estimate import ZmpEstimate, judge_reduced, load_stance_estimate
from jointbench.identification.zero_moment_point.reduced_parameters import ReducedParameters
from jointbench.sealed import sealed_json
from jointbench.tests.identification.zero_moment_point.simulated_stance import biped, simulated_stance

REDUCED = ReducedParameters(biped())


def estimate() -> ZmpEstimate:
    """The robot file's own values; the last one has no error bar, which JSON has no number for."""
    covariance = np.diag([1e-4] * 7 + [np.inf])
    return ZmpEstimate(
        robot=biped(),
        method="ours",
        names=REDUCED.names,
        values=REDUCED.nominal,
        covariance=covariance,
        standard_parameters=REDUCED.standard(REDUCED.nominal),
        parameter_verdicts=judge_reduced(REDUCED, REDUCED.nominal, covariance),
        verdict=Verdict("stance", "weak", "made up"),
        total_mass=26.8,
        samples=1900,
        iterations=2,
        converged=True,
        trace=((0.5, 1e-3, 1.0), (1e-5, 1e-6, 0.5)),
        nuisance_names=("r_foot.front_left.gain",),
        nuisance_values=(0.004,),
        nuisance_sigma=(0.002,),
        notes=("a note",),
    )


def test_an_estimate_comes_back_whole(tmp_path: Path) -> None:
    saved = estimate()

    loaded = load_stance_estimate(saved.save(tmp_path / "estimate.json"))

    for field in dataclasses.fields(saved):
        before, after = getattr(saved, field.name), getattr(loaded, field.name)
        if isinstance(before, np.ndarray):
            assert np.array_equal(before, after), field.name
        else:
            assert before == after, field.name
    stance = simulated_stance(duration=8.0)
    assert loaded.distance(stance) == saved.distance(stance)


def test_what_is_no_estimate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "estimate.json"
    with pytest.raises(ModelFileError, match=r"estimate\.json cannot be read"):
        load_stance_estimate(path)
    path.write_text("{")
    with pytest.raises(ModelFileError, match="is no JSON"):
        load_stance_estimate(path)
    values = json.loads(estimate().save(path).read_text())
    del values["digest"], values["digests"]
    for broken, message in (
        ({"format": "jointbench model"}, "is no estimate of a stance"),
        ({"version": 9}, "version 9; this release reads 1, 2"),
        ({"values": [1.0]}, "damaged: TypeError values and covariance are not of its 8 names"),
        ({"values": ["a"] * 8}, "damaged: ValueError could not convert string to float"),
    ):
        path.write_text(sealed_json(values | broken))
        with pytest.raises(ModelFileError, match=message):
            load_stance_estimate(path)
    path.write_text(sealed_json({key: value for key, value in values.items() if key != "trace"}))
    with pytest.raises(ModelFileError, match="damaged: KeyError 'trace'"):
        load_stance_estimate(path)
