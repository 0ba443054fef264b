"""Firmware onto boards, so that a board always starts: two slots, hashes, a trial, and the way back."""

from jointbench.flash.image import Image, build_image, factory_files, write_factory

__all__ = ["Image", "build_image", "factory_files", "write_factory"]
