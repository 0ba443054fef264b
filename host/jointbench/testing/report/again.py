"""The one command that runs a test again: same bench, same seed."""

from __future__ import annotations

import shlex

PYTEST = "pytest {test} --bench={bench} --bench-seed={seed} {port} {require}"
"""With "=": pytest would take a path that stands alone for tests, and look for its settings there."""


def again(template: str, test: str, bench: str, seed: int, port: str = "", require: str = "") -> str:
    """Return what to type.

    Args:
        template: a command with {test}, {bench}, {seed}, {port} and {require} in it, any of them; they are filled in
            quoted for a shell, {port} becomes "--bench-port=PATH", and {require} "--require=TIERS" of the whole run.
        test: node id; empty for the whole run.
        bench: as it was named on the command line.
        seed: of the bench.
        port: that was given instead of the bench file's; empty without one.
        require: tiers that had to run; one test is not all of a tier.

    Raises:
        KeyError, ValueError, IndexError: the template has another place to fill in, or a brace too many.

    >>> again(PYTEST, "suite/test_line.py::test_echo[a b]", "unix6", 3)
    "pytest 'suite/test_line.py::test_echo[a b]' --bench=unix6 --bench-seed=3"
    >>> again("./run hil --bench {bench} --seed {seed} -- {test}", "", "unix6", 0)
    './run hil --bench unix6 --seed 0'
    >>> again(PYTEST, "", "unix6", 0, require="functional,deterministic")
    'pytest --bench=unix6 --bench-seed=0 --require=functional,deterministic'
    """
    quoted = {"test": shlex.quote(test) if test else "", "bench": shlex.quote(bench), "seed": seed}
    quoted["port"] = f"--bench-port={shlex.quote(port)}" if port else ""
    quoted["require"] = f"--require={shlex.quote(require)}" if require and not test else ""
    words = (word.format(**quoted) for word in template.split())
    return " ".join(word for word in words if word).removesuffix(" --")
