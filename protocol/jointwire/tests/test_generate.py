import ast
import shutil
import zlib
from pathlib import Path

import pytest

from jointwire.generate.__main__ import main
from jointwire.generate.board_codec import board_codec
from jointwire.generate.client import client
from jointwire.generate.files import FILES, Generated
from jointwire.generate.reference import reference
from jointwire.generate.spelling import ROOT
from jointwire.messages import ANSWERS, BODIES, MessageType
from jointwire.registers import REGISTERS
from jointwire.schema import schema_hash, schema_text, struct_fields


def test_no_generated_file_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def _checkout(folder: Path) -> Path:
    for file in FILES:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file.path, folder / file.path)
    return folder


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.name)
@pytest.mark.parametrize("damage", ["missing", "edited", "empty"])
def test_a_stale_file_is_named_and_made_anew(
    file: Generated, damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _checkout(tmp_path)
    path, fresh = root / file.path, (root / file.path).read_bytes()
    assert main(["--check", "--root", str(root)]) == 0
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(fresh[:-9] + b"7" + fresh[-8:] if damage == "edited" else b"")
    assert main(["--check", "--root", str(root)]) == 1
    complaint = capsys.readouterr().err
    assert str(path) in complaint
    assert "run: python -m jointwire.generate" in complaint
    assert len(complaint.splitlines()) == 1
    assert main(["--root", str(root)]) == 0
    assert path.read_bytes() == fresh


def test_a_change_of_the_definition_makes_files_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = _checkout(tmp_path)
    for module in ("board_codec", "client", "reference"):
        monkeypatch.setattr(f"jointwire.generate.{module}.REGISTERS", REGISTERS[:-1])
    monkeypatch.setattr("jointwire.schema.REGISTERS", REGISTERS[:-1])
    stale = {file.path.name for file in FILES if file.is_stale(root)}
    assert stale == {"wire.py", "schema.bin", "client.py", "wire.md"}


def test_the_board_holds_the_text_of_its_schema() -> None:
    assert zlib.decompress((ROOT / "firmware/jointboard/schema.bin").read_bytes()).decode() == schema_text()


def test_the_codec_is_short_python_with_every_message_and_the_hash() -> None:
    text = board_codec()
    ast.parse(text)
    assert max(map(len, text.splitlines())) <= 120
    assert all(f"MESSAGE_{kind.name} = const({kind.value})" in text for kind in MessageType)
    assert f"0x{schema_hash():08X}" in text


def test_the_client_has_a_method_for_each_request_and_knows_every_register() -> None:
    tree = ast.parse(client())
    [methods] = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Client"]
    names = {node.name for node in methods if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    assert names == {kind.name.lower() for kind in ANSWERS}
    assert all(f'    "{register.name}",\n' in client() for register in REGISTERS)


def test_the_reference_names_everything() -> None:
    text = reference()
    for kind in MessageType:
        assert f"### {kind.name} (0x{kind.value:02x}" in text
        assert all(f"`{name}`" in text for name, _ in struct_fields(BODIES[kind]))
    assert all(f"| `{register.name}` |" in text for register in REGISTERS)
    assert f"schema `{schema_hash():08x}`" in text


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--chekc"])
