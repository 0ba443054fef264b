"""Public recordings of arms: their files by digest, and the fixed parts to train on and to predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jointbench.arrays import Array
from jointbench.errors import FileError
from jointbench.recording import LogFile, Run, file_sha256, import_csv, read_csv_table


@dataclass(frozen=True, eq=False)
class Source:
    """Files of one published set of recordings.

    Attributes:
        folder: in which they lie, below the benchmark's folder.
        robot: how the set is called in tables.
        origin: repository and commit that published them.
        digests: SHA-256 by file name.
        torque: side whose torque is modelled, "motor" or "joint"; the only option a default fit is given.
    """

    folder: str
    robot: str
    origin: str
    digests: Mapping[str, str]
    torque: str = "motor"


KR300 = Source(
    folder="kuka_kr300",
    robot="KR300",
    origin="JonasWeigand/Robot_Identification 9e403c0, MIT",
    digests={
        "A.mat": "4c152c5b7f2c899731fdeebcf0d011cc103df72be19fac160caf47aa9b73ab75",
        "B.mat": "edeb35f65c4ec4bb697e757fc1e4e9668551b6fe7b2c3dbbb526d040dd8d5ce7",
        "C.mat": "c5d5688521ece941e6c4afd39643a01cd36ae8c7790342640277f8b15b5515b4",
        "kr300.toml": "8dbdb6b36bc11ee5f8aa6d14d07ae29a97d1be7af751d5e7cee0a8078bc1199d",
    },
)
TIAGO = Source(
    folder="tiago",
    robot="TIAGo",
    origin="thanhndv212/figaroh-examples c0b5c7f, Apache-2.0",
    digests={
        "tiago_48_schunk.urdf": "e4412357e3ea141097acc835d81c4ac477f889ad99b05d2a9818ed9cdf9d12b6",
        "tiago_effort.csv": "12c635987705efade603426a600f5b315add7f580c720a4b84609dadb9d0a2e9",
        "tiago_position.csv": "4297a60d434ee89f1f424ad0da8ec65bc00072ac57eb06b94966c0819fc2786d",
        "tiago_velocity.csv": "269f681ca7a9511ac1698bf027ddf601e3fdb49d7d397af4810ec839f136cd69",
    },
)
GEN3 = Source(
    folder="kinova_gen3",
    robot="Gen3",
    origin="wissem01chiha/dynamic-identification 3b3baef, MIT",
    digests={
        "gen3.urdf": "798b384976d9e847f8896e29ac58b0581c1dbcb6bad2d5d8ed9474841b38e1f8",
        "opti_traj_testing1.csv": "0c9229ae8882a43fb1aac59c1b527a0942a99dcb0fe2aed77e948091fe8bf274",
        "opti_traj_testing2.csv": "e8e27ef2f4943a3a5b3632c319731473747507e58a512b29adde48a9d4769440",
    },
    torque="joint",
)
TX40 = Source(
    folder="staubli_tx40",
    robot="TX40",
    origin="thanhndv212/figaroh-examples c0b5c7f, Apache-2.0",
    digests={
        "curr_data.csv": "f4592f4ba4db42f5d7625688986be25b575ca34d0504b27979ca6b0276bd3af9",
        "pos_read_data.csv": "5cc1cecc1024ef0e331d0caba06f689456ab789ec3f1e904599c0a8be5c27bc8",
    },
)
SOURCES = (KR300, TIAGO, GEN3, TX40)


@dataclass(frozen=True)
class Part:
    """Consecutive rows of one recording.

    Attributes:
        source: the set it is of.
        log: which of its logs; a set that is one log has the name "".
        rows: first and one past the last row; None: all.
    """

    source: Source
    log: str = ""
    rows: tuple[int, int] | None = None


@dataclass(frozen=True)
class Split:
    """Recordings that a method is trained on, and those it must then predict.

    Attributes:
        name: in tables.
        training, test: parts of recordings.
        bandwidth_Hz: of the low-pass on the positions, and of that on measured and predicted torque.
    """

    name: str
    training: Part
    test: Part
    bandwidth_Hz: float


_TIAGO_ROWS = (921, 6791)
_TIAGO_CUT = _TIAGO_ROWS[0] + 2 * (_TIAGO_ROWS[1] - _TIAGO_ROWS[0]) // 3
_TX40_RATE_HZ = 5000
_KR300_A = Part(KR300, "A")
_TX40_ALL = Part(TX40)

SPLITS = (
    Split("KR300 A to B", _KR300_A, Part(KR300, "B"), 20.0),
    Split("KR300 A to C", _KR300_A, Part(KR300, "C"), 20.0),
    Split("TIAGo", Part(TIAGO, rows=(_TIAGO_ROWS[0], _TIAGO_CUT)), Part(TIAGO, rows=(_TIAGO_CUT, _TIAGO_ROWS[1])), 5.0),
    Split("Gen3 1 to 2", Part(GEN3, "opti_traj_testing1"), Part(GEN3, "opti_traj_testing2"), 10.0),
    Split("TX40 whole", _TX40_ALL, _TX40_ALL, 100.0),
    Split(
        "TX40 5.2 s to 8 s",
        Part(TX40, rows=(0, round(5.2 * _TX40_RATE_HZ))),
        Part(TX40, rows=(round(5.2 * _TX40_RATE_HZ), 8 * _TX40_RATE_HZ)),
        100.0,
    ),
)
"""Train on the first, predict the second. "TX40 whole" is the one that is judged on what it was trained on."""


def check_digests(source: Source, folder: Path) -> dict[str, str]:
    """Compare the files of a set with their published digests.

    Args:
        source: the set.
        folder: the benchmark's folder, in which each set has its own.

    Returns:
        SHA-256 by file name.

    Raises:
        FileError: a file is missing, or is another than the one the benchmark was fixed with.
    """
    for name, digest in source.digests.items():
        path = folder / source.folder / name
        if not path.is_file():
            raise FileError(
                f"{path} is missing; it is published by {source.origin} (docs/public_benchmark.md says where): put it "
                f"there"
            )
        if (found := file_sha256(path)) != digest:
            raise FileError(
                f"{path} has SHA-256 {found}, and the benchmark is fixed to {digest}; take the file of {source.origin}"
            )
    return dict(source.digests)


def import_part(part: Part, folder: Path, scratch: Path) -> Run:
    """Import the rows of a part by the product's own importer, with no setting for fits but the torque's side.

    Args:
        part: what to import.
        folder: the benchmark's folder.
        scratch: an existing folder for runs.

    Returns:
        The run; its robot is the one that the set comes with.

    Raises:
        FileError: as of `import_csv`.
    """
    where = scratch / f"run{sum(1 for _ in scratch.iterdir())}"
    data = folder / part.source.folder
    work = where.with_name(f"{where.name}-mapping")
    work.mkdir()
    text, data = _MAPPINGS[part.source.robot](part, data, work)
    mapping = work / "mapping.toml"
    rows = "" if part.rows is None else f"first_row = {part.rows[0]}\nend_row = {part.rows[1]}\n"
    mapping.write_text(f"version = 1\n{rows}{text}", encoding="utf-8")
    run = import_csv(mapping, where, data=data)
    fit: dict[str, Any] = {} if part.source.torque == "motor" else {"torque": part.source.torque}
    return replace(run, provenance={**run.provenance, "fit": fit})


def gen3_vendor_torque(folder: Path, part: Part) -> Array:
    """Torque of the maker's own model of the Gen3, which its logs hold beside the sensors' [N·m], shape (n, 7)."""
    name = f"{part.log}.csv"
    columns = [f"Torque{joint}" for joint in range(1, 8)]
    return read_csv_table(folder / GEN3.folder / name, LogFile(name, ",", header=True), columns).values


def _channel(name: str, columns: list[str], unit: str | list[str], side: str, more: str = "") -> str:
    """Return a mapping's table of one quantity."""
    return f"[{name}]\ncolumns = {columns!r}\nunit = {unit!r}\nside = {side!r}\n{more}".replace("'", '"')


