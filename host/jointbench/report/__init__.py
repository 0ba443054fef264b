"""What a model is worth, for people: an HTML report and the picture that sums it up."""

from jointbench.report.write import key_picture, residual_picture, write_report

__all__ = ["key_picture", "residual_picture", "write_report"]
