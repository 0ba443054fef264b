"""Models for other programs: URDF, MJCF, C, JSON and TOML."""

from jointbench.exporting.export import export
from jointbench.exporting.full_model import FullModel

__all__ = ["FullModel", "export"]
