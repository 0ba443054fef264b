"""A bench without hardware: emulated boards in lockstep with a robot that MuJoCo simulates."""

from hil_tests.virtual_bench.errors import BenchError
from hil_tests.virtual_bench.start import virtual_bench

__all__ = ["BenchError", "virtual_bench"]
