"""The friction laws by name."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from jointbench.errors import FitError
from jointbench.identification.friction.asymmetric import Asymmetric
from jointbench.identification.friction.coulomb_viscous import CoulombViscous, Offset
from jointbench.identification.friction.data import FrictionData
from jointbench.identification.friction.law import Law, Term
from jointbench.identification.friction.load_dependent import Load
from jointbench.identification.friction.makkar import Makkar
from jointbench.identification.friction.rotor_inertia import RotorInertia
from jointbench.identification.friction.stribeck import Stribeck
from jointbench.identification.friction.temperature import ROOM_K, Temperature

SPEED_TERMS: dict[str, Term] = {
    "coulomb_viscous": CoulombViscous(),
    "asymmetric": Asymmetric(),
    "stribeck": Stribeck(),
    "makkar": Makkar(),
}
"""What a law begins with."""

EXTRAS = ("offset", "load", "temperature", "inertia")
"""What may be added to it with "+"."""


def friction_law(name: str, data: FrictionData | None = None) -> Law:
    """The law of a name such as "stribeck" or "makkar+load+temperature".

    Args:
        name: one of `SPEED_TERMS`, and any of `EXTRAS` after it.
        data: a temperature term refers to the mean of its temperatures, in whole kelvins; None: to room temperature.

    Raises:
        FitError: no law has this name.
    """
    first, *added = name.split("+")
    unknown = [each for each in added if each not in EXTRAS or added.count(each) > 1]
    if first not in SPEED_TERMS or unknown:
        raise FitError(
            f"friction law {name!r} is not known; a law is one of {', '.join(SPEED_TERMS)}, and may have "
            f"{', '.join('+' + each for each in EXTRAS)} after it, each once"
        )
    warm = None if data is None else data.temperature
    reference = ROOM_K if warm is None else float(np.round(warm.mean()))
    extra: dict[str, Term] = {
        "offset": Offset(),
        "load": Load(),
        "temperature": Temperature(reference),
        "inertia": RotorInertia(),
    }
    return Law(name, (SPEED_TERMS[first], *(extra[each] for each in added)))


def laws_for(data: FrictionData) -> tuple[Law, ...]:
    """Every law that these data can be asked about, the simplest first.

    Data of one direction cannot tell an offset or a difference between directions, and load or temperature must have
    been measured and have changed. An asymmetric law has an offset already. An acceleration is there to be fitted.
    """
    known = {
        "offset": data.both_directions,
        "load": data.load is not None and bool(np.ptp(np.abs(data.load)) > 0.0),
        "temperature": data.temperature is not None and bool(np.ptp(data.temperature) > 0.0),
    }
    extras = [name for name in known if known[name]]
    always = () if data.acceleration is None else ("inertia",)
    names = [
        "+".join((first, *chosen, *always))
        for first in SPEED_TERMS
        for count in range(len(extras) + 1)
        for chosen in combinations(extras, count)
        if not (first == "asymmetric" and ("offset" in chosen or not data.both_directions))
    ]
    laws = (friction_law(name, data) for name in names)
    return tuple(sorted((law for law in laws if len(law.names) < data.n_rows), key=lambda law: len(law.names)))
