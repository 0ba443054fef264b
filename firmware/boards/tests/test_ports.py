"""Each port's board file and drivers: checked against the port's own stubs, compiled for each of its architectures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from firmware.boards.tests.conftest import ROOT, missing
from firmware.boards.tests.interpreter import BOARDS
from jointbench.bench.flash import build_image
from tools.setup import stubs
from tools.setup.checkout import Checkout

ARCHITECTURES = {
    "rp2": ("armv6m", "armv7emsp", "rv32imc"),  # RP2040; RP2350 with its Arm or its RISC-V cores
    "stm32": ("armv7m", "armv7emsp", "armv7emdp"),
    "esp32": ("xtensawin", "rv32imc"),  # ESP32, S2 and S3; C and H series
}
COMPILATIONS = [(port, architecture) for port, known in ARCHITECTURES.items() for architecture in known]
MISTAKE = "import machine\n\nmachine.Pin(0).switch_off()\n"


def check(port: str, folder: Path, *files: Path) -> list[str]:
    """Errors that the type checker finds in files of a port, by the port's stubs.

    Args:
        port: a name of `stubs.PORTS`.
        folder: for its settings.
        files: Python files and folders.
    """
    checkout = Checkout(ROOT)
    if not stubs.is_ready(checkout):
        missing("MicroPython's type stubs are not in .cache/stubs: type ./run setup")
    others = [str(BOARDS / "drivers" / f"{other}_*.py") for other in stubs.PORTS if other != port]
    settings = {
        "include": [str(file) for file in files],
        "exclude": others,
        "extraPaths": [str(BOARDS), str(BOARDS.parent)],
        "stubPath": str(stubs.folder(checkout) / port),
        "typeshedPath": str(stubs.folder(checkout) / port),
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",  # whose syntax MicroPython takes, as far as it goes
        "pythonPlatform": "Linux",
        "reportMissingModuleSource": False,  # stubs are all there is
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [Path(sys.executable).parent / "basedpyright", "--outputjson", "-p", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] >= len(files), done.stdout
    return [f"{Path(error['file']).name}: {error['message']}" for error in found["generalDiagnostics"]]


@pytest.fixture(
    scope="module",
    params=[pytest.param(port, marks=pytest.mark.slow) for port in stubs.PORTS],
)
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the type checker finds in a port's board file and drivers."""
    folder = tmp_path_factory.mktemp("check")
    return check(request.param, folder, BOARDS / f"{request.param}.py", BOARDS / "drivers")


def test_a_port_has_what_its_board_uses(errors: list[str]) -> None:
    assert errors == []


@pytest.mark.parametrize("port", stubs.PORTS)
def test_the_check_finds_what_a_port_has_not(tmp_path: Path, port: str) -> None:
    mistake = tmp_path / "mistake.py"
    mistake.write_text(MISTAKE, encoding="utf-8")
    (error,) = check(port, tmp_path, mistake)
    assert "switch_off" in error


@pytest.mark.parametrize(("port", "architecture"), COMPILATIONS)
def test_it_compiles_with_the_whole_firmware(port: str, architecture: str) -> None:
    """As the image that would be flashed: the board's file, the drivers it imports, and jointboard."""
    image = build_image(port, compiled=True, architecture=architecture, firmware=BOARDS.parent)
    assert {"board.mpy", "drivers/joint.mpy", "drivers/clock.mpy", "jointboard/tick.mpy"} <= set(image.files)
    assert not [name for name in image.files if name.endswith(".py")]
    # What another port's chip is needed for stays off this one.
    assert not [name for name in image.files for other in stubs.PORTS if other != port and f"drivers/{other}_" in name]
