"""Least squares with a Gaussian prior by blocks of time: strength of the prior, error bars, error of time left out.

Neighbouring rows of a recording are alike, so that neither their number nor a sandwich of few blocks says how well many
parameters are known. Leaving whole blocks of time out and fitting anew does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from jointbench.arrays import Array
from jointbench.identification.physical.pseudo_inertia import reference_bodies, relative_to
from jointbench.identification.rows import Block, JointRows, Rows
from jointbench.identification.triangles import Triangles, compress
from jointbench.model import PARAMETER_NAMES, BaseParameters

BLOCKS = 20
"""Blocks of time for error bars, two neighbours left out at a time. On four public recordings 92 to 98 % of the
parameters of two halves then agree within 2 σ, and differ by 0.8 to 1.0 σ rms; of blocks one by one 85 to 97 % do, and
by 0.95 to 1.3 σ."""

QUARTERS = 4
"""Blocks of time to choose by: few and long, for neighbours in time are alike, and a new motion is far from both."""

STRENGTHS = 10.0 ** np.arange(-4.0, 4.6, 0.5)
"""Strengths tried of a prior that only knows the size of links."""

_ALIKE = 0.005
"""Difference of two logarithms of an error that is none: of strengths so alike the weakest is taken."""

_PASSES = 3
"""Of weights and strength, each from the residuals of the pass before."""

_ENOUGH_FREEDOM = 0.5
"""Share of its rows that a recording of a joint must have left over to weigh itself by; else the joint's over all."""

