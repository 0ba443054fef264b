"""Fewer points, same picture: what a line of a few hundred pixels can show of a long record."""

import numpy as np

from jointbench.arrays import Array


def thin(time: Array, values: Array, bins: int) -> tuple[Array, Array]:
    """Keep the lowest and the highest sample of each of `bins` equal groups, in their order of time.

    Peaks survive, unlike with a mean or every n-th sample. A group with nothing finite leaves one NaN, which breaks
    the line: a gap in the record stays a gap in the picture.

    Args:
        time: ascending [s], shape (n,).
        values: one series over it, shape (n,); NaN where there is none.
        bins: how many groups; a record of no more than twice as many samples comes back as it is.

    Returns:
        Times and values, each of at most 2 * bins points.
    """
    if time.size <= 2 * bins:
        return time, values
    kept: list[int] = []
    for group in np.array_split(np.arange(time.size), bins):
        part = values[group]
        if np.isfinite(part).any():
            kept += sorted({int(group[np.nanargmin(part)]), int(group[np.nanargmax(part)])})
        else:
            kept.append(int(group[0]))
    return time[kept], values[kept]
