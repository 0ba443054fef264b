"""Results of an identification for people and other programs: reports, plots, exported models, converted runs."""

from jointbench.results.conversion import FORMATS, convert, import_converted, is_converted
from jointbench.results.evidence import ComparisonEvidence, PressureModel
from jointbench.results.export import export
from jointbench.results.full_model import FullModel
from jointbench.results.reports import (
    key_picture,
    residual_picture,
    stance_picture,
    write_comparison,
    write_report,
)

__all__ = [
    "FORMATS",
    "ComparisonEvidence",
    "FullModel",
    "PressureModel",
    "convert",
    "export",
    "import_converted",
    "is_converted",
    "key_picture",
    "residual_picture",
    "stance_picture",
    "write_comparison",
    "write_report",
]
