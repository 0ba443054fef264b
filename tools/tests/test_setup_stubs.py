"""The type stubs of the ports: locked, each port apart, put in their place at once."""

import shutil
from pathlib import Path

import pytest

from tools.setup import stubs
from tools.setup.checkout import Checkout, exclusive
from tools.setup.command import CommandFailed
from tools.tests.setup_checkouts import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout with the lock of the stubs and nothing else."""
    (tmp_path / "firmware").mkdir()
    shutil.copy2(ROOT / "firmware" / "stubs.lock", tmp_path / "firmware")
    return Checkout(tmp_path)


def installer(asked: dict[str, list[str]], failing: str = ""):
    """Stands for pip: makes the target folder; keeps which packages were asked for, by port."""

    def run(command: list[str | Path], log: Path, env: dict[str, str]) -> str:
        words = [str(word) for word in command]
        target, wanted = Path(words[words.index("--target") + 1]), Path(words[words.index("-r") + 1])
        if target.name == failing:
            raise CommandFailed("pip", "no network")
        assert "--require-hashes" in words
        assert "--no-deps" in words
        lines = wanted.read_text().splitlines()
        asked[target.name] = [line.split("==")[0] for line in lines if "==" in line]
        assert all("--hash=sha256:" in line for line in lines if "==" not in line)
        target.mkdir(parents=True)
        return ""

    return run


def test_each_port_gets_its_own_stubs(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[str]] = {}
    monkeypatch.setattr(stubs, "run_over_network", installer(asked))
    with exclusive(checkout):
        assert not stubs.is_ready(checkout)
        stubs.install(checkout)
        assert stubs.is_ready(checkout)
    assert asked == {port: [f"micropython-{port}-stubs", "micropython-stdlib-stubs"] for port in stubs.PORTS}


def test_stubs_that_fail_to_come_leave_those_of_before(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stubs, "run_over_network", installer({}))
    with exclusive(checkout):
        stubs.install(checkout)
    stubs.lock(checkout).write_text(stubs.lock(checkout).read_text() + "\n")
    assert not stubs.is_ready(checkout)  # the lock has changed
    monkeypatch.setattr(stubs, "run_over_network", installer({}, failing="esp32"))
    with exclusive(checkout), pytest.raises(CommandFailed, match="no network"):
        stubs.install(checkout)
    assert (stubs.folder(checkout) / "rp2").is_dir()
    assert not stubs.is_ready(checkout)


def test_the_lock_names_no_place() -> None:
    """Packages, versions and hashes only: where they come from is the machine's own setting."""
    text = stubs.lock(Checkout(ROOT)).read_text()
    assert "//" not in text