def _kr300(part: Part, data: Path, work: Path) -> tuple[str, Path]:
    """Positions and speeds by the motors' encoders, divided by the ratio in the file; torque at the motors."""
    robot = data / "kr300.toml"
    text = f'robot = "{robot.resolve()}"\n[[files]]\npath = "{part.log}.mat"\n'
    text += '[time]\ncolumn = "rec.time_cont"\nunit = "s"\n'
    for name, variable, unit, side in (
        ("position", "act_pos_mot_deg", "deg", "joint"),
        ("velocity", "act_vel_mot_deg_per_s", "deg/s", "joint"),
        ("torque", "act_torque_abs_nm", "N·m", "motor"),
    ):
        text += _channel(name, [f"rec.{variable}[{axis}]" for axis in range(1, 7)], unit, side)
    return text, data


_TIAGO_JOINTS = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
_TIAGO_RATIO = (1.0, 100.0, 100.0, 100.0, 100.0, 336.0, 336.0, 336.0)
_TIAGO_TORQUE_CONSTANT = (1.0, 0.136, 0.136, -0.087, -0.087, -0.0613, -0.0613, -0.0613)
"""N·m/A, as the recording's authors have it; of the lift, whose effort is a force, 1."""


def _tiago(part: Part, data: Path, work: Path) -> tuple[str, Path]:
    """Currents as torques; the joints that the log lacks, wheels, casters, head and fingers, are held still."""
    urdf = data / "tiago_48_schunk.urdf"
    joints = ElementTree.parse(urdf).getroot().findall("joint")
    moving = [joint for joint in joints if joint.get("type") != "fixed" and joint.find("mimic") is None]
    lock = [str(joint.get("name")) for joint in moving if joint.get("name") not in _TIAGO_JOINTS]
    gain = [ratio * constant for ratio, constant in zip(_TIAGO_RATIO, _TIAGO_TORQUE_CONSTANT, strict=True)]
    files = "".join(f'[[files]]\npath = "tiago_{what}.csv"\n' for what in ("position", "velocity", "effort"))
    text = f'robot = "{urdf.resolve()}"\nlock = {lock!r}\n'.replace("'", '"') + files
    text += '[time]\nfile = "tiago_position.csv"\ncolumn = "t"\nunit = "s"\nresample = true\n'
    for name, what, units, more in (
        ("position", "position", ("m", "rad"), ""),
        ("velocity", "velocity", ("m/s", "rad/s"), ""),
        ("torque", "effort", ("N", "N·m"), f"gain = {gain}\n"),
    ):
        columns = [f"- {joint}_{what}" for joint in _TIAGO_JOINTS]
        unit = [units[0], *[units[1]] * 7]
        text += _channel(name, columns, unit, "joint", f'{more}file = "tiago_{what}.csv"\n')
    return text, data


