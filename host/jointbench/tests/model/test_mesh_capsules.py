"""Capsules around points and meshes: nothing sticks out, and none is larger than it must be."""

from pathlib import Path

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.model.mesh_capsules import FittedCapsule, capsule_containing, collision_meshes

BALL = np.array(trimesh.creation.icosphere(2).vertices)


def distances(points: Array, capsule: FittedCapsule) -> Array:
    """Of points from the capsule's axis [m]."""
    way = capsule.end - capsule.start
    share = np.clip((points - capsule.start) @ way / max(float(way @ way), 1e-30), 0.0, 1.0)
    return np.linalg.norm(points - capsule.start - share[:, None] * way, axis=1)


@settings(max_examples=25, deadline=None)
@given(arrays(float, st.tuples(st.integers(1, 12), st.just(3)), elements=st.floats(-2.0, 2.0, width=32)))
def test_every_point_is_contained(points: Array) -> None:
    capsule = capsule_containing(points)
    # Sums of a few numbers of order one.
    assert np.max(distances(points, capsule)) <= capsule.radius + 1e-9


@pytest.mark.parametrize("length", [0.0, 0.1, 1.0])
def test_a_capsule_is_found_again(length: float) -> None:
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    points = 0.05 * BALL + np.where((BALL @ axis)[:, None] > 0.0, length * axis, 0.0) + [1.0, 2.0, 3.0]
    volume = np.pi * 0.05**2 * (length + 4.0 / 3.0 * 0.05)
    # The search ends anywhere near the least: 3 % is 1 % of a radius.
    assert capsule_containing(points).volume <= 1.03 * volume


def urdf_with(mesh: str, folder: Path) -> Path:
    path = folder / "arm.urdf"
    path.write_text(f"""<robot name="arm"><link name="base"/>
      <link name="tube"><collision><origin xyz="0.1 0 0" rpy="0 1.5707963267948966 0"/>
        <geometry><mesh filename="{mesh}" scale="0.001 0.001 0.001"/></geometry></collision></link>
      <joint name="turn" type="revolute"><parent link="base"/><child link="tube"/>
        <limit lower="-1" upper="1" velocity="2" effort="30"/></joint></robot>""")
    return path


@pytest.mark.parametrize("name", ["meshes/tube.stl", "package://arm_description/meshes/tube.stl"])
def test_a_mesh_of_a_urdf_is_read_where_it_lies(tmp_path: Path, name: str) -> None:
    """A cylinder of 400 mm along z in a file of millimetres, which the URDF turns onto x."""
    folder = tmp_path / "arm_description" / "urdf" if name.startswith("package") else tmp_path
    meshes = folder.parent / "meshes" if name.startswith("package") else folder / "meshes"
    meshes.mkdir(parents=True)
    folder.mkdir(exist_ok=True)
    trimesh.creation.cylinder(radius=30.0, height=400.0).export(meshes / "tube.stl")
    (mesh,) = collision_meshes(urdf_with(name, folder))
    assert mesh.link == "tube"
    points = mesh.vertices()
    np.testing.assert_allclose(points.min(axis=0), [-0.1, -0.03, -0.03], atol=1e-6)  # 32-bit numbers in the file
    np.testing.assert_allclose(points.max(axis=0), [0.3, 0.03, 0.03], atol=1e-6)
    capsule = capsule_containing(points)
    assert 0.0299 < capsule.radius < 0.035
    assert abs(capsule.end[0] - capsule.start[0]) == pytest.approx(0.4, abs=0.06)


def test_a_mesh_that_is_not_there_is_named(tmp_path: Path) -> None:
    (mesh,) = collision_meshes(urdf_with("gone.stl", tmp_path))
    with pytest.raises(FileError, match=r"mesh .*gone\.stl of link 'tube' cannot be read: .*; save it as STL"):
        mesh.vertices()
