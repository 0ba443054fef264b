"""Benchmarks: what wire, firmware, dynamics and plans cost, what the boards' filters do, how accurate fits are."""
