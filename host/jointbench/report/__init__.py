"""What a model is worth, for people: an HTML report, one on two models, and the picture that sums it up."""

from jointbench.report.comparison_evidence import ComparisonEvidence
from jointbench.report.pressure_model import PressureModel
from jointbench.report.write import key_picture, residual_picture, stance_picture, write_comparison, write_report

__all__ = [
    "ComparisonEvidence",
    "PressureModel",
    "key_picture",
    "residual_picture",
    "stance_picture",
    "write_comparison",
    "write_report",
]
