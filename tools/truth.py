"""What an emulated robot's parameters really are, and how far a model is from them."""

from __future__ import annotations

import json
import socket
import tomllib
from pathlib import Path
from typing import Any

from jointbench import Model
from jointbench.arrays import Array

Truth = dict[str, dict[str, Any]]


def read_truth(bench_file: Path) -> Truth:
    """The true parameters of each joint, asked of a virtual bench over its control socket, before a host connects."""
    control = tomllib.loads(bench_file.read_text(encoding="utf-8"))["control"]
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rw", encoding="utf-8") as lines:
        connection.connect(control)
        lines.write(json.dumps({"truth": True}) + "\n")
        lines.flush()
        return json.loads(lines.readline())["truth"]


def deviations_from_truth(model: Model, truth: Truth) -> Array:
    """(parameter - truth) / σ of every base parameter, friction and offset included."""
    values: dict[str, float] = {}
    for joint in model.robot.joints:
        known = truth[joint.name]
        for name, value in zip(_STANDARD, known["standard_parameters"], strict=True):
            values[f"{joint.name}.{name}"] = value
        for name in ("rotor_inertia", "viscous", "coulomb", "offset"):
            values[f"{joint.name}.{name}"] = known[name]
    return model.deviations([values[name] for name in model.base.full_names])


_STANDARD = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
