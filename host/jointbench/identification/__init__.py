"""From a run to a judged model: observations, weighted least squares, error bars, verdicts, validation."""

from jointbench.identification.fit import fit
from jointbench.identification.model import Model
from jointbench.identification.model_file import load_model
from jointbench.identification.settings import FitSettings
from jointbench.identification.torque_error import TorqueError
from jointbench.identification.validation import Validation, validate
from jointbench.identification.verdict import Verdict

__all__ = ["FitSettings", "Model", "TorqueError", "Validation", "Verdict", "fit", "load_model", "validate"]
