"""The rows of a least-squares problem, and what makes or changes them."""

from jointbench.identification.rows.rows import Block, ChangedRows, JointRows, PredictedTorqueRows, Rows, RowsInMemory

__all__ = ["Block", "ChangedRows", "JointRows", "PredictedTorqueRows", "Rows", "RowsInMemory"]
