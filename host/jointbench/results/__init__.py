"""Results of an identification for people and other programs: reports, plots, exported models, converted runs."""

from jointbench.results.content import NOT_A_NUMBER, Fact, count, ledger_table, percent
from jointbench.results.conversion import ENDINGS, FORMATS, convert, import_converted, is_converted
from jointbench.results.evidence import ComparisonEvidence, Evidence, PressureModel
from jointbench.results.export import BODIES, MJCF, SUFFIXES, export, own_urdf
from jointbench.results.full_model import FullModel
from jointbench.results.mjcf import left_out
from jointbench.results.plan_evidence import PlanEvidence, SupportEvidence, Trace, plain
from jointbench.results.reports import (
    check_picture,
    key_picture,
    plan_picture,
    residual_picture,
    stance_picture,
    write_bring_up,
    write_comparison,
    write_proof,
    write_report,
)
from jointbench.results.ros2_package import ros2_package_name, write_ros2_package
from jointbench.results.summary import headline

__all__ = [
    "BODIES",
    "ENDINGS",
    "FORMATS",
    "MJCF",
    "NOT_A_NUMBER",
    "SUFFIXES",
    "ComparisonEvidence",
    "Evidence",
    "Fact",
    "FullModel",
    "PlanEvidence",
    "PressureModel",
    "SupportEvidence",
    "Trace",
    "check_picture",
    "convert",
    "count",
    "export",
    "headline",
    "import_converted",
    "is_converted",
    "key_picture",
    "ledger_table",
    "left_out",
    "own_urdf",
    "percent",
    "plain",
    "plan_picture",
    "residual_picture",
    "ros2_package_name",
    "stance_picture",
    "write_bring_up",
    "write_comparison",
    "write_proof",
    "write_report",
    "write_ros2_package",
]
