"""Everything that can be wrong with a frame."""


class WireError(Exception):
    """Base of all errors of the wire."""


class FrameError(WireError, ValueError):
    """Bytes between two delimiters are not a frame of this schema; the text says which check failed."""


class BodyError(WireError, ValueError):
    """A body does not have the layout of its message type, or is too long to send."""


class SchemaError(WireError, ValueError):
    """A text is not that of a schema."""
