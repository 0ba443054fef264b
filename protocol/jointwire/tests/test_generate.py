import ast
from pathlib import Path

import pytest

from jointwire.generate import BOARD_CODEC, board_codec, main
from jointwire.messages import MessageType
from jointwire.registers import REGISTERS
from jointwire.schema import schema_hash


def test_the_boards_codec_is_what_the_schema_says() -> None:
    assert main(["--check"]) == 0, "firmware/jointboard/wire.py is stale: run python -m jointwire.generate"


def test_a_stale_codec_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = tmp_path / "wire.py"
    assert main(["--check", "--output", str(codec)]) == 1  # there is none
    assert main(["--output", str(codec)]) == 0
    assert main(["--check", "--output", str(codec)]) == 0
    monkeypatch.setattr("jointwire.generate.REGISTERS", REGISTERS[:-1])
    assert main(["--check", "--output", str(codec)]) == 1
    assert "python -m jointwire.generate" in capsys.readouterr().err


def test_the_codec_is_short_python_with_every_message_and_the_hash() -> None:
    text = board_codec()
    ast.parse(text)
    assert max(map(len, text.splitlines())) <= 120
    assert all(f"MESSAGE_{kind.name} = const({kind.value})" in text for kind in MessageType)
    assert f"0x{schema_hash():08X}" in text
    assert BOARD_CODEC.name == "wire.py"


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--chekc"])
