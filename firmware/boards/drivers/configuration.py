"""config.json, read at boot: which pins, sensors and drive this board has. Examples: docs/boards.md."""

import json

from drivers.errors import WiringError

FILE = "config.json"


def enable_low(pin_class):
    """The driver's ENABLE pin, driven low, and the configuration that names it: a board's very first act."""
    try:
        with open(FILE) as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise WiringError("%s cannot be read (%s): copy the example for this board from docs/boards.md" % (FILE, error))
    return pin_class(item(config, "pins", "enable"), pin_class.OUT, value=0), config


def item(config, *path):
    """config["a"]["b"] for path "a", "b".

    Raises WiringError, with the whole path, where it is missing.
    """
    found = config
    for k, name in enumerate(path):
        if not isinstance(found, dict) or name not in found:
            raise WiringError("%s: %s is missing (example: docs/boards.md)" % (FILE, ".".join(path[: k + 1])))
        found = found[name]
    return found


def number(config, path, lowest, highest, default=None):
    """The number at "a.b", within its bounds; the default where nothing stands there."""
    found = config
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if found is None and default is not None:
        return default
    if not isinstance(found, (int, float)) or not lowest <= found <= highest:
        raise WiringError("%s: %s is %r; it must be a number from %s to %s" % (FILE, path, found, lowest, highest))
    return found


def whole(config, path, lowest, highest, default=None):
    """As number(), for whole ones."""
    found = number(config, path, lowest, highest, default)
    if found != int(found):
        raise WiringError("%s: %s is %r; it must be a whole number" % (FILE, path, found))
    return int(found)


def choice(config, path, known):
    """The word at "a.b", one of those known."""
    found = item(config, *path.split("."))
    if found not in known:
        raise WiringError("%s: %s is %r; known are %s" % (FILE, path, found, ", ".join(known)))
    return found