_NO_PRIOR = 1e-12
"""Variance of a direction that nothing is known of, relative to the largest: it stays where the prior has it."""


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums [X τ]ᵀ[X τ] over the rows of each joint in each block of time of each recording.

    Attributes:
        grams: one for each segment and joint, shape (n_segments, n_joints, p + 1, p + 1).
        counts: rows of each, shape (n_segments, n_joints).
        block: of time that each segment lies in, of `BLOCKS`, shape (n_segments,).
        part: recording that it is of, shape (n_segments,).
        rows_of_time: of all recordings, those in gaps too.
        triangles: R of each segment's rows where they are kept, RᵀR = gram, of the shape of `grams`.
    """

    grams: Array
    counts: NDArray[np.intp]
    block: NDArray[np.intp]
    part: NDArray[np.intp]
    rows_of_time: int
    triangles: Array | None = None

    @cached_property
    def of_groups(self) -> tuple[Array, Array]:
        """Sums and counts of each recording, shapes (n_parts, n_joints, p + 1, p + 1) and (n_parts, n_joints)."""
        n_parts = int(self.part.max()) + 1
        grams = np.zeros((n_parts, *self.grams.shape[1:]))
        counts = np.zeros((n_parts, self.grams.shape[1]))
        np.add.at(grams, self.part, self.grams)
        np.add.at(counts, self.part, self.counts)
        return grams, counts

    def stacked(self, weights: Array, without: int | None = None) -> Array:
        """Return all triangles below each other, weighted, but those of a quarter of the time, shape (n, p + 1).

        Args:
            weights: of the joints of each recording [1/(N·m)²], shape (n_parts, n_joints).
            without: number of the quarter, of `QUARTERS`; None: none is left out.
        """
        assert self.triangles is not None
        kept = self.block * QUARTERS // BLOCKS != (-1 if without is None else without)
        root = np.sqrt(weights[self.part[kept]])
        return (root[..., None, None] * self.triangles[kept]).reshape(-1, self.triangles.shape[-1])

    def weighted(self, weights: Array) -> Array:
        """Return the sums of each block over its joints, shape (BLOCKS, p + 1, p + 1).

        Args:
            weights: of the joints of each recording [1/(N·m)²], shape (n_parts, n_joints).
        """
        segments = np.einsum("sj,sjkl->skl", weights[self.part], self.grams)
        blocks = np.zeros((BLOCKS, *segments.shape[1:]))
        np.add.at(blocks, self.block, segments)
        return blocks


def block_sums(parts: Sequence[Rows], spans: Sequence[tuple[int, int]] | None = None) -> tuple[BlockSums, Triangles]:
    """Sum the rows of recordings, one after the other, by equal blocks of time.

    Args:
        parts: rows of one recording each, with the same columns.
        spans: of each, as `span_of` gives them; None: these.

    Returns:
        The sums, and the triangles of each recording's joints as `compress` makes them.
    """
    lengths = [span_of(part) for part in parts] if spans is None else spans
    total, before = sum(stop - start for start, stop in lengths), 0
    segments: list[Triangles] = []
    places: list[tuple[int, int]] = []
    for number, (part, (start, stop)) in enumerate(zip(parts, lengths, strict=True)):
        for block, rows in _segments(part, before - start, total):
            segments.append(compress([_Gathered(rows, part.n_joints, part.n_parameters)]))
            places.append((block, number))
        before += stop - start
    matrices = np.array([segment.matrices for segment in segments])
    counts = np.array([segment.counts for segment in segments])
    of = np.array(places, dtype=np.intp)
    grams = np.swapaxes(matrices, -1, -2) @ matrices
    equations = BlockSums(grams, counts, of[:, 0], of[:, 1], total, matrices)
    return equations, _joined(matrices, counts, of[:, 1], len(parts))


def span_of(part: Rows) -> tuple[int, int]:
    """Return the place of the first row of a recording on its grid of times, and that after the last one."""
    places = [(block.start, block.stop) for block in part.blocks()]
    return min((start for start, _ in places), default=0), max((stop for _, stop in places), default=1)


def _segments(part: Rows, shift: int, total: int) -> Iterator[tuple[int, list[Block]]]:
    """Yield the rows of a recording, block of time by block of time."""
    number, rows = -1, list[Block]()
    for block in part.blocks():
        of_row = BLOCKS * (np.arange(block.start, block.stop) + shift) // total
        cuts = [0, *(np.flatnonzero(np.diff(of_row)) + 1).tolist(), len(of_row)]
        for first, last in pairwise(cuts):
            if of_row[first] != number and rows:
                yield number, rows
                rows = []
            number = int(of_row[first])
            rows.append(_rows(block, slice(first, last)))
    if rows:
        yield number, rows


def _rows(block: Block, part: slice) -> Block:
    """Return some rows of a block."""
    joints = tuple(JointRows(which, columns[:, part]) for which, columns in block.joints)
    return replace(
        block,
        start=block.start + part.start,
        joints=joints,
        torque=block.torque[part],
        used=block.used[part],
        complete=block.complete[part],
        motion=None,
    )


@dataclass(frozen=True, eq=False)
class _Gathered:
    """Rows that are some blocks."""

    rows: list[Block]
    n_joints: int
    n_parameters: int

    def blocks(self) -> Iterator[Block]:
        return iter(self.rows)


def _joined(matrices: Array, counts: NDArray[np.intp], part: NDArray[np.intp], n_parts: int) -> Triangles:
    """Triangles of whole recordings from those of their segments."""
    n_joints, width = matrices.shape[1], matrices.shape[-1]
    joined, rows = np.zeros((n_parts, n_joints, width, width)), np.zeros((n_parts, n_joints), dtype=np.intp)
    for number in range(n_parts):
        of = part == number
        rows[number] = counts[of].sum(axis=0)
        for joint in range(n_joints):
            triangle = np.linalg.qr(matrices[of, joint].reshape(-1, width), mode="r")
            joined[number, joint, : len(triangle)] = triangle
    return Triangles(joined.reshape(-1, width, width), rows.ravel(), n_joints)


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """Gaussian prior of base parameters: mean, and L with L Lᵀ the covariance at strength 1.

    Attributes:
        mean: shape (p,).
        root: L, shape (p, p).
        is_nominal: whether the robot's file describes the links: then the strength follows from the residuals.
        mean_of_all, sigma_of_all: the same of the full parameters, shape (n_full,).
    """

    mean: Array
    root: Array
    is_nominal: bool
    mean_of_all: Array
    sigma_of_all: Array

    def rows(self, strength: float) -> Array:
        """Rows (regressor | value), each in its own σ, of which the prior of this strength is the sum of squares."""
        inverse = np.sqrt(strength) * linalg.inv(self.root)
        return np.column_stack([inverse, inverse @ self.mean])


def body_prior(base: BaseParameters, torque: Array, columns: Array) -> GaussianPrior:
    """Prior of links that are bodies about those of the robot's file, or of the links' size where it has none.

    To second order the log-det divergence of a pseudo-inertia P from P₀ is ½ |L⁻¹ (P - P₀) L⁻ᵀ|², L Lᵀ = P₀, so that
    a link's ten parameters have the covariance 2 T Tᵀ, T = `relative_to` (P₀). Links that the file does not describe
    are balls of their size about zero. Rotor inertia is known as well as its value; friction, offsets and springs are
    about zero, as large as what alone would make up the torque.

    Args:
        base: of the robot.
        torque: root mean square of each joint's torque over the rows [N·m or N], shape (n_joints,).
        columns: the same of each base column in each joint's rows, shape (n_joints, p).

    Source: Lee, Wensing & Park, IEEE T-RO 36(1), 2020.
    """
    robot, width = base.robot, len(PARAMETER_NAMES)
    bodies = reference_bodies(robot)
    mean, covariance = np.zeros(base.n_full), np.zeros((base.n_full, base.n_full))
    for link, matrix, is_nominal in zip(bodies.links, bodies.matrices, bodies.nominal, strict=True):
        own = slice(width * link, width * (link + 1))
        given = robot.joints[link].link.standard_parameters
        if is_nominal and given is not None:
            mean[own] = given
        relative = relative_to(matrix)
        covariance[own, own] = 2.0 * relative @ relative.T
    first = width * robot.n_links
    known = np.nan_to_num(base.known_beside_links)
    mean[first:] = known
    alone = sizes_alone(base, torque, columns)
    size = np.where(known != 0.0, np.abs(known), np.where(np.isfinite(alone), alone, 1.0))
    places = np.arange(first, base.n_full)
    covariance[places, places] = size**2
    of_base = base.grouping @ covariance @ base.grouping.T
    scale = np.sqrt(np.maximum(np.diag(of_base), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(of_base / np.outer(scale, scale))
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, _NO_PRIOR * values[-1]))
    sigma = np.sqrt(np.diag(covariance))
    return GaussianPrior(base.grouping @ mean, root, all(bodies.nominal), mean, sigma)


def sizes_alone(base: BaseParameters, torque: Array, columns: Array) -> Array:
    """Return the size of each parameter behind the links' that alone makes up the torque, or infinity.

    Args:
        base: of the robot.
        torque: root mean square, or length, of the torque in each group of rows [N·m or N], shape (n_groups,).
        columns: the same of each base column, shape (n_groups, p).

    Returns:
        Sizes [SI], shape (n_full - 10 * n_links,).
    """
    first = len(PARAMETER_NAMES) * base.robot.n_links
    sizes = np.full(base.n_full - first, np.inf)
    for k, shares in enumerate(base.grouping[:, first:].T):
        for row in np.flatnonzero(shares):
            acts = columns[:, row] > 0.0
            if acts.any() and torque[acts].any():
                ratio = np.linalg.norm(torque[acts]) / np.linalg.norm(columns[acts, row])
                sizes[k] = min(sizes[k], float(ratio) / abs(shares[row]))
    return sizes


class Spectrum(NamedTuple):
    """Weighted data in coordinates in which data and prior are both diagonal: (data + s prior)⁻¹ = X (e + s)⁻¹ Xᵀ."""

    vectors: Array
    values: Array


def spectrum(gram: Array, prior: GaussianPrior) -> Spectrum:
    """Diagonalize weighted data [X τ]ᵀ[X τ] beside a prior."""
    values, vectors = linalg.eigh(prior.root.T @ gram[:-1, :-1] @ prior.root)
    return Spectrum(prior.root @ vectors, np.maximum(values, 0.0))


def ridge(gram: Array, prior: GaussianPrior, strengths: Array) -> Array:
    """Parameters argmin |τ - X θ|² + s |θ - mean|²_prior for each strength s, shape (n_strengths, p)."""
    vectors, values = spectrum(gram, prior)
    pull = vectors.T @ (gram[:-1, -1] - gram[:-1, :-1] @ prior.mean)
    return prior.mean + (pull / (values + strengths[:, None])) @ vectors.T


def squares(grams: Array, parameters: Array) -> Array:
    """Σ (τ - X θ)² of sums [X τ]ᵀ[X τ], shape (…); at least rounding of Σ τ²."""
    v = np.concatenate([parameters, -np.ones((*parameters.shape[:-1], 1))], axis=-1)
    sums = np.einsum("...i,...ij,...j->...", v, grams, v)
    return np.maximum(sums, 1e-14 * grams[..., -1, -1])


@dataclass(frozen=True, eq=False)
class BlockedFit:
    """Parameters of a prior's strength, with what blocks of time say of both.

    Attributes:
        sums: that were solved.
        prior: beside them.
        weights: inverse variances of residuals [1/(N·m)²], shape (n_parts, n_joints).
        strength: λ of the prior.
        inflation: κ, by how much the residuals' correlation raises the variances of the parameters.
        parameters: shape (p,).
    """

    sums: BlockSums
    prior: GaussianPrior
    weights: Array
    strength: float
    inflation: float
    parameters: Array

    @cached_property
    def blocks(self) -> Array:
        """Weighted sums of each block."""
        return self.sums.weighted(self.weights)

    @property
    def effective_rank(self) -> float:
        """Parameters that the data tell beside the prior: tr (H (H + λ Λ)⁻¹)."""
        values = spectrum(self.blocks.sum(axis=0), self.prior).values
        return float(np.sum(values / (values + self.strength)))

    @cached_property
    def quarters(self) -> Array:
        """Parameters fitted without each quarter of the time, shape (QUARTERS, p)."""
        return self.without_quarters(np.array([self.strength]))[:, 0]

    def without_quarters(self, strengths: Array) -> Array:
        """Parameters fitted without each quarter of the time, by strength, shape (QUARTERS, n_strengths, p)."""
        held = self.blocks.reshape(QUARTERS, -1, *self.blocks.shape[1:]).sum(axis=1)
        return np.array([ridge(held.sum(axis=0) - quarter, self.prior, strengths) for quarter in held])

    def covariance(self) -> Array:
        """Covariance of the parameters: variances by leaving time out, correlations by the residuals' spread.

        A tenth of the time is left out, moved on by a twentieth each time: the variances are (m - 1) times the mean of
        (θ₋ - θ)², m = 10, and those of κ λ A⁻¹ Λ A⁻¹, the prior's own error. So few fits tell no correlations: these
        are of κ A⁻¹ H A⁻¹ and the prior's error together.

        Source: moving-block jackknife of Künsch, Annals of Statistics 17(3), 1989.
        """
        # A prior of balls predicts well but knows no parameter: it counts only where nothing else does.
        strength = self.strength if self.prior.is_nominal else min(self.strength, float(STRENGTHS[0]))
        whole = self.blocks.sum(axis=0)
        chosen = np.array([strength])
        center = ridge(whole, self.prior, chosen)[0]
        present = [block for block in self.blocks if block[-1, -1] > 0.0]
        pairs = [block + after for block, after in pairwise(present)]
        away = np.array([ridge(whole - pair, self.prior, chosen)[0] for pair in pairs]) - center
        vectors, values = spectrum(whole, self.prior)
        inflation = self.inflation
        own = vectors * (np.sqrt(inflation * strength) / (values + strength))
        data = vectors * (np.sqrt(inflation * values) / (values + strength))
        shape = own @ own.T + data @ data.T
        m = len(present) / 2.0
        variances = (m - 1.0) * np.mean(away**2, axis=0) + np.sum(own**2, axis=1)
        ratio = np.sqrt(variances / np.diag(shape))
        return shape * np.outer(ratio, ratio)


def blocked_fit(equations: BlockSums, prior: GaussianPrior, strength: float | None = None) -> BlockedFit:
    """Fit by weighted least squares beside a prior, whose strength follows from the data where it is not given.

    A nominal prior is as strong as residuals are correlated, λ = κ: rows count for what they tell. Of another one the
    weakest strength is taken whose error on quarters of time left out is the least.

    Args:
        equations: of the rows.
        prior: of the parameters.
        strength: None: chosen.
    """
    grams, counts = equations.of_groups
    weights = np.divide(counts, grams[..., -1, -1], out=np.zeros_like(counts), where=grams[..., -1, -1] > 0.0)
    chosen, inflation = 1.0 if strength is None else strength, 1.0
    parameters = prior.mean
    for _ in range(_PASSES):
        parameters = ridge(equations.weighted(weights).sum(axis=0), prior, np.array([chosen]))[0]
        weights = _weights(equations, prior, weights, parameters, chosen)
        inflation = _inflation(equations.weighted(weights), prior, parameters, chosen)
        if strength is None and prior.is_nominal:
            chosen = inflation
    fit = BlockedFit(equations, prior, weights, chosen, inflation, parameters)
    if strength is None and not prior.is_nominal:
        errors = _left_out_errors(equations, fit.without_quarters(STRENGTHS))
        chosen = weakest_of_best(STRENGTHS, errors)
    parameters = ridge(fit.blocks.sum(axis=0), prior, np.array([chosen]))[0]
    return BlockedFit(equations, prior, weights, chosen, inflation, parameters)


def weakest_of_best(strengths: Array, errors: Array) -> float:
    """Return the weakest strength whose error, a logarithm, is that of the best one but for what is none."""
    return float(strengths[np.flatnonzero(errors <= errors.min() + _ALIKE)[0]])


def mean_log_error(sums: Array, counts: Array) -> Array:
    """Return the mean over joints of ½ log (Σ e² / rows), over those that have rows; sums of shape (…, n_joints)."""
    present = (counts > 0) & (sums > 0.0).all(axis=tuple(range(sums.ndim - 1)))
    return np.asarray(0.5 * np.log(sums[..., present] / counts[present]).mean(axis=-1))


def _left_out_errors(equations: BlockSums, parameters: Array) -> Array:
    """Error of each strength on the quarters of the time that its parameters have not seen, as a logarithm."""
    quarter = equations.block * QUARTERS // BLOCKS
    sums = squares(equations.grams[:, None], parameters[quarter][:, :, None, :]).sum(axis=0)
    return mean_log_error(sums, equations.counts.sum(axis=0))


def _weights(equations: BlockSums, prior: GaussianPrior, weights: Array, parameters: Array, strength: float) -> Array:
    """Inverse variance of each group's residuals, for the freedom that its rows have left."""
    grams, counts = equations.of_groups
    vectors, values = spectrum(equations.weighted(weights).sum(axis=0), prior)
    reach = vectors / np.sqrt(values + strength)
    leverages = weights * np.einsum("pjkl,km,lm->pj", grams[..., :-1, :-1], reach, reach, optimize=True)
    freedom = np.maximum(counts - leverages, 1e-3 * counts)
    residual = squares(grams, parameters)
    pooled = np.broadcast_to(freedom.sum(axis=0) / np.maximum(residual.sum(axis=0), 1e-300), freedom.shape)
    own = np.divide(freedom, residual, out=np.zeros_like(freedom), where=residual > 0.0)
    return np.where(counts > 0, np.where(freedom > _ENOUGH_FREEDOM * counts, own, pooled), 0.0)


def _inflation(blocks: Array, prior: GaussianPrior, parameters: Array, strength: float) -> float:
    """κ = tr (A⁻¹ S) / tr (A⁻¹ H), with S the scatter of the blocks' scores; at least 1."""
    vectors, values = spectrum(blocks.sum(axis=0), prior)
    scores = (blocks[:, :-1, -1] - blocks[:, :-1, :-1] @ parameters) @ vectors
    scatter = scores.var(axis=0, ddof=1) * len(blocks)
    share = float(np.sum(values / (values + strength)))
    return max(1.0, float(np.sum(scatter / (values + strength))) / share) if share > 0.0 else 1.0
