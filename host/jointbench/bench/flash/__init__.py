"""Firmware onto boards, so that a board always starts: two slots, hashes, a trial, and the way back."""

from jointbench.bench.flash.board_files import BOARD_KINDS
from jointbench.bench.flash.image import FIRMWARE, Image, build_image, factory_files, write_factory
from jointbench.bench.flash.plan import FlashReport, StepDone
from jointbench.bench.flash.update import FlashOptions, ask_boards, boards_of, flash_board, write_facts

__all__ = [
    "BOARD_KINDS",
    "FIRMWARE",
    "FlashOptions",
    "FlashReport",
    "Image",
    "StepDone",
    "ask_boards",
    "boards_of",
    "build_image",
    "factory_files",
    "flash_board",
    "write_factory",
    "write_facts",
]
