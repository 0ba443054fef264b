"""Names of the definition as each generated file spells them, and the places those files have."""

import re
from pathlib import Path

from jointwire.messages import MessageType

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "python -m jointwire.generate"


def class_name(kind: MessageType) -> str:
    """HELLO_ACK as HelloAck."""
    return kind.name.title().replace("_", "")


def constant_prefix(class_name: str) -> str:
    """ResetCause as RESET_CAUSE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name).upper()
