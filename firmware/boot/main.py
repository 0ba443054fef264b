"""Starts the firmware: one of two slots, folders a and b, each whole by its manifest or not used at all.

slot.json says {"slot": the one that was confirmed, "trial": one to be tried once}. A trial is struck out before it is
begun, so whatever becomes of it, the next boot is the confirmed one's again until the host has confirmed the new one
(jointboard/image.py). Files are replaced by renaming; where the file system deletes before it renames (FAT), the new
name is taken in place of the missing one. Neither slot whole: the interpreter's prompt, with the reason.

Costs a pass of SHA-256 over the slot at each boot. This file and boot.py stay as they are for a board's life: nothing
could save a board from a broken one.
"""

import json
import os
import sys
from binascii import hexlify
from hashlib import sha256

SLOTS = ("a", "b")
LAST_WORDS = "trial.log"
TRIAL_WATCHDOG_MS = 8000  # of a trial that hangs; an RP2040's watchdog goes to 8388
RESTART = 75  # exit status for a restart where there is no reset to ask for: an emulated board's bench knows it


def start():
    """Choose a slot, say which, and run it."""
    names = os.listdir()
    if "config.new" in names and "config.json" not in names:
        os.rename("config.new", "config.json")
    trial, order = pointer()
    for slot in order:
        reason, image = examine(slot)
        if image:
            break
        print("jointbench: slot %s is not used: %s" % (slot, reason))
    else:
        print("jointbench: neither slot holds a whole image; put one there with `jointbench flash`")
        return
    on_trial = slot == trial
    if on_trial and LAST_WORDS in names:  # of another trial
        os.remove(LAST_WORDS)
    print("jointbench: slot %s runs%s: %s" % (slot, " on trial" if on_trial else "", image))
    sys.path.insert(0, slot)
    try:
        run(on_trial)
    except Exception as error:
        if not on_trial:
            raise  # the motor is off and the prompt is free; the next boot tries again
        sys.print_exception(error)
        print("jointbench: slot %s ended on its trial; the board starts again from the slot before" % slot)
        keep_last_words(error)
        restart()


def pointer():
    """The slot on trial or None, and the slots in the order to try them. A trial is struck out here."""
    values = read_json("slot.json") or read_json("slot.new") or {}
    confirmed, trial = values.get("slot"), values.get("trial")
    if trial:
        try:
            with open("slot.new", "w") as file:
                json.dump({"slot": confirmed}, file)
            os.rename("slot.new", "slot.json")
        except OSError as error:  # it would be tried again and again
            print("jointbench: slot %s is not tried, slot.json cannot be written: %s" % (trial, error))
            trial = None
    order = []
    for slot in (trial, confirmed, "a", "b"):
        if slot in SLOTS and slot not in order:
            order.append(slot)
    return trial, order


def examine(slot):
    """What is wrong with a slot and None, or nothing and its image in words."""
    try:
        manifest = read_json(slot + "/manifest.json")
        if not manifest:
            return "it has no manifest", None
        image = sha256()
        for name, (_, expected) in sorted(manifest["files"].items()):
            content = digest(slot + "/" + name)
            if hexlify(content).decode() != expected:
                return "%s is not what its manifest says" % name, None
            image.update(name.encode() + b"\0" + content)
        found = hexlify(image.digest()).decode()
        if found != manifest["image"]:
            return "its manifest is damaged", None
        return "", "image %s, firmware %s" % (found, manifest["firmware"])
    except Exception as error:  # whatever is wrong with it: the other slot may be whole
        return repr(error), None


def digest(name):
    """SHA-256 of a file."""
    content = sha256()
    with open(name, "rb") as file:
        while data := file.read(512):
            content.update(data)
    return content.digest()


def read_json(name):
    """A file's JSON object, or None."""
    try:
        with open(name) as file:
            values = json.load(file)
        return values if isinstance(values, dict) else None
    except (OSError, ValueError):
        return None


def run(on_trial):
    """Be this joint's board."""
    from board import Board

    board = Board()
    board.disable()
    if on_trial:
        board.watchdog(TRIAL_WATCHDOG_MS)
    # The package is loaded only now: outputs come first.
    from jointboard import app

    app.run(board, on_trial)


def keep_last_words(error):
    """A reset may cut off what a USB console was just being told."""
    try:
        with open(LAST_WORDS, "w") as file:
            sys.print_exception(error, file)
    except OSError:
        pass


def restart():
    """Begin again with boot.py, and never come back."""
    import machine

    if hasattr(machine, "reset"):
        machine.reset()
    sys.exit(RESTART)


start()
