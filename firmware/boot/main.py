"""Starts the firmware: one of two slots, folders a and b, each whole by its manifest or not used at all.

slot.json says {"slot": the one that was confirmed, "trial": one to be tried once}. A trial is struck out before it is
begun, so whatever becomes of it, the next boot is the confirmed one's again until the host has confirmed the new one
(jointboard/image.py). Files are replaced by renaming; where the file system deletes before it renames (FAT), the new
name is taken in place of the missing one. Neither slot whole: the interpreter's prompt, with the reason.

Where the board has a key (image.key), a slot is used only when its manifest.hmac has the manifest's HMAC-SHA-256 by
that key, and no module lies in it that the manifest does not name. Nothing here writes or says the key (docs/signing.md
says what that protects from, and what not).

Costs a pass of SHA-256 over the slot at each boot. This file and boot.py stay as they are for a board's life: nothing
could save a board from a broken one.
"""

import json
import os
import sys
from binascii import hexlify, unhexlify
from hashlib import sha256

SLOTS = ("a", "b")
LAST_WORDS = "trial.log"
KEY = "image.key"  # 64 hexadecimal digits, then the first 8 of their bytes' SHA-256: half of one is none
SIGNATURES = "/manifest.hmac"  # one, or one by each of two keys while the key is being changed
NEW_SIGNATURES = "/manifest.new"  # until it is renamed
TRIAL_WATCHDOG_MS = 8000  # of a trial that hangs; an RP2040's watchdog goes to 8388
RESTART = 75  # exit status for a restart where there is no reset to ask for: an emulated board's bench knows it


def start():
    """Choose a slot, say which, and run it."""
    names = os.listdir()
    if "config.new" in names and "config.json" not in names:
        os.rename("config.new", "config.json")
    if "image.new" in names and KEY not in names and read_key("image.new"):
        os.rename("image.new", KEY)
    has_key = KEY in os.listdir()
    key, refused = read_key(KEY) if has_key else None, False
    trial, order = pointer()
    for slot in order:
        reason, image = examine(slot, key)
        if image:
            break
        refused = refused or reason in UNSIGNED
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
        run(on_trial, has_key, refused)
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


def read_key(name):
    """The key in a file; empty where there is no whole one."""
    try:
        text = read_text(name).strip()
        key = unhexlify(text[:64])
        whole = len(key) == 32 and hexlify(sha256(key).digest()).decode()[:8] == text[64:]
        return key if whole else b""
    except ValueError:
        return b""


def read_text(name):
    """The first 256 characters of a file; empty where there is none."""
    try:
        with open(name) as file:
            return file.read(256)
    except (OSError, ValueError):
        return ""


UNSIGNED = (
    "it is not signed",
    "its signature is not of this board's key",
    "it holds modules its manifest does not name",
    "this board's image.key is damaged, and nothing is started without it",
)


def wrong_signature(slot, manifest, key):
    """What is wrong with a slot by its signature, empty for nothing; `manifest` is the file's bytes."""
    if not key:
        return UNSIGNED[3]
    given = read_text(slot + SIGNATURES) or read_text(slot + NEW_SIGNATURES)
    if not given:
        return UNSIGNED[0]
    wanted = hexlify(hmac(key, manifest))
    found = False
    for signature in given.split():
        found |= same(signature.encode(), wanted)
    return "" if found else UNSIGNED[1]


def hmac(key, message):
    """HMAC-SHA-256 (RFC 2104), by a key of at most 64 bytes."""
    block = key + bytes(64 - len(key))
    inner = sha256(bytes([byte ^ 0x36 for byte in block]))
    inner.update(message)
    outer = sha256(bytes([byte ^ 0x5C for byte in block]))
    outer.update(inner.digest())
    return outer.digest()


def same(one, other):
    """Whether two strings of bytes are equal, in a time that does not tell where they differ."""
    difference = len(one) ^ len(other)
    for a, b in zip(one, other):
        difference |= a ^ b
    return difference == 0


def modules(folder, prefix=""):
    """Paths of all in a slot that could be imported."""
    found = []
    for entry in os.ilistdir(folder + "/" + prefix if prefix else folder):
        name = prefix + entry[0]
        if entry[1] == 0x4000:
            found += modules(folder, name + "/")
        elif name.endswith((".py", ".mpy")):
            found.append(name)
    return found


def examine(slot, key):
    """What is wrong with a slot and None, or nothing and its image in words. None for a key: it need not be signed."""
    try:
        if not read_json(slot + "/manifest.json"):
            return "it has no manifest", None
        with open(slot + "/manifest.json", "rb") as file:
            text = file.read()
        manifest = json.loads(text)  # what is signed and what is used are the same bytes
        if key is not None:
            reason = wrong_signature(slot, text, key)
            if reason:
                return reason, None
            if not all([name in manifest["files"] for name in modules(slot)]):
                return UNSIGNED[2], None
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


def run(on_trial, has_key, refused):
    """Be this joint's board."""
    from board import Board

    board = Board()
    board.disable()
    if on_trial:
        board.watchdog(TRIAL_WATCHDOG_MS)
    # The package is loaded only now: outputs come first.
    from jointboard import app, image

    image.signed_only, image.refused = has_key, refused  # HELLO says it
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
