"""Verbs as their user meets them: output, exit codes, errors in one sentence."""

import json

import pytest

from jointbench.cli.main import main
from jointbench.cli.verbs import VERBS, module_of, sentence
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
    assert main(["plan", "cobot6", "--random", "--seed", "4", "--out", str(path)]) == 0

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
