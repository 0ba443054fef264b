import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.tests.setup_checkouts import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_it_holds_both_packages_with_their_data_and_no_tests(wheel: zipfile.ZipFile) -> None:
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    packages = [ROOT / "host" / "jointbench", ROOT / "protocol" / "jointwire"]
    files = [path.relative_to(package.parent) for package in packages for path in package.rglob("*") if path.is_file()]
    expected = {str(name) for name in files if not {"tests", "__pycache__"} & set(name.parts)}
    assert held == expected
    assert any(Path(name).suffix == ".toml" for name in held), "the robot library is missing"


def test_it_says_which_python_it_needs(wheel: zipfile.ZipFile) -> None:
    metadata = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
    assert "Requires-Python: >=3.11" in wheel.read(metadata).decode()
