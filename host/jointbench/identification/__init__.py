"""From a run to a judged model: observations, weighted least squares, error bars, verdicts, validation."""

from jointbench.identification.commission import CommissionedJoint, commission
from jointbench.identification.comparison import Comparison, compare
from jointbench.identification.fit import fit
from jointbench.identification.fleet import Fleet, fit_fleet
from jointbench.identification.judgement import TorqueError, Verdict
from jointbench.identification.model import Model
from jointbench.identification.model_file import load_model
from jointbench.identification.payload import Payload, identify_payload
from jointbench.identification.payload_body import KnownPayload, PayloadBody
from jointbench.identification.proof import Proof
from jointbench.identification.prove import prove
from jointbench.identification.recorded_signals import without_external
from jointbench.identification.settings import FitSettings
from jointbench.identification.validation import Validation, validate, validate_models

__all__ = [
    "CommissionedJoint",
    "Comparison",
    "FitSettings",
    "Fleet",
    "KnownPayload",
    "Model",
    "Payload",
    "PayloadBody",
    "Proof",
    "TorqueError",
    "Validation",
    "Verdict",
    "commission",
    "compare",
    "fit",
    "fit_fleet",
    "identify_payload",
    "load_model",
    "prove",
    "validate",
    "validate_models",
    "without_external",
]
