import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from jointbench.cli.main import main
from jointbench.errors import ExportError, ImportedDataError, MissingExtra
from jointbench.recording import Run, open_run
from jointbench.results import convert, import_converted, is_converted
from jointbench.tests.results.formats_runs import assert_same_bits, imported, recorded

BACK = ("csv", "parquet", "mcap")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {"recorded": recorded(folder / "recorded"), "imported": imported(folder / "imported")}


@pytest.mark.parametrize("of", ["recorded", "imported"])
@pytest.mark.parametrize("ending", BACK)
def test_a_run_comes_back_bit_for_bit(runs: dict[str, Run], of: str, ending: str, tmp_path: Path) -> None:
    run = runs[of]
    path = convert(run.path, tmp_path / f"out.{ending}")[0]
    assert is_converted(path)
    back = import_converted(path, tmp_path / "back")
    assert_same_bits(run.samples, back.samples)
    assert back.robot.joint_names == run.robot.joint_names
    assert back.warnings == run.warnings
    assert back.repeats == run.repeats
    assert back.sha256 == run.sha256  # the same recording: a model fitted to the one is not held out from the other
    again = import_converted(convert(back, tmp_path / f"again.{ending}")[0], tmp_path / "back2")
    assert_same_bits(run.samples, again.samples)
    assert again.ledger == run.ledger
    assert again.sha256 == run.sha256


@pytest.mark.parametrize("ending", BACK)
def test_a_loss_stays_a_loss_and_an_invalid_run_invalid(runs: dict[str, Run], ending: str, tmp_path: Path) -> None:
    run = runs["recorded"]
    assert not run.is_valid
    assert (~run.samples.valid[:, 1]).sum() == 64
    back = import_converted(convert(run, tmp_path / f"out.{ending}")[0], tmp_path / "back")
    assert not back.is_valid
    assert back.ledger == run.ledger
    assert run.sha256 in (tmp_path / "back" / "converted.json").read_text()


@pytest.mark.parametrize("ending", BACK)
def test_a_damaged_file_is_refused_by_name(runs: dict[str, Run], ending: str, tmp_path: Path) -> None:
    path = convert(runs["recorded"], tmp_path / f"out.{ending}")[0]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ImportedDataError, match=r"out\."):
        import_converted(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("ending", ["mcap", "parquet"])
def test_what_is_no_such_file_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{ending}"
    for content in (b"", b"hello", b"hello" * 1000):
        path.write_bytes(content)
        with pytest.raises(ImportedDataError, match=f"is no {'MCAP' if ending == 'mcap' else 'Parquet'}"):
            import_converted(path)


def test_a_csv_of_others_needs_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ImportedDataError, match="is no run that Jointbench converted; a mapping says"):
        import_converted(tmp_path / "log.csv")


def test_a_changed_csv_is_told(runs: dict[str, Run], tmp_path: Path) -> None:
    path, beside = convert(runs["recorded"], tmp_path / "out.csv")
    assert json.loads(beside.read_text())["url"] == "out.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    with pytest.raises(ImportedDataError, match=f"ends after {len(lines) - 2} of the {len(lines) - 1} rows"):
        import_converted(path)
    path.write_text("".join([lines[0].replace("j1.valid", "valid"), *lines[1:]]))
    with pytest.raises(ImportedDataError, match="its columns are not those that out"):
        import_converted(path)


