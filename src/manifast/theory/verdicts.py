"""The theorems on one embedding, each at the free parameters that serve it best, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifast._labels import Labels
from manifast._lipschitz import gaussian_slope
from manifast._validation import Array
from manifast.theory.balls import ball_probabilities, covering_numbers, within_diameters
from manifast.theory.bounds import Bound, covering_bound, nearest_neighbor_bound, rbf_nearest_neighbor_bound
from manifast.theory.fitted_maps import GaussianMap, LinearMap
from manifast.theory.gaussian_maps import coefficient_bound
from manifast.theory.margins import q_mean_margins

__all__ = ["CoveringVerdict", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """One theorem on one embedding, at the parameters that serve it best, for the class with the weakest bound.

    `needed` is the part of half the margin that the condition takes; epsilon is chosen to take what is left of it.
    """

    theorem: str
    bound: Bound
    delta: float
    epsilon: float
    q: int
    margin: float
    needed: float

    def __str__(self) -> str:
        at = f"delta {self.delta:.3g}, Q {self.q}"
        if not self.bound.condition_holds:
            missed = f"by a factor of {2 * self.needed / self.margin:.3g}" if self.margin > 0 else "as the margin is 0"
            return f"condition not met: {self.needed:.3g} <= {self.margin / 2:.3g} fails {missed} ({at})"
        if self.bound.probability <= 0:
            return f"condition met, but vacuous: the probability it gives is 0 ({at})"
        return f"right with probability at least {_digits(self.bound.probability)} ({at}, epsilon {self.epsilon:.3g})"


@dataclass(frozen=True)
class CoveringVerdict(Verdict):
    """Theorem 2, whose condition counts balls: `balls` cover the class, of which there are `rows`."""

    balls: float
    rows: int

    def __str__(self) -> str:
        at = f"epsilon {self.epsilon:.3g}, about {self.balls:.3g} balls for {self.rows} rows"
        if not self.bound.condition_holds:
            return f"condition not met: {'as the margin is 0' if self.margin == 0 else at}"
        return f"right with probability at least {_digits(self.bound.probability)} ({at})"


@dataclass(frozen=True)
class _Case:
    """One theorem for one map.

    Its condition is steepness·delta + weight·epsilon + diameter <= margin / 2, (8), (10), (14) and (16) in the paper,
    where the diameter is 0 for linear classifiers.
    """

    theorem: str
    linear: bool
    steepness: float
    weight: float
    bound: Callable[..., Bound]


def _cases(mapping: GaussianMap | LinearMap, d: int) -> list[_Case]:
    """Theorems 5 and 6 for any Lipschitz map; 8 and 9 for Gaussian maps too."""
    L, root = mapping.lipschitz.tight, float(np.sqrt(d))

    def any_map(margin: float, diameter: float, **settings: Any) -> Bound:
        return nearest_neighbor_bound(margin, L, diameter, n_components=d, **settings)

    cases = [
        _Case("Theorem 5, linear classifier", True, L, root, any_map),
        _Case("Theorem 6, nearest neighbour", False, L, root, any_map),
    ]
    if isinstance(mapping, LinearMap):
        return cases
    C, sigma, centers = coefficient_bound(mapping.coef), mapping.sigma, len(mapping.coef)
    steepness = root * C * gaussian_slope(sigma)

    def gaussian_map(margin: float, diameter: float, **settings: Any) -> Bound:
        return rbf_nearest_neighbor_bound(margin, C, sigma, diameter, n_samples=centers, n_components=d, **settings)

    return [
        *cases,
        _Case("Theorem 8, linear classifier", True, steepness, root * C, gaussian_map),
        _Case("Theorem 9, nearest neighbour", False, steepness, root * C, gaussian_map),
    ]


def judge(
    X: Array, Y: Array, labels: Labels, spacing: float, distance: float, mapping: GaussianMap | LinearMap
) -> tuple[Verdict, ...]:
    """Every theorem that applies to the map, at the best (delta, Q, epsilon) that was found."""
    cases = _cases(mapping, Y.shape[1])
    qs = np.unique(np.geomspace(1, labels.sizes.min(), 12).round().astype(int)).tolist()
    margins = q_mean_margins(Y, labels, qs).tolist()
    # Balls smaller than the spacing are empty around some row. With larger ones than this no condition can be met.
    largest = max(distance, *margins) / (2 * min(case.steepness for case in cases))
    smallest = spacing * (1 + 1e-9) or 1e-6 * largest or 1.0
    deltas = np.geomspace(smallest, largest, 12) if largest > smallest else np.array([smallest])
    etas = ball_probabilities(X, labels, deltas)
    diameters = within_diameters(X, Y, labels, 2 * deltas).tolist()
    verdicts = []
    for case in cases:
        candidates = []
        for delta, eta, spread in zip(deltas.tolist(), etas, diameters, strict=True):
            diameter = 0.0 if case.linear else spread
            needed = case.steepness * delta + diameter
            for q, margin in zip(qs, margins if case.linear else [distance] * len(qs), strict=True):
                epsilon = max((margin / 2 - needed) / case.weight * (1 - 1e-9), float(np.finfo(float).tiny))
                settings = {"q": q, "delta": delta, "epsilon": epsilon}
                found = min(
                    case.bound(margin, diameter, n_class=int(n), eta=e, **settings)
                    for n, e in zip(labels.sizes, eta, strict=True)
                )
                candidates.append(Verdict(case.theorem, found, delta, epsilon, q, margin, needed))
        verdicts.append(max(candidates, key=lambda v: (v.bound.condition_holds, v.bound.probability, v.bound.slack)))
    return tuple(verdicts)


def judge_covering(X: Array, labels: Labels, margin: float, lipschitz: float) -> CoveringVerdict:
    """Theorem 2 at the largest epsilon that it allows, for the class with the weakest bound."""
    name = "Theorem 2, linear classifier"
    if margin == 0:
        return CoveringVerdict(name, Bound(0.0, False, 0.0), 0.0, 0.0, 1, 0.0, 0.0, np.inf, int(labels.sizes.min()))
    epsilon = margin / (2 * lipschitz)
    counts = covering_numbers(X, labels, epsilon / 2)
    found = [
        covering_bound(margin, lipschitz, covering_number=balls, n_class=int(rows), epsilon=epsilon * (1 - 1e-12))
        for balls, rows in zip(counts, labels.sizes, strict=True)
    ]
    weakest = min(range(labels.count), key=lambda c: (found[c].probability, -counts[c] / labels.sizes[c]))
    return CoveringVerdict(
        name, found[weakest], 0.0, epsilon, 1, margin, margin / 2,
        float(counts[weakest]), int(labels.sizes[weakest]),
    )  # fmt: skip


def conclude(verdicts: tuple[Verdict, ...], known: bool, spacing: float) -> str:
    """What the verdicts say in one or two sentences; `known` says whether the map has a known Lipschitz constant."""
    if not known:
        return (
            "No theorem was applied: the Lipschitz constant of this map is not known. It is known for Gaussian maps, "
            "such as NSSE and extension='rbf', and for linear maps, such as LPP and extension='linear'."
        )
    if not np.isfinite(spacing):
        return "No theorem was applied: a class has a single row, and the probability of a ball cannot be estimated."
    best: dict[str, float] = {}
    for verdict in verdicts:
        if verdict.bound.probability > 0:
            classifier = verdict.theorem.partition(", ")[2]
            best[classifier] = max(best.get(classifier, 0.0), verdict.bound.probability)
    if best:
        each = " and ".join(f"{_digits(probability)} by the {classifier}" for classifier, probability in best.items())
        return f"New rows of any class are classified correctly with probability at least {each} (estimated)."
    if any(verdict.bound.condition_holds for verdict in verdicts):
        return "All bounds are vacuous here: where a condition is met, the probability it gives is 0."
    return "All bounds are vacuous here: no condition is met. That is usual, and says nothing about the actual error."


def _digits(probability: float) -> str:
    """Four decimals, or the distance from 1 where these would all be nines."""
    return f"{probability:.4f}" if probability < 0.9999 else f"1 - {max(1 - probability, 1e-16):.0e}"
