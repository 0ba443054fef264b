"""Verbs as their user meets them: output, exit codes, errors in one sentence.

`jointbench completion` in a real shell: what TAB offers on half-typed lines.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from jointbench.cli.completion import SHELLS
from jointbench.cli.list_ import library_descriptions
from jointbench.cli.main import main
from jointbench.cli.parser import VERBS, module_of, sentence
from jointbench.model import library_names, load_robot
from jointbench.recording import Recorder
from jointbench.tests.recording.simulated_run import boards, feed, provenance


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb, capsys):
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"jointbench {verb}" in said.split("example:")[1]
    assert "--json FILE|-" in said
    module = module_of(verb)
    assert (verb, sentence(verb)) == (module.VERB, (module.__doc__ or "").splitlines()[0])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dance", "there is no verb 'dance'"),
        ("fti runs/1", "did you mean `jointbench fit runs/1`?"),
        ("info cobot6 --jsn", "does not know --jsn; did you mean --json?"),
        ("validate model.json", "required: RUN; `jointbench validate --help`"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_is_near(line, words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_the_version_is_that_of_the_installed_distribution(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"jointbench {metadata.version('jointbench')} (Python 3.")


def test_json_may_stand_before_the_verb(capsys):
    assert main(["--json", "-", "info", "cobot6"]) == 0
    assert json.loads(capsys.readouterr().out)["robot"] == "cobot6"


def test_unknown_robot_is_one_sentence_that_names_the_others(capsys):
    assert main(["info", "cobot7"]) == 2

    said = capsys.readouterr()
    assert said.err.startswith("jointbench info: ")
    assert "cobot7" in said.err
    assert "cobot6" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(("arguments", "motors"), [(["run", "bench.toml"], True), (["info", "cobot6"], False)])
def test_ctrl_c_speaks_of_motors_only_where_some_may_have_turned(arguments, motors, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module_of(arguments[0]), "run", interrupted)

    assert main(arguments) == 130

    said = capsys.readouterr().err
    assert f"jointbench {arguments[0]}: stopped by Ctrl-C" in said
    assert ("motors are off" in said) is motors


class Panic(BaseException):
    """Like those of Rust, which are no Exception."""


def raises(error):
    def run(*_):
        raise error

    return run


@pytest.mark.parametrize("error", [KeyError("j7"), Panic("index out of bounds"), OSError("no file at all")])
def test_a_bug_of_ours_is_exit_code_3_one_line_and_a_file_to_send(error, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(module_of("info"), "run", raises(error))

    assert main(["info", "cobot6"]) == 3

    said = capsys.readouterr().err
    assert said.startswith(f"jointbench info: a bug of Jointbench: {type(error).__name__}: ")
    assert said.count("\n") == 1
    (report,) = (tmp_path / "jointbench" / "bugs").iterdir()
    assert f"send the file {report}" in said
    lines = report.read_text(encoding="utf-8")
    assert lines.startswith("command: jointbench info (")
    assert f"jointbench {metadata.version('jointbench')}, Python 3." in lines
    assert "Traceback (most recent call last)" in lines
    assert "test_main.py" in lines


def test_a_bug_is_said_where_its_report_cannot_be_kept_and_before_a_verb_is_known(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("jointbench.cli.main.build_parser", raises(KeyError("words")))

    assert main(["info", "cobot6"]) == 3
    assert "KeyError: 'words' (test_main.py, line " in (said := capsys.readouterr().err)
    assert "set XDG_STATE_HOME to a folder that can be written" in said


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(129), SystemExit(143)])
def test_a_stop_is_no_bug(error, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(module_of("info"), "run", raises(error))

    assert main(["info", "cobot6"]) == (130 if isinstance(error, KeyboardInterrupt) else error.code)
    assert "stopped by " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("cannot allocate 7 TiB"), "not enough memory (cannot allocate 7 TiB); give it less at a time"),
        (np.linalg.LinAlgError("Singular matrix"), "these numbers have no solution (Singular matrix); look at"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device; name another place, or make room"),
    ],
)
def test_what_the_machine_or_the_numbers_lack_is_no_bug(error, words, capsys, monkeypatch):
    monkeypatch.setattr(module_of("info"), "run", raises(error))
    assert main(["info", "cobot6"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("place", "code"), [("/dev/full", 2), ("| head -0", 2)])
def test_output_that_nobody_takes_is_no_traceback(place, code):
    """A full disk behind `>`, and a reader that has had enough."""
    command = f"'{sys.executable}' -m jointbench info cobot6 "
    command += place if place.startswith("|") else f"> {place}"
    done = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(("number", "said"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP: its terminal is")])
def test_every_signal_that_is_a_stop_unwinds_a_verb(number, said, capsys, monkeypatch):
    undone = []

    def signalled(*_):
        try:
            os.kill(os.getpid(), number)
        finally:
            undone.append(number)

    monkeypatch.setattr(module_of("info"), "run", signalled)
    before = signal.signal(number, signal.SIG_DFL)  # of `nohup` it would be another
    try:
        assert main(["info", "cobot6"]) == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert undone == [number]
    assert f"jointbench info: stopped by {said}" in capsys.readouterr().err


def test_json_to_standard_output_is_all_there_is(capsys):
    assert main(["info", "cobot6", "--json", "-"]) == 0

    said = capsys.readouterr()
    assert json.loads(said.out)["joints"] == ["j1", "j2", "j3", "j4", "j5", "j6"]
    assert "robot cobot6" in said.err


@pytest.mark.parametrize("own", [True, False])
def test_info_states_the_clocks_where_boards_have_their_own(tmp_path, capsys, own):
    streams = boards()
    for board in streams.values():
        board.pong()
    with Recorder(tmp_path / "run", provenance(streams, clock="wall", common_ticks=not own)) as recorder:
        feed(recorder, streams)

    assert main(["info", str(tmp_path / "run"), "--json", "-"]) == 0

    said = capsys.readouterr()
    clocks = json.loads(said.out)["clocks"]
    assert list(clocks) == (["j1", "j2"] if own else [])
    assert ("residual µs" in said.err) is own
    for joint, clock in clocks.items():
        assert {"offset_us", "drift_ppm", "residual_us", "pulses", "bound_us"} <= set(clock)
        row = next(line.split() for line in said.err.splitlines() if line.split()[:1] == [joint] and "." in line)
        assert row[1:5] == [
            f"{clock['offset_us'] / 1e6:.6f}", f"{clock['drift_ppm']:+.2f}", f"{clock['residual_us']:.1f}",
            f"{clock['bound_us']:.1f}",
        ]  # fmt: skip


def test_info_names_the_faults_that_were_injected(tmp_path, capsys):
    streams = boards()
    with Recorder(tmp_path / "run", provenance(streams)) as recorder:
        feed(recorder, streams)
        recorder.event(6_000_000, "faults", nodes=(2,), counts={"rx.drop": 12})

    assert main(["info", str(tmp_path / "run"), "--json", "-"]) == 0

    said = capsys.readouterr()
    assert json.loads(said.out)["injected_faults"] == [{"joints": ["j2"], "counts": {"rx.drop": 12}}]
    assert "faults injected on purpose: j2: rx.drop 12 times" in said.err


def test_list_shows_the_library(capsys):
    assert main(["list"]) == 0
    assert "cobot6" in capsys.readouterr().out


def test_random_plan_is_written_and_read_back(tmp_path, capsys):
    path = tmp_path / "verification.json"
    assert main(["plan", "modular7:1", "--random", "--seed", "4", "--out", str(path)]) == 0

    assert "feasible at every time" in capsys.readouterr().out
    assert json.loads(path.read_text())["seed"] == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "make one with `jointbench plan"),
        ("{}", "has no 'family'"),
        ("[]", "make one anew"),
        ("{", "cannot be read"),
    ],
)
def test_run_without_a_good_plan_says_what_to_do(tmp_path, capsys, content, words):
    plan, bench = tmp_path / "plan.json", tmp_path / "bench.toml"
    if content is not None:
        plan.write_text(content)

    assert main(["run", str(bench), "--plan", str(plan)]) == 2
    assert words in capsys.readouterr().err


def test_fit_of_no_run_says_so(tmp_path, capsys):
    assert main(["fit", str(tmp_path / "nothing")]) == 2
    assert "nothing" in capsys.readouterr().err


HEAVY = {
    "numpy",
    "scipy",
    "numba",
    "matplotlib",
    "construct",
    "joblib",
    "fsspec",
    "jinja2",
    "clarabel",
    "pyarrow",
    "shtab",
}
SAYS_ITS_MODULES = """
import json, sys
from jointbench.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps([name for name in sys.modules if "." not in name or name.startswith("scipy.")]))
"""


def imported(folder: Path, *arguments: str) -> set[str]:
    """Packages, and parts of SciPy, that are there after a command, in a process of its own."""
    command = [sys.executable, "-c", SAYS_ITS_MODULES, *arguments]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(json.loads(said.stdout.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), (), ("list",), ("--json", "-"), ("dance",)])
def test_nothing_heavy_is_imported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert imported(tmp_path, *arguments) & HEAVY == set()


# Each takes 0.2 to 0.7 s of processor time to import.
HEAVY_PARTS = {f"scipy.{part}" for part in ("interpolate", "ndimage", "optimize", "signal", "spatial", "stats")}


def test_a_verb_that_needs_numpy_is_told_by_this_and_has_no_more_than_it_uses(tmp_path: Path) -> None:
    there = imported(tmp_path, "info", "cobot6")
    assert {"numpy", "scipy.linalg"} <= there
    assert there & {"numba", *HEAVY_PARTS} == set()


def test_judging_a_model_needs_nothing_that_draws(tmp_path: Path) -> None:
    assert imported(tmp_path, "validate", "--help") & {"matplotlib", "jinja2", *HEAVY_PARTS} == set()


# The completion function fills COMPREPLY from the words typed so far, as readline would call it.
ASK = """
source "$1"; shift
complete -p jointbench >&2
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
complete=$(complete -p jointbench | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
$complete jointbench "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "jointbench.bash"
    with pytest.MonkeyPatch.context() as patched, path.open("w") as file:
        patched.setattr("sys.stdout", file)
        assert main(["completion", "bash"]) == 0
    return path


def offered(script: Path, folder: Path, *words: str) -> set[str]:
    command = ["bash", "--norc", "-c", ASK, "ask", str(script), "jointbench", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "jointbench" in done.stderr  # complete -p knows it
    return set(done.stdout.split())


def test_verbs(script, tmp_path):
    assert offered(script, tmp_path, "fl") == {"flash", "float"}
    assert offered(script, tmp_path, "re") == {"residual", "report", "repl"}


def test_options(script, tmp_path):
    assert offered(script, tmp_path, "run", "--pl") == {"--plan"}
    assert offered(script, tmp_path, "plan", "cobot6", "--fam") == {"--family"}


def test_choices_of_an_option(script, tmp_path):
    assert offered(script, tmp_path, "fit", "run", "--torque", "m") == {"motor"}


def test_robots_by_name_and_by_file(script, tmp_path):
    (tmp_path / "nurse.toml").touch()
    assert offered(script, tmp_path, "plan", "n") == {"nursing_arm", "nursing_dual", "nurse.toml"}


def test_a_bench_is_a_file_and_a_run_a_folder(script, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "rig.toml").touch()
    assert offered(script, tmp_path, "check", "r") == {"runs", "rig.toml"}
    assert offered(script, tmp_path, "fit", "r") == {"runs"}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shells_script_is_one_that_it_can_read(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    path = tmp_path / "script"
    path.write_text(capsys.readouterr().out)
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    subprocess.run([shell, "-n", str(path)], check=True)


def test_the_names_are_those_of_the_library():
    names = library_descriptions()
    assert tuple(names) == library_names()
    assert all(load_robot(name).description == description for name, description in names.items())