def test_a_filter_that_lacks_a_coefficient_leaves_nothing_half_made(runs: dict[str, Run], tmp_path: Path) -> None:
    path, beside = convert(runs["recorded"], tmp_path / "out.csv")
    document = json.loads(beside.read_text())
    document["tableSchema"]["jointbench:about"]["board_filters"][0]["sections"][0][0].pop()
    beside.write_text(json.dumps(document))
    with pytest.raises(ImportedDataError, match="a section of a filter has not three coefficients on either side"):
        import_converted(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_changed_values_do_not_come_back_as_the_run(runs: dict[str, Run], tmp_path: Path) -> None:
    text = convert(runs["recorded"], tmp_path / "out.csv")[0]
    lines = text.read_text().splitlines(keepends=True)
    cells = lines[300].split(",")
    assert lines[0].split(",")[3] == "j1.motor_position_rad"
    cells[3] = repr(float(cells[3]) + 1e-9)
    text.write_text("".join([*lines[:300], ",".join(cells), *lines[301:]]))
    table = convert(runs["recorded"], tmp_path / "out.parquet")[0]
    read = parquet.read_table(table)
    valid = read.column("j1.valid").to_pylist()
    valid[300] = not valid[300]
    place = read.schema.get_field_index("j1.valid")
    parquet.write_table(read.set_column(place, read.schema.field(place), pa.array(valid)), table)
    for path in (text, table):
        with pytest.raises(ImportedDataError, match=r"values are no longer those of run recorded, .*by a mapping"):
            import_converted(path, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_what_another_program_writes_anew_unchanged_comes_back(runs: dict[str, Run], tmp_path: Path) -> None:
    path = convert(runs["imported"], tmp_path / "out.parquet")[0]
    parquet.write_table(parquet.read_table(path), path, compression="gzip", row_group_size=77)
    assert_same_bits(import_converted(path, tmp_path / "back").samples, runs["imported"].samples)


def test_a_file_that_is_not_there_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path / "run.csv")]) == 2
    assert f"{tmp_path / 'run.csv'} cannot be read: there is no such file" in capsys.readouterr().err


def test_nothing_is_written_over_or_left_half_done(runs: dict[str, Run], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(ExportError, match="exists already"):
        convert(runs["recorded"], tmp_path / "a.csv")
    with pytest.raises(ExportError, match=r"its ending tells no format; give one of mcap \(.mcap\); parquet"):
        convert(runs["recorded"], tmp_path / "a.xlsx")
    with pytest.raises(ExportError, match="format 'xlsx' is not known; the formats are mcap"):
        convert(runs["recorded"], tmp_path / "a.xlsx", "xlsx")
    with pytest.raises(ExportError, match=r"b\.csv: its ending is that of csv, .* is to be mcap; name it b\.mcap, or"):
        convert(runs["recorded"], tmp_path / "b.csv", "mcap")
    (tmp_path / "b.csv-metadata.json").write_text("mine")
    with pytest.raises(ExportError, match=r"b\.csv-metadata\.json exists already"):
        convert(runs["recorded"], tmp_path / "b.csv")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.csv": "mine", "b.csv-metadata.json": "mine",
    }  # fmt: skip


@pytest.mark.parametrize(("ending", "package"), [("parquet", "pyarrow"), ("mcap", "mcap"), ("rrd", "rerun")])
def test_a_missing_extra_says_what_to_type(
    runs: dict[str, Run], ending: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jointbench.extras as extras

    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == package else name)
    extra = "rerun" if ending == "rrd" else "convert"
    with pytest.raises(MissingExtra, match=rf"needs {package}, .*pip install 'jointbench\[{extra}\]'"):
        convert(runs["recorded"], tmp_path / f"out.{ending}")


def test_on_the_command_line(runs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, back = tmp_path / "run.parquet", tmp_path / "back"
    assert main(["convert", str(runs["recorded"].path), "-o", str(out), "--json", str(tmp_path / "said.json")]) == 0
    assert "657 samples of 2 joints, 64 of them missing for a joint and kept so" in capsys.readouterr().out
    assert json.loads((tmp_path / "said.json").read_text())["files"] == [str(out)]
    assert main(["import", str(out), "--out", str(back)]) == 1  # the run is invalid, as it was
    assert "invalid: 64 of" in capsys.readouterr().out
    assert_same_bits(open_run(back).samples, runs["recorded"].samples)
    assert main(["convert", str(back)]) == 2
    assert "give a format, --to mcap|parquet|csv|rerun" in capsys.readouterr().err
