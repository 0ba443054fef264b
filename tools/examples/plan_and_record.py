"""Plan a motion, play it on a bench, record it, identify: plan_and_record.py FOLDER.

The bench is emulated here. For a real one leave `virtual_bench` out and give `open_bench` your own bench file.
"""

import sys
from pathlib import Path

import jointbench as jb
from hil_tests.virtual_bench import virtual_bench

BENCH = Path(__file__).resolve().parents[2] / "hil_tests" / "benches" / "cobot6.toml"


def main(out: str = "runs/example") -> int:
    """Exit code 1 when the model is not to be trusted."""
    folder = Path(out)
    robot = jb.load_robot("cobot6")
    excitation = jb.plan_excitation(robot, period=5.024, seed=0, time_limit=3.0)
    print(f"condition number {excitation.condition_number:.1f}")
    for margin in excitation.margins:
        print(f"  {margin.joint} uses {1.0 - margin.velocity:.0%} of its speed")

    with virtual_bench(BENCH, out=folder / "bench") as bench_file, jb.open_bench(bench_file) as bench:
        bench.connect()
        bench.configure()
        run = jb.record(bench, excitation, folder / "excitation", repeats=2)
        other = jb.record(bench, jb.random_excitation(robot, period=5.024, seed=1), folder / "verification", repeats=1)
    if run.ledger is None or not run.is_valid:
        print(f"the recording is not to be used: {run.ledger}")
        return 1

    model = jb.fit(run)
    check = jb.validate(model, other)
    print(f"run: {run.ledger.verdict}\n{check.verdict}")
    print(f"saved: {model.save(folder / 'model.json')}")
    return 1 if check.verdict.is_refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
