import itertools
import re
import tomllib
from pathlib import Path

import pytest

from tools.setup import packages
from tools.setup.checkout import Checkout
from tools.setup.command import CommandFailed
from tools.setup.packages import EXTRAS, chosen_names, locked, uv_settings
from tools.tests.setup_checkouts import ROOT

LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "SSL_CERT_FILE", "ALL_PROXY", "UV_INDEX_STRATEGY"):
        monkeypatch.delenv(name, raising=False)


def test_one_package_of_the_lock_with_its_hashes() -> None:
    wanted = "uv==2 ; sys_platform == 'linux' \\\n    --hash=a \\\n    --hash=b\n"
    lock = f"uvloop==1\\\n    --hash=x\n{wanted}venv==3 \\\n    --hash=c\n"
    assert locked(lock, "uv") == wanted
    with pytest.raises(CommandFailed, match=r"requirements\.lock: holds no uw"):
        locked(lock, "uw")


def test_pip_settings_reach_uv() -> None:
    config = (
        "global.index-url='https://one'\nglobal.cert='/global.pem'\n:env:.cert='/env.pem'\n"
        "global.extra-index-url='\\nhttps://two\\nhttps://three'\ninstall.proxy='http://p:1'\nglobal.timeout='9'\n"
    )
    assert uv_settings(config) == {
        "UV_DEFAULT_INDEX": "https://one",
        "UV_INDEX": "https://two https://three",
        "SSL_CERT_FILE": "/env.pem",
        "ALL_PROXY": "http://p:1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_folders_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    settings = uv_settings(f"global.find-links='/no/such {tmp_path} https://far'")
    assert settings["UV_FIND_LINKS"] == f"{tmp_path},https://far"
    assert "UV_FIND_LINKS" not in uv_settings("global.find-links='/no/such'")


def test_what_is_set_for_uv_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mine")
    assert "UV_DEFAULT_INDEX" not in uv_settings("global.index-url='https://pips'")


def test_the_lock_pins_and_hashes_everything_and_names_no_address() -> None:
    packages = re.findall(r"^[a-z]\S*", LOCK, re.MULTILINE)
    assert len(packages) > 20
    for name in packages:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", name)
        assert "--hash=sha256:" in locked(LOCK, name.split("==")[0])
    assert "://" not in LOCK
    assert "index" not in LOCK


def test_the_lock_holds_every_dependency_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in itertools.chain(project["dependencies"], *project["optional-dependencies"].values()):
        name = re.match(r"[a-z0-9-]+", requirement)
        assert name is not None
        assert locked(LOCK, name[0])


def test_a_user_is_spared_what_only_the_projects_tests_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chosen = chosen_names(project)

    assert {"numpy", "mujoco-core", "matplotlib", "tornado", "shtab", "pytest", "hatchling"} <= set(chosen)
    assert not {"mcap", "pyarrow", "rosbags"} & set(chosen)
    assert not {"pin", "basedpyright", "playwright", "rerun-sdk", "mkdocs-material", "dask"} & set(chosen)
    assert set(EXTRAS) < set(project["optional-dependencies"])
    assert all(locked(LOCK, name) for name in chosen)


def test_uv_is_fetched_once_for_a_lock_and_lies_beside_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Checkout(tmp_path)
    checkout.work.mkdir(parents=True)
    asked: list[str] = []

    def run(command: list[str | Path], *_: object) -> str:
        words = [Path(str(word)).name for word in command]
        asked.append("uv" if "uv.lock" in words else words[0] if words[0] == "uv" else "pip config")
        return ""

    monkeypatch.setattr(packages, "run", run)
    monkeypatch.setattr(packages, "run_over_network", run)
    for version in ("1", "1", "2"):
        checkout.lock.write_text(f"uv=={version} \\\n    --hash=a\n")
        packages.install_all(checkout)
    assert asked == ["uv", "pip config", "uv", "pip config", "uv", "uv", "pip config", "uv"]
    assert (checkout.uv / "uv.lock").read_text() == checkout.lock.read_text()
    assert not checkout.venv.exists()