def _gen3(part: Part, data: Path, work: Path) -> tuple[str, Path]:
    text = f'robot = "{(data / "gen3.urdf").resolve()}"\nsample_rate_Hz = 1000\n[[files]]\npath = "{part.log}.csv"\n'
    text += _channel("position", [f"Position{k}" for k in range(1, 8)], "rad", "joint")
    text += _channel("velocity", [f"Velocity{k}" for k in range(1, 8)], "rad/s", "joint")
    text += _channel("torque", [f"TorqueCur{k}" for k in range(1, 8)], "N·m", "joint")
    return text + _channel("joint_torque", [f"TorqueSm{k}" for k in range(1, 8)], "N·m", "joint"), data


def _tx40(part: Part, data: Path, work: Path) -> tuple[str, Path]:
    files = "".join(f'[[files]]\npath = "{name}"\n' for name in ("pos_read_data.csv", "curr_data.csv"))
    text = f'robot = "tx40"\nsample_rate_Hz = {_TX40_RATE_HZ}\n{files}'
    columns = [f"Joint_{k}" for k in range(1, 7)]
    text += _channel("position", columns, "rad", "motor", 'file = "pos_read_data.csv"\n')
    return text + _channel("torque", columns, "N·m", "motor", 'file = "curr_data.csv"\n'), data


_MAPPINGS = {"KR300": _kr300, "TIAGo": _tiago, "Gen3": _gen3, "TX40": _tx40}
