"""Everything that can be wrong with a frame."""


class FrameError(ValueError):
    """Bytes between two delimiters are no frame of this schema, or its body is not that of its type; says which."""


class SchemaError(ValueError):
    """A text is not that of a schema, or the definition does not make the code and the vectors that it should."""
