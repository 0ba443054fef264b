"""How much each base parameter counts, as a person says it: by kind or by name."""

from collections.abc import Mapping

import numpy as np

from jointbench.arrays import Array
from jointbench.dynamics import BaseParameters
from jointbench.errors import ExcitationError


def emphasis_of(base: BaseParameters, emphasis: Mapping[str, float]) -> Array:
    """Emphasis on each base parameter, shape (rank,), 1 where nothing is said.

    A parameter that counts twice as much has a column half as long: an optimum makes up for that.

    Args:
        base: the base parameters, called by the parameters that lead them.
        emphasis: on all of a kind, such as {"coulomb": 0.5}, or on one, {"j1.coulomb": 2.0}, which goes before.

    Raises:
        ExcitationError: an unknown name, or an emphasis that is not a positive number.
    """
    names = base.leading_names
    kinds = [name.rpartition(".")[2] for name in names]
    for name, value in emphasis.items():
        if name not in names and name not in kinds:
            raise ExcitationError(
                f"emphasis on {name!r}: no base parameter is led by it; there are the kinds "
                f"{', '.join(dict.fromkeys(kinds))} and the names {names[0]} … {names[-1]}"
            )
        if not (np.isfinite(value) and value > 0.0):
            raise ExcitationError(f"emphasis of {value:g} on {name!r} must be a positive number; 1 is usual")
    by_kind = [emphasis.get(kind, 1.0) for kind in kinds]
    return np.array([emphasis.get(name, of_kind) for name, of_kind in zip(names, by_kind, strict=True)])
