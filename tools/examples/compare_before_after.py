"""Has a robot changed since? Two recordings of one motion, with a payload in between: compare_before_after.py FOLDER.

The logs are simulated here; yours are two runs of one robot, recorded, or imported as in identify_own_log.py.
"""

import sys
from pathlib import Path

import jointbench as jb
from jointbench.recording import propose_mapping
from tools.docs.example_log import write_log

PAYLOAD_KG = 0.5


def main(out: str = "runs/payload") -> int:
    """Exit code 1 when a change that is there was not found, or one that is not there was."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    robot = jb.load_robot("cobot6")
    models: dict[str, jb.Model] = {}
    for name, seed, payload in (("before", 1, 0.0), ("again", 2, 0.0), ("after", 3, PAYLOAD_KG)):
        log, mapping = folder / f"{name}.csv", folder / f"{name}.toml"
        write_log(log, robot, seed, payload)
        mapping.write_text(propose_mapping("cobot6", [log], folder).text, encoding="utf-8")
        models[name] = jb.fit(jb.import_csv(mapping, folder / name))

    same = jb.compare(models["before"], models["again"])
    changed = jb.compare(models["before"], models["after"])
    print(f"before and again: {same.answer}: {same.reason}")
    print(f"before and after: {changed.answer}: {changed.reason}")
    for name in changed.different:
        print(f"  {name} is another")
    return 0 if same.answer != "different" and changed.answer == "different" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
