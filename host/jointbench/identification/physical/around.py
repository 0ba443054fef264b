"""Which parameters a search looks at, and what it costs to go to them."""

from dataclasses import dataclass

from jointbench.arrays import Array


@dataclass(frozen=True, eq=False)
class Around:
    """The parameters that are looked at, origin + directions @ z, and what that costs: ½ Σ stiffness z² + slope · z.

    Attributes:
        origin: shape (n,).
        directions: shape (n, n_free).
        stiffness, slope: shape (n_free,).
    """

    origin: Array
    directions: Array
    stiffness: Array
    slope: Array
