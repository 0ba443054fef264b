"""A program that times the choice of friction laws, by whatever version of the host comes first on the path.

    python laws_fit.py TRAINING TEST FROM TO TEST_FROM TEST_TO

It uses nothing but what versions of the host have in common, and writes one line of JSON.
"""

import json
import sys
import time
from pathlib import Path

import jointbench
from jointbench.identification import fit, validate
from jointbench.recording import open_run

REPEATS = 3


def main(training: str, test: str, *seconds: str) -> None:
    """Choose laws a few times, and judge the model on another motion or another part of the same."""
    start, stop, test_start, test_stop = (float(value) for value in seconds)
    run = open_run(training)
    settings = {"interval": (start, stop)}
    fit(run, friction="coulomb_viscous", settings=settings)  # kernels are compiled, files in memory
    model, wall, cpu = None, list[float](), list[float]()
    for _ in range(REPEATS):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        model = fit(run, friction="choose", settings=settings)
        wall.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - begin_cpu)
    assert model is not None
    check = validate(model, open_run(test), interval=(test_start, test_stop))
    laws = {} if model.friction is None else {name: law.name for name, law in model.friction.laws.laws.items()}
    result = {
        "host": str(Path(jointbench.__file__).resolve()),
        "estimator": model.estimator,
        "seconds": min(wall),
        "cpu_seconds": min(cpu),
        "laws": [laws.get(name, "coulomb_viscous") for name in model.robot.joint_names],
        "joints": list(model.robot.joint_names),
        "moving": check.error.relative.tolist(),
        "all": check.error_all.relative.tolist(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
