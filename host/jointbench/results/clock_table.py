"""The boards' clocks as a table: how well it is known when each of them sampled."""

from jointbench.recording import Run
from jointbench.results.content import RunTable
from jointbench.results.digits import count, fixed

HEADS = (
    "board", "offset [s]", "drift [ppm]", "residual [µs]", "bound to the host [µs]", "PINGs answered", "SYNC pulses",
)  # fmt: skip


def clock_table(title: str, run: Run) -> RunTable:
    """Return what is known of the clocks of a run whose boards each have their own."""
    rows = tuple(
        (
            joint, fixed(clock.offset_us * 1e-6, 6), fixed(clock.drift_ppm, 2), fixed(clock.residual_us, 1),
            fixed(clock.bound_us, 1), count(clock.exchanges), count(clock.pulses),
        )
        for joint, clock in run.clocks.items()
    )  # fmt: skip
    joint, worst = max(run.clocks.items(), key=lambda item: item[1].residual_us)
    by = "SYNC pulses" if all(clock.pulses for clock in run.clocks.values()) else "answered PINGs"
    sentence = f"Samples of the boards were put on one timeline by {by}; the largest residual is "
    return RunTable(title, f"{sentence}{fixed(worst.residual_us, 1)}\u00a0µs ({joint}).", HEADS, rows)
