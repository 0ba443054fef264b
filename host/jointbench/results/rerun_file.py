"""A run for the Rerun viewer: the robot moving, and beside it the series of every joint."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from jointbench.arrays import Array
from jointbench.extras import need
from jointbench.files import replacing, write_file
from jointbench.memory_mapping import chunks
from jointbench.recording import Run
from jointbench.recording.samples import Column
from jointbench.results.converted_run import About, rows_of

if TYPE_CHECKING:
    import rerun

TIMELINE = "run_time"
_PLOTS = {"motor_current": "Currents", "motor_torque": "Torques", "motor_position": "Positions"}


def write_rerun(run: Run, about: About, path: Path) -> tuple[Path, ...]:
    """Write it: transforms of the joints, series under /joints/NAME/QUANTITY, and a layout that shows both.

    A missing value is no point of its series, and a joint that is missing keeps the place it had.

    Returns:
        Its path.

    Raises:
        MissingExtra: the Rerun SDK is not installed.
    """
    need("rerun", "Rerun", "rerun")
    import rerun as rr
    from rerun.urdf import UrdfTree

    from jointbench.results.robot_description import moving_urdf  # models need recordings: not the other way round

    with (
        replacing(path) as unfinished,
        TemporaryDirectory() as folder,
        rr.RecordingStream("jointbench", recording_id=about.sha256) as recording,
    ):
        recording.save(unfinished, default_blueprint=_layout(about))
        urdf = Path(folder) / "robot.urdf"
        write_file(urdf, moving_urdf(run.robot))
        tree = UrdfTree.from_file_path(urdf)
        tree.log_urdf_to_recording(recording)
        recording.log("run", rr.TextDocument(_words(run, about), media_type="text/markdown"), static=True)
        for part in chunks(about.rows):
            rows = rows_of(run.samples, about.columns, part)
            moving = {name: rows["motor_position"][:, k] for k, name in enumerate(about.joint_names)}
            _move(recording, tree, run, rows["time"], moving)
            for column in about.columns:
                if column.kind == "float64" and column.field != "time":
                    _series(recording, column, about, rows["time"], column.of(rows))
    return (path,)


def entity(column: Column, about: About) -> str:
    """Return where the series of a column is."""
    if column.field == "foot_force":
        foot = about.foot_names[column.place[0]]
        return f"feet/{foot}/{column.name.removeprefix(f'{foot}.')}"
    joint = about.joint_names[column.place[0]]
    return f"joints/{joint}/{column.name.removeprefix(f'{joint}.')}"


def _move(
    recording: rerun.RecordingStream, tree: rerun.urdf.UrdfTree, run: Run, time: Array, moving: dict[str, Array]
) -> None:
    """The transforms of all joints, those that mimic others too."""
    import rerun as rr

    robot = run.robot
    unmeasured = np.broadcast_to(np.array(robot.home), (len(time), robot.n_joints))
    own = [moving.get(name, unmeasured[:, k]) for k, name in enumerate(robot.joint_names)]
    positions = robot.all_positions(np.column_stack(own))
    for index, joint in enumerate(robot.joints):
        known = np.isfinite(positions[:, index])
        entry = tree.get_joint_by_name(joint.name)
        if entry is None or not known.any():
            continue
        columns = entry.compute_transform_columns(positions[known, index].tolist(), clamp=False)
        recording.send_columns(f"transforms/{joint.name}", [rr.TimeColumn(TIMELINE, duration=time[known])], columns)


def _series(recording: rerun.RecordingStream, column: Column, about: About, time: Array, values: Array) -> None:
    import rerun as rr

    known = np.isfinite(values)
    if known.any():
        index = [rr.TimeColumn(TIMELINE, duration=time[known])]
        recording.send_columns(entity(column, about), index, rr.Scalars.columns(scalars=values[known]))


def _layout(about: About) -> rerun.blueprint.Blueprint:
    """The robot on the left, a plot of each quantity on the right."""
    from rerun import blueprint

    present = [name for name in _PLOTS if any(column.field == name for column in about.columns)]
    plots = [
        blueprint.TimeSeriesView(
            name=_PLOTS[name],
            contents=[f"/{entity(column, about)}" for column in about.columns if column.field == name],
        )
        for name in present
    ]
    words = blueprint.TextDocumentView(name="Run", origin="/run")
    scene = blueprint.Spatial3DView(name="Robot", origin="/")
    return blueprint.Blueprint(
        blueprint.Horizontal(
            blueprint.Vertical(scene, words, row_shares=[3, 1]), blueprint.Vertical(*plots), column_shares=[1, 1]
        ),
        collapse_panels=True,
    )


def _words(run: Run, about: About) -> str:
    ledger = "imported" if run.ledger is None else run.ledger.verdict
    lines = [f"# {about.run}", f"{run.robot.name}, {about.rows} samples at {about.sample_period:g} s", ledger]
    return "\n\n".join([*lines, *about.warnings, f"SHA-256 {about.sha256}"])
