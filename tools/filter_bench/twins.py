"""What the board's filters make of a case by the host's integer twins, and by the firmware's twin in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from firmware.tests.twin import Inputs, Twin, defaults
from jointbench.signals import MAX_IDLE_TICKS, Biquads, Cic, MtVelocity, TrackingObserver, boxcar
from tools.filter_bench.board import OUTPUTS
from tools.filter_bench.cases import Case


def host_outputs(case: Case) -> NDArray[Any]:
    """Outputs of the host's integer twins, dtype OUTPUTS."""
    out = np.zeros(len(case.inputs), OUTPUTS)
    for index, name in enumerate(("current", "torque")):
        samples = case.inputs["adc"][:, index]
        decimated = boxcar(samples) if case.registers["adc.cic_order"] == 1 else Cic().run(samples)
        out[name] = decimated
        out[f"{name}_middle"] = Biquads(case.sections[:1]).run(decimated)
        out[f"{name}_filtered"] = Biquads(case.sections).run(decimated)
    out["velocity"] = _velocity(case)
    return out


def _velocity(case: Case) -> NDArray[np.int64]:
    counters = case.inputs["motor_count"]
    if case.registers["velocity.source"] == 0:
        observer = TrackingObserver(case.registers["velocity.alpha"], case.registers["velocity.beta"])
        return observer.run(counters)
    return MtVelocity(case.capture_clocks).run(counters, case.inputs["motor_edge"])


def plain_outputs(case: Case) -> NDArray[Any]:
    """Outputs of the firmware's own twin, whose integers are unbounded, dtype OUTPUTS."""
    twin = Twin(defaults() | case.registers, still=MAX_IDLE_TICKS, edge_clocks=case.capture_clocks)
    rows: list[tuple[int, ...]] = []
    for given in case.inputs:
        current, torque = given["adc"].tolist()
        tick, count, edge = (int(given[name]) for name in ("tick", "motor_count", "motor_edge"))
        twin.tick(Inputs(tick, count, 0, current, torque, motor_edge=edge))
        nodes = [node[0] for channel in (twin.current, twin.torque) for node in channel.nodes]
        rows.append((*nodes, twin.velocity_q12 // 16))
    return np.array(rows, OUTPUTS)
