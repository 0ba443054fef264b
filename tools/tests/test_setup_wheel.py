"""What is built of the project: what wheel and sdist hold, and what they say of themselves."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tools.tests.setup_checkouts import ROOT

SHIPPED = {  # folders of the checkout, and where they are in the wheel
    "host/jointbench": "jointbench",
    "protocol/jointwire": "jointwire",
    "firmware/boot": "jointbench/firmware/boot",
    "firmware/boards": "jointbench/firmware/boards",
    "firmware/jointboard": "jointbench/firmware/jointboard",
}


def build(tree: Path, kind: str, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder], cwd=tree, check=True)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(ROOT, "wheel", tmp_path_factory.mktemp("wheel")))


def test_it_holds_packages_and_firmware_with_their_data_and_no_tests(wheel: zipfile.ZipFile) -> None:
    expected: set[str] = set()
    for source, place in SHIPPED.items():
        names = [path.relative_to(ROOT / source) for path in (ROOT / source).rglob("*") if path.is_file()]
        expected |= {f"{place}/{name.as_posix()}" for name in names if not {"tests", "__pycache__"} & set(name.parts)}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected
    assert {"jointbench/py.typed", "jointwire/py.typed", "jointbench/firmware/jointboard/schema.bin"} < expected
    assert any(Path(name).suffix == ".toml" for name in expected), "the robot library is missing"


def test_its_metadata_hold_to_the_standard(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(wheel.read(name), validate=True)
    assert str(metadata.requires_python) == ">=3.11"
    assert metadata.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata.license_files == ["LICENSE"]
    assert {"report", "monitor", "convert", "bench", "testing"} <= set(metadata.provides_extra or [])
    entry_points = wheel.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert "jointbench = jointbench.cli.main:main" in entry_points


def test_the_wheel_of_the_sdist_is_the_same_and_needs_no_git(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    sdist = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        (top,) = {member.name.partition("/")[0] for member in archive.getmembers()}
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path], check=True)  # Python before 3.11.4 knows no safe way
    again = zipfile.ZipFile(build(tmp_path / top, "wheel", tmp_path / "wheel"))
    assert {info.filename: info.CRC for info in again.infolist()} == {
        info.filename: info.CRC for info in wheel.infolist()
    }
