"""Random robots in the words of a URDF, which Pinocchio reads as well: trees with slides, followers and capsules."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from jointbench.arrays import Array
from jointbench.model import Robot, load_robot

# It has no type stubs.
pinocchio: Any = importlib.import_module("pinocchio")


def any_tree(kinds: str, seed: int) -> str:
    """Write a tree with one joint per letter: R revolute, P prismatic, M revolute and following the first R.

    Every link, and the base, has a capsule and a ball, except that the second link has none.
    """
    rng = np.random.default_rng(seed)
    leader = kinds.find("R")
    parts = [_link("l0", rng)]
    for i, kind in enumerate(kinds):
        follows = f'<mimic joint="j{leader}" multiplier="-0.7" offset="0.2"/>' if kind == "M" else ""
        parts.append(_link(f"l{i + 1}", rng) if i != 1 else '<link name="l2"/>')
        parts.append(
            f'<joint name="j{i}" type="{"prismatic" if kind == "P" else "revolute"}">'
            f'<parent link="l{rng.integers(max(i - 2, 0), i + 1)}"/><child link="l{i + 1}"/>{_placement(rng, 0.3)}'
            f'<axis xyz="{_three(rng.normal(size=3))}"/>'
            f'<limit lower="-1" upper="1.5" velocity="2" effort="50"/>{follows}</joint>'
        )
    return f'<robot name="tree">{"".join(parts)}</robot>'


def read_tree(text: str, tmp_path: Path) -> Robot:
    """The robot that a URDF describes."""
    path = tmp_path / "tree.urdf"
    path.write_text(text, encoding="utf-8")
    return load_robot(path)


def pinocchio_places(text: str, robot: Robot, q: Array, link: int, offset: Array) -> Array:
    """Where Pinocchio puts a point of a link [m], shape (n_samples, 3); followers are moved there as they must move."""
    model = pinocchio.buildModelFromXML(text.replace("<mimic", "<was_mimic"))
    data = model.createData()
    joint = model.getJointId(robot.joints[link].name)
    order = [model.joints[model.getJointId(each.name)].idx_q for each in robot.joints]
    places: list[Array] = []
    for position in robot.all_positions(q):
        there = np.zeros(model.nq)
        there[order] = position
        pinocchio.forwardKinematics(model, data, there)
        places.append(data.oMi[joint].act(offset))
    return np.array(places)


def _link(name: str, rng: np.random.Generator) -> str:
    round_ones = (f'<cylinder radius="0.04" length="{rng.uniform(0.1, 0.4):.3f}"/>', '<sphere radius="0.05"/>')
    shapes = "".join(f"<collision>{_placement(rng, 0.1)}<geometry>{one}</geometry></collision>" for one in round_ones)
    return f'<link name="{name}">{shapes}</link>'


def _placement(rng: np.random.Generator, size: float) -> str:
    return f'<origin xyz="{_three(rng.normal(size=3) * size)}" rpy="{_three(rng.uniform(-3.0, 3.0, 3))}"/>'


def _three(values: Array) -> str:
    return " ".join(f"{value:.6f}" for value in values)
