"""From a URDF and two CSVs of another program to a judged model: identify_own_log.py ARM.urdf LOG.csv OTHER.csv.

Motors' torques or torque sensors, either will do; what each column is, is proposed from names and from the data.
"""

import sys
from pathlib import Path

import jointbench as jb
from jointbench.recording import propose_mapping


def main(urdf: str, log: str, other: str, out: str = "runs/own_log") -> int:
    """Exit code 1 when the model is not to be trusted."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    mapping = folder / "mapping.toml"
    proposal = propose_mapping(urdf, [log], folder)
    mapping.write_text(proposal.text, encoding="utf-8")  # a person looks through it before trusting it

    run = jb.import_csv(mapping, folder / "log")
    model = jb.fit(run)
    print(f"{run.samples.n_samples} samples of {run.robot.n_joints} joints; the fit: {model.verdict}")
    for name, value, sigma in zip(model.names, model.parameters, model.sigma, strict=True):
        word = "" if model.is_identified(name) else "   not identified"
        print(f"  {name:<24} {value:10.4g} ± {sigma:.2g}{word}")

    check = jb.validate(model, jb.import_csv(mapping, folder / "other", data=other))
    print(f"on the other log: {check.verdict}")
    print(f"new inertias: {jb.export(model, folder / 'identified.urdf', source=urdf)}")
    return 1 if check.verdict.is_refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
