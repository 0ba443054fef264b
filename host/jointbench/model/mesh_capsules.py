"""Capsules that contain the collision meshes of a URDF, fitted as small as they can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.model.table import Element, read_xml
from jointbench.model.urdf import placement

if TYPE_CHECKING:
    import trimesh

_PACKAGE = "package://"
_FILE = "file://"


@dataclass(frozen=True, eq=False)
class CollisionMesh:
    """A mesh of a link's <collision>.

    Attributes:
        link: its name.
        file: where the mesh is.
        scale: of its coordinates, shape (3,).
        rotation, origin: of the mesh's frame in the link's [-], [m], shapes (3, 3) and (3,).
    """

    link: str
    file: Path
    scale: Array
    rotation: Array
    origin: Array

    def vertices(self) -> Array:
        """Corners of its convex hull in the link's frame [m], shape (n, 3).

        Raises:
            FileError: the file is not there, cannot be read, or holds no surface.
        """
        import scipy.spatial
        import trimesh

        try:
            mesh: trimesh.Trimesh = trimesh.load_mesh(self.file)
        # It has no error of its own: these are of a missing file, damage, an unknown format, and a missing reader.
        except (OSError, ValueError, NotImplementedError, ImportError) as error:
            raise FileError(
                f"mesh {self.file} of link {self.link!r} cannot be read: {error}; save it as STL"
            ) from error
        points = np.asarray(mesh.vertices, dtype=np.float64).reshape(-1, 3) * self.scale
        if not len(points) or not np.all(np.isfinite(points)):
            raise FileError(f"mesh {self.file} of link {self.link!r} has no points; save it again")
        if len(points) > 4 and np.linalg.matrix_rank(points - points[0], tol=1e-9) == 3:
            points = points[scipy.spatial.ConvexHull(points).vertices]
        return points @ self.rotation.T + self.origin


@dataclass(frozen=True, eq=False)
class FittedCapsule:
    """All points no farther than `radius` [m] from the segment between two ends in the frame of a link [m]."""

    start: Array
    end: Array
    radius: float

    @property
    def volume(self) -> float:
        """[m³]."""
        length = float(np.linalg.norm(self.end - self.start))
        return math.pi * self.radius**2 * (length + 4.0 / 3.0 * self.radius)


def collision_meshes(urdf: Path) -> tuple[CollisionMesh, ...]:
    """Meshes that the links of a URDF collide with; files are not opened.

    Raises:
        FileError: the file cannot be read or an entry is wrong.
    """
    return tuple(mesh for link in read_xml(urdf).children("link") for mesh in _meshes_of(link, urdf))


def _meshes_of(link: Element, urdf: Path) -> Iterator[CollisionMesh]:
    for collision in link.children("collision"):
        mesh = collision.needed("geometry").child("mesh")
        if mesh is not None:
            rotation, origin = placement(collision)
            scale = np.array(mesh.vector("scale", (1.0, 1.0, 1.0)))
            yield CollisionMesh(link.name(), _mesh_file(mesh.text("filename"), urdf.parent), scale, rotation, origin)


def _mesh_file(name: str, folder: Path) -> Path:
    """Where the file of a mesh is: packages of ROS are looked for in the folders above the URDF."""
    if not name.startswith(_PACKAGE):
        return folder / name.removeprefix(_FILE)
    package, _, path = name.removeprefix(_PACKAGE).partition("/")
    above = [folder, *folder.resolve().parents]
    places = [each / path for each in above if each.name == package] + [each / package / path for each in above]
    return next((place for place in places if place.is_file()), folder / package / path)


def capsule_containing(points: Array) -> FittedCapsule:
    """Fit a small capsule that contains all points.

    Its axis is searched for by Nelder and Mead from each principal axis of the points: two angles and where it passes.
    By axis, radius is the largest distance from it, and the ends are the nearest to each other whose round caps still
    hold every point. So each point is contained whatever the search finds; that the volume is least is not certain.

    Args:
        points: [m], shape (n, 3), at least one.
    """
    from scipy.optimize import minimize

    middle = (points.max(axis=0) + points.min(axis=0)) / 2.0
    size = float(np.abs(points - middle).max()) or 1.0
    unit = (points - middle) / size
    _, _, axes = np.linalg.svd(unit, full_matrices=True)

    def about(angles_and_place: NDArray[np.float64], frame: Array) -> FittedCapsule:
        tilt = np.array([*np.tan(np.clip(angles_and_place[:2], -1.5, 1.5)), 1.0])
        axis = frame.T @ (tilt / np.linalg.norm(tilt))
        through = frame.T @ np.array([*angles_and_place[2:], 0.0])
        along = (unit - through) @ axis
        off = np.linalg.norm(unit - through - along[:, None] * axis, axis=1)
        radius = float(off.max())
        cap = np.sqrt(np.maximum(radius**2 - off**2, 0.0))
        low, high = float((along + cap).min()), float((along - cap).max())
        if low > high:  # a ball contains them, wherever its middle is in between
            low = high = (low + high) / 2.0
        return FittedCapsule(through + low * axis, through + high * axis, radius)

    best: FittedCapsule | None = None
    for k in range(3):
        frame = np.roll(axes, k, axis=0)
        search = minimize(
            lambda x, frame=frame: about(x, frame).volume, np.zeros(4), method="Nelder-Mead", options={"maxiter": 400}
        )
        fitted = about(search.x, frame)
        if best is None or fitted.volume < best.volume:
            best = fitted
    assert best is not None
    return FittedCapsule(middle + size * best.start, middle + size * best.end, size * best.radius)
