"""`jointbench completion` in a real shell: what TAB offers on half-typed lines."""

import shutil
import subprocess
from pathlib import Path

import pytest

from jointbench.cli.completion import SHELLS
from jointbench.cli.list_ import library_descriptions
from jointbench.cli.main import main
from jointbench.model import library_names, load_robot

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
