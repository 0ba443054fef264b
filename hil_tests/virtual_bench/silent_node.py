"""A node whose frames are lost on the line while its neighbours' pass."""

from cobs import cobs

_NODE_AT = 2  # in a frame's header


class SilentNode:
    """One way of a line without the frames of a node; what else is said passes when its delimiter has come.

    Frames to every node pass: what its neighbours hear, it hears.
    """

    def __init__(self, node: int) -> None:
        """Lose the frames to or from this node."""
        self._node = node
        self._begun = b""

    def passes(self, data: bytes) -> bytes:
        """Return what is left of the bytes that came now and before."""
        *chunks, self._begun = (self._begun + data).split(b"\0")
        return b"".join([chunk + b"\0" for chunk in chunks if _node_of(chunk) != self._node])


def _node_of(chunk: bytes) -> int | None:
    """The node that a frame names; None for what is no frame."""
    try:
        return cobs.decode(chunk)[_NODE_AT]
    except (cobs.DecodeError, IndexError):
        return None
