"""Names that tell scalars of one kind apart."""

from collections.abc import Sequence


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """The names, those that repeat an earlier one with " (2)", " (3)" and so on behind them.

    >>> numbered(["base", "arm", "arm"])
    ('base', 'arm', 'arm (2)')
    """
    counts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return tuple(name if count == 1 else f"{name} ({count})" for name, count in zip(names, counts, strict=True))
