"""Which of a board's two ports on USB is its line."""

from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from jointbench.link.conversation import LINE_NAME, line_beside

USB_LINE = Path(__file__).parents[4] / "firmware" / "boards" / "drivers" / "rp2_usb_line.py"


def port(path: Path, location: str | None, interface: str | None) -> ListPortInfo:
    path.touch()
    info = ListPortInfo(str(path))
    info.location, info.interface = location, interface
    return info


def test_the_line_is_that_of_the_same_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [
        port(tmp_path / "ttyACM0", "1-2:1.0", "Board CDC"),
        port(tmp_path / "ttyACM1", "1-2:1.2", LINE_NAME),
        port(tmp_path / "ttyACM2", "1-20:1.0", "Board CDC"),
        port(tmp_path / "ttyACM3", "1-20:1.2", LINE_NAME),
        port(tmp_path / "ttyACM4", "1-3:1.0", "Board CDC"),
        port(tmp_path / "ttyS0", None, None),
    ]
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    by_id = tmp_path / "usb-MicroPython_Board_in_FS_mode-if00"
    by_id.symlink_to(tmp_path / "ttyACM2")
    assert line_beside(str(tmp_path / "ttyACM0")) == str(tmp_path / "ttyACM1")
    assert line_beside(str(by_id)) == str(tmp_path / "ttyACM3")
    for other in ("ttyACM1", "ttyACM4", "ttyS0", "socket"):
        assert line_beside(str(tmp_path / other)) is None


def test_the_firmware_gives_it_this_name() -> None:
    assert f'NAME = "{LINE_NAME}"\n' in USB_LINE.read_text(encoding="utf-8")
