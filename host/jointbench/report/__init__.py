"""What a model is worth, for people: an HTML report and the picture that sums it up."""

from jointbench.report.pressure_model import PressureModel
from jointbench.report.write import key_picture, residual_picture, stance_picture, write_report

__all__ = ["PressureModel", "key_picture", "residual_picture", "stance_picture", "write_report"]
