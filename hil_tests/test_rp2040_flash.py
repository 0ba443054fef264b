"""A chip is flashed through its line, its power cut in the midst of that, and left with images that do not come up."""

import json
import random
from pathlib import Path

import pytest

from hil_tests.flash_helpers import changed_firmware
from hil_tests.test_rp2040_board import FACTS, POWER, need_rp2040
from hil_tests.virtual_bench.rp2040.board import find_rp2040
from hil_tests.virtual_bench.rp2040.flash import (
    SECTOR,
    FlashWrite,
    flash_after_cut,
    read_flash,
    read_flash_log,
    write_flash,
)
from hil_tests.virtual_bench.rp2040.wiring import board_config, read_wiring
from jointbench.bench.flash import build_image, factory_files
from jointbench.testing.measured import Measured
from tools.faults.chip_cuts import Cut, boot_chip, cut_power, take_down_update

TORN = ("half", "bits")


@pytest.mark.slow
def test_a_chip_is_flashed_and_starts_a_whole_image_after_cuts(tmp_path: Path, measured: Measured) -> None:
    """By mpremote's raw REPL over its UART; `./run faults --cuts rp2040` cuts at every write."""
    need_rp2040()
    update = take_down_update(tmp_path, is_used=False)
    assert update.new != update.old
    erases = sum(write.data is None for write in update.writes)
    assert erases > 53  # a sector at least for each file
    assert len(update.writes) - erases > 400  # 100 kB in pages of 256 bytes
    # Some amid the files; and one of the last erases, which are those of the pointer's renames.
    last = max(number for number, write in enumerate(update.writes) if write.data is None)
    cuts = [Cut(len(update.writes) // 2, "bits"), Cut(last, "half")]
    verdicts = cut_power(cuts, update, tmp_path / "cuts")
    bad = [verdict for verdict in verdicts if verdict.problem]
    measured("flash.chip_cuts", len(bad))
    assert not bad
    assert verdicts[0].image == update.old
    assert verdicts[0].booted


@pytest.mark.slow
def test_a_trial_that_does_not_come_up_ends_by_itself(tmp_path: Path) -> None:
    need_rp2040()
    firmware = changed_firmware(tmp_path / "broken", "raise ValueError('no good')")
    good = build_image("rp2", architecture="armv6m")
    broken = build_image("rp2", architecture="armv6m", firmware=firmware)
    config = board_config({"node": 1, "uid": "0123456789abcdef", "facts": FACTS}, read_wiring(None), POWER, 921600)
    files = factory_files(good, config) | broken.in_slot("b")
    files["slot.json"] = json.dumps({"slot": "a", "trial": "b"}).encode()
    memory = tmp_path / "memory.bin"
    write_flash(memory, find_rp2040().firmware, files)
    boot = boot_chip(memory.read_bytes(), config, tmp_path)
    assert (boot.problem, boot.image, boot.resets) == ("", good.sha256, 1)
    memory.write_bytes(boot.memory)
    files = read_flash(memory)
    assert json.loads(files["slot.json"]) == {"slot": "a"}
    assert b"ValueError: no good" in files["trial.log"]


def test_a_cut_leaves_a_write_done_to_some_of_its_bits(tmp_path: Path) -> None:
    rng = random.Random(1)
    before, page = rng.randbytes(2 * SECTOR), rng.randbytes(256)
    writes = [FlashWrite(SECTOR, None), FlashWrite(SECTOR + 256, page)]
    log = tmp_path / "flash.bin.log"
    log.write_text(f"erase {SECTOR}\nprogram {SECTOR + 256} {page.hex()}\n")
    assert read_flash_log(log) == writes
    erased, done = (flash_after_cut(before, writes, number, "before") for number in (1, 2))
    assert erased == before[:SECTOR] + b"\xff" * SECTOR
    assert done == erased[: SECTOR + 256] + page + erased[SECTOR + 512 :]
    for how in TORN:
        torn = flash_after_cut(before, writes, 0, how)
        assert torn not in (before, erased)
        assert all(old | now == now for old, now in zip(before, torn, strict=True))  # an erase clears no bit
        torn = flash_after_cut(before, writes, 1, how)
        assert torn not in (erased, done)
        assert all(new & now == new for new, now in zip(done, torn, strict=True))  # none is cleared that shall be set
        assert torn == flash_after_cut(before, writes, 1, how)
