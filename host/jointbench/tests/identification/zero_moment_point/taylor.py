"""Automatic differentiation to second order: numbers that carry their gradient and Hessian along."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointbench.arrays import Array


@dataclass(frozen=True, eq=False)
class Taylor:
    """A value with its exact first and second derivatives by p variables.

    Attributes:
        value: shape ().
        gradient: shape (p,).
        hessian: shape (p, p).
    """

    value: float
    gradient: Array
    hessian: Array

    @staticmethod
    def variables(point: Array) -> list[Taylor]:
        n = len(point)
        return [Taylor(float(each), np.eye(n)[i], np.zeros((n, n))) for i, each in enumerate(point)]

    def __add__(self, other: Taylor | float) -> Taylor:
        if not isinstance(other, Taylor):
            return Taylor(self.value + other, self.gradient, self.hessian)
        return Taylor(self.value + other.value, self.gradient + other.gradient, self.hessian + other.hessian)

    def __mul__(self, other: Taylor | float) -> Taylor:
        if not isinstance(other, Taylor):
            return Taylor(self.value * other, self.gradient * other, self.hessian * other)
        crossed = np.outer(self.gradient, other.gradient)
        return Taylor(
            self.value * other.value,
            self.value * other.gradient + other.value * self.gradient,
            self.value * other.hessian + other.value * self.hessian + crossed + crossed.T,
        )

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Taylor | float) -> Taylor:
        return self + -1.0 * other

    def __truediv__(self, other: Taylor) -> Taylor:
        inverse = 1.0 / other.value
        curved = 2.0 * inverse**3 * np.outer(other.gradient, other.gradient) - inverse**2 * other.hessian
        return self * Taylor(inverse, -(inverse**2) * other.gradient, curved)
