"""A rigid link and what its inertia must satisfy to exist."""

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array, Matrix3, Vector3

PARAMETER_NAMES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""The ten standard parameters of a link in their order everywhere; inertia about the link frame's origin."""


@dataclass(frozen=True)
class Link:
    """A rigid body fixed to its joint's frame; its inertia is optional and may be a guess.

    Attributes:
        name: unique within the robot.
        mass: [kg].
        center_of_mass: in the link frame [m].
        inertia_about_center_of_mass: in the axes of the link frame [kg·m²].
        assumed: True when the values are plausible rather than published or measured.
        neglected: True where no inertia is given because it is taken for nothing, not because it is unknown.
    """

    name: str
    mass: float | None = None
    center_of_mass: Vector3 | None = None
    inertia_about_center_of_mass: Matrix3 | None = None
    assumed: bool = False
    neglected: bool = False

    @property
    def modelled(self) -> bool:
        """Whether it has parameters of its own: all links but the neglected ones."""
        return self.mass is not None or not self.neglected

    @property
    def standard_parameters(self) -> Array | None:
        """The link's ten parameters in the order of PARAMETER_NAMES, shape (10,), or None where not known.

        The inertia moves to the link frame by the parallel-axis theorem: I = I_c + m (|c|² E - c cᵀ).
        """
        if self.mass is None or self.center_of_mass is None or self.inertia_about_center_of_mass is None:
            return None if self.modelled else np.zeros(len(PARAMETER_NAMES))
        c = np.array(self.center_of_mass)
        inertia = np.array(self.inertia_about_center_of_mass) + self.mass * (c @ c * np.eye(3) - np.outer(c, c))
        upper = inertia[np.triu_indices(3)]
        return np.concatenate([[self.mass], self.mass * c, upper])

    @property
    def physical_fault(self) -> str | None:
        """Say why no body can have this inertia, or None when one can (or none is given).

        A body exists when its mass is positive and the second moments about its centre of mass,
        S = tr(I)/2 E - I, are positive definite: the triangle inequality of the principal inertias.
        """
        if self.mass is None or self.inertia_about_center_of_mass is None:
            return None
        if self.mass <= 0.0:
            return f"mass {self.mass:g} kg is not positive"
        low, middle, high = np.linalg.eigvalsh(np.array(self.inertia_about_center_of_mass))
        if low <= 0.0:
            return f"smallest principal inertia {low:.4g} kg·m² is not positive"
        if low + middle <= high:
            return (
                f"principal inertias {low:.4g}, {middle:.4g}, {high:.4g} kg·m² break the triangle inequality: "
                f"the largest must be less than the sum of the others"
            )
        return None
