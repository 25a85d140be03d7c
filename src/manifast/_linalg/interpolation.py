"""Embeddings learnt together with their Gaussian interpolator: Algorithm 1 of NSSE for any A with Y'Y = I.

min tr(Y'AY) + μ2 tr(Y'Ψ^-2 Y) + μ3/σ² (10), in turn over Y and the width σ of Ψ = exp(-d²/σ²). Equation numbers are
those of NSSE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from manifast._gram import median_of_squares
from manifast._linalg import dense
from manifast._linalg.copies import unique_rows
from manifast._linalg.davidson import shifted_product, smallest_coefficients
from manifast._progress import Steps, details, log
from manifast._threads import available_threads, lazy
from manifast._validation import Array
from manifast.kernels import sq_distances
from manifast.spectral import LowRankSum, fix_signs, matrix_norm

COARSE = tuple(np.geomspace(0.3, 6.0, 10))  # widths in medians among which the search looks for its bracket
_REFINE = 6  # widths tried inside the bracket
_BEYOND = 1.4  # how far the search may leave the grid at its ends
_PANEL = 128  # rows of the kernel matrix that are made at once
_SLACK = 0.999  # of a bound, for rounding
_FAR_OFF = 1.3  # times the best cost, beyond which a width's factor is not kept
_DEPENDENT = 1e-10  # relative eigenvalue of a Gram matrix below which rounding is all there is
_KEPT_BYTES = 1 << 29  # for factors of the kernel matrix that may serve again
_FAR = 1e6  # where the constant is moved to, relative to the objective


class Interpolator:
    """Gaussian kernel matrices of one set of rows for any width, and the factors of them that may serve again.

    Repeated rows share one coefficient c, counted once with weight 1/m for m of them: what the smallest solution of
    ΨC = Y does.
    """

    def __init__(self, X: Array) -> None:
        rows = X.astype(np.float64)
        self.n = len(rows)
        self.squares = sq_distances(rows)
        if np.count_nonzero(self.squares) == self.n * (self.n - 1):  # no row repeats: told sooner than by sorting rows
            first, self.groups, counts = np.arange(self.n), np.arange(self.n), np.ones(self.n)
        else:
            first, self.groups, counts = unique_rows(rows)
        self.unique = slice(None) if len(first) == self.n else first
        self.roots = np.sqrt(counts)
        self._distinct = self.squares if len(first) == self.n else self.squares[np.ix_(first, first)]
        self._factors: dict[float, Array | None] = {}
        self._spare: list[Array] = []  # memory of factors that are no longer wanted
        self._probes: dict[float, Array] = {}  # of each width: E with |ΨEa| = |a|, from the last bound on its cost
        self._problems: dict[int, tuple[Any, SmoothProblem]] = {}
        # All that a search comes back to, or none: large matrices are rather made again than kept.
        fit = int(_KEPT_BYTES // (8 * self.n**2))
        self.keep = fit if fit > len(COARSE) else 1

    @lazy
    def median(self) -> float:
        """Of the distances between rows."""
        return median_of_squares(self.squares)

    def problem(self, objective: Any) -> SmoothProblem:
        """The problem of an objective on these rows; for the same one the same, with all that it keeps."""
        if id(objective) not in self._problems:
            made = SmoothProblem(self, objective.A, floor=objective.floor, drop_constant=objective.drop_constant)
            self._problems[id(objective)] = objective, made
        return self._problems[id(objective)][1]

    def kernel(self, sigma: float) -> Array:
        """Ψ, whose columns of repeated rows are one."""
        psi = _gaussian(self.squares, sigma)
        return psi if isinstance(self.unique, slice) else psi[:, self.unique] * self.roots

    def make_room(self) -> None:
        """Let factors go that are too large to be kept beside what follows."""
        if self.keep == 1:
            self._factors.clear()
            self._spare.clear()

    def factored(self, sigma: float) -> bool:
        """Whether a factor of Ψ is at hand, so that its cost takes no more than a solve."""
        return sigma in self._factors

    def coefficients(self, sigma: float, Y: Array) -> Array | None:
        """Ψ^-1 Y, None where Ψ is singular to working precision."""
        solved = self._solve(sigma, Y[self.unique])
        return None if solved is None else solved / self.roots[:, None]

    def spread(self, coef: Array) -> Array:
        """Coefficients of all rows: copies share one equally."""
        return np.asarray((coef / self.roots[:, None])[self.groups])

    def cost_bound(self, mu2: float, mu3: float, width: float, Y: Array, directions: Array) -> float:
        """A lower bound on the cost of a width, from products with its kernel matrix instead of a factorisation.

        |Ψ^-1 y|² is the largest (y·v)² / |Ψv|² over all v: here over those in the span of `directions`, as far as their
        images are independent. It is exact where they hold Ψ^-2 y.
        """
        self._keep_probe(width, directions, self._image(width, directions) * self.roots[:, None])
        return self.known_bound(mu2, mu3, width, Y)

    def known_bound(self, mu2: float, mu3: float, width: float, Y: Array) -> float:
        """The same by the directions that were last used for that width, whatever Y they were for: at no cost."""
        probe = self._probes.get(width)
        smallest = 0.0 if probe is None else float(np.square(probe.T @ Y[self.unique]).sum())
        return float(_SLACK * mu2 * smallest + mu3 / width**2)

    def _keep_probe(self, width: float, directions: Array, image: Array) -> None:
        """Directions mixed so that their images under Ψ are orthonormal, as far as these are independent."""
        lengths = np.maximum(np.asarray(np.linalg.norm(image, axis=0)), np.finfo(float).tiny)
        image = image / lengths
        values, vectors = np.linalg.eigh(image.T @ image)
        apart = values > _DEPENDENT * values[-1:]
        self._probes[width] = directions @ (vectors[:, apart] / np.sqrt(values[apart]) / lengths[:, None])

    def _image(self, width: float, block: Array) -> Array:
        """Ψ of different rows times a block: half of Ψ is made, some rows at a time, and serves twice."""
        image = np.zeros(block.shape)
        for begin in range(0, len(block), _PANEL):
            end = begin + _PANEL
            part = _gaussian(self._distinct[begin:end, begin:], width)
            image[begin:end] += part @ block[begin:]
            image[end:] += part[:, _PANEL:].T @ block[begin:end]
        return image

    def direction(self, sigma: float, Y: Array, coef: Array | None = None) -> Array:
        """Ψ^-2 Y, repeated rows counted once; nothing where Ψ is singular. It serves bounds on widths around."""
        coef = self.coefficients(sigma, Y) if coef is None else coef
        inner = None if coef is None else self._solve(sigma, coef / self.roots[:, None])
        if coef is None or inner is None:
            return np.empty((len(self.roots), 0))
        self._keep_probe(sigma, inner, coef)
        return inner

    def factor(self, widths: Sequence[float]) -> None:
        """Have the factors of these widths at hand, as far as they are kept."""
        wanted = [sigma for sigma in widths if sigma not in self._factors]
        for sigma, found in zip(wanted, dense.factored(self._lower_kernel, wanted, len(self.roots)), strict=True):
            while len(self._factors) >= self.keep:
                self._factors.pop(next(iter(self._factors)))
            self._factors[sigma] = found

    def recycle(self, sigma: float) -> None:
        """Let a factor go; its memory serves the next one, as fresh memory can take as long as a factorisation."""
        found = self._factors.pop(sigma, None)
        if found is not None:
            self._spare.append(found.T)

    def _lower_kernel(self, sigma: float) -> Array:
        """The lower triangle of Ψ, repeated rows counted once: all that a factorisation reads."""
        try:
            psi = self._spare.pop()
        except IndexError:
            psi = np.empty(self._distinct.shape)
        for begin in range(0, len(psi), _PANEL):
            psi[begin : begin + _PANEL, begin:] = _gaussian(self._distinct[begin : begin + _PANEL, begin:], sigma)
        return psi.T

    def _solve(self, sigma: float, block: Array) -> Array | None:
        """Ψ^-1 times a block, repeated rows counted once."""
        self.factor([sigma])
        factor = self._factors[sigma]
        return None if factor is None else dense.solve(factor, block)


class SmoothProblem:
    """tr(Y'AY) + μ2 tr(Y'Ψ(σ)^-2 Y) with Y'Y = I, for one A and any width.

    Parameters
    ----------
    interpolator : Interpolator
    A : matrix with `@`
        Of a `LowRankSum` the low rank sets as many vectors apart from all others.
    floor : float or None
        No eigenvalue of A is below; None is a bound by its norm.
    drop_constant : bool
        Whether Y is to be orthogonal to the constant, up to a millionth.
    """

    def __init__(self, interpolator: Interpolator, A: Any, *, floor: float | None, drop_constant: bool) -> None:
        self.interpolator, self._A = interpolator, A
        size = matrix_norm(A)
        self._floor = -size if floor is None else floor
        self._far = _FAR * size / interpolator.n if drop_constant else 0.0
        self._products: dict[tuple[float, bool], Array] = {}
        self._steps: dict[tuple[float, float], Step] = {}

    @property
    def start(self) -> Array:
        """Vectors near the wanted ones, if any are known."""
        return self._A.factor if isinstance(self._A, LowRankSum) else np.empty((self.interpolator.n, 0))

    def apply(self, block: Array) -> Array:
        """A times a block; the constant is moved to the far end where it is to be left out."""
        image: Array = np.asarray(self._A @ block)
        return image + self._far * block.sum(axis=0) if self._far else image

    def embed(self, mu2: float, sigma: float, d: int, start: Array) -> Step:
        """Step 4 of Algorithm 1: the smallest eigenvectors of (12). μ3 does not change them, d only their number."""
        known = self._steps.get((mu2, sigma))
        if known is not None and len(known.values) >= d:
            return known.first(d)
        self.interpolator.make_room()
        psi = self.interpolator.kernel(sigma)
        found = Step(
            *smallest_coefficients(self.apply, psi, mu2, d, product=self._product(psi, sigma, d), start=start), {}
        )
        if self.interpolator.keep > 1 and len(self._steps) < _KEPT_BYTES // (16 * self.interpolator.n * d):
            self._steps[mu2, sigma] = found
        return found

    def direction(self, mu2: float, values: Array, Y: Array) -> Array:
        """Ψ^-2 Y of eigenvectors, repeated rows counted once, without a factor: (12) is μ2 Ψ^-2 Y = YΛ - AY."""
        image = (Y * values - self.apply(Y)) / mu2
        if isinstance(self.interpolator.unique, slice):
            return image
        summed = np.zeros((len(self.interpolator.roots), Y.shape[1]))
        np.add.at(summed, self.interpolator.groups, image)
        return summed

    def _product(self, psi: Array, sigma: float, d: int) -> Array:
        """For the preconditioner; without the low rank where more vectors are wanted than that sets apart."""
        apart = isinstance(self._A, LowRankSum) and d >= self._A.factor.shape[1]
        key = (sigma, apart)
        if key not in self._products:
            if apart:
                product = shifted_product(lambda block: np.asarray(self._A.sparse @ block), psi, lowest(self._A.sparse))
            else:
                product = shifted_product(self.apply, psi, self._floor)
            if len(self._products) >= self.interpolator.keep - 1:
                return product
            self._products[key] = product
        return self._products[key]


def lowest(A: Any) -> float:
    """A bound below all eigenvalues, by Gershgorin's discs."""
    diagonal = A.diagonal()
    return float((diagonal + np.abs(diagonal) - np.asarray(abs(A).sum(axis=1)).ravel()).min())


def _gaussian(squares: Array, sigma: float) -> Array:
    """exp(-d²/σ²) of squared distances."""
    psi = squares * (-1.0 / sigma**2)
    return np.exp(psi, out=psi)


@dataclass(frozen=True)
class Step:
    """An embedding of one width, its eigenvalues and coefficients, and |Ψ^-1 y|² of its columns for other widths."""

    values: Array
    coef: Array
    Y: Array
    energies: dict[float, Array]

    def first(self, d: int) -> Step:
        """The first d columns; what is found out about these alone stays with them."""
        if d == len(self.values):
            return self
        known = {width: energy[:d] for width, energy in self.energies.items()}
        return Step(self.values[:d], self.coef[:, :d], np.ascontiguousarray(self.Y[:, :d]), known)

    def keep(self, width: float, coef: Array | None) -> None:
        """What the coefficients Ψ^-1 Y of a width say; None: Ψ has no factor, and the width no finite cost."""
        self.energies[width] = np.full(len(self.values), np.inf) if coef is None else np.square(coef).sum(axis=0)

    def cost(self, mu2: float, mu3: float, width: float) -> float:
        """The part of (10) that σ changes, for this Y: μ2 tr(Y'Ψ^-2 Y) + μ3/σ² (13)."""
        return float(mu2 * self.energies[width].sum() + mu3 / width**2)


@dataclass(frozen=True)
class Fit:
    """What Algorithm 1 ends with: Y and C belong to sigma."""

    values: Array
    Y: Array
    coef: Array
    sigma: float
    objectives: list[float]
    sigmas: list[float]
    settled: bool


def alternate(
    problem: SmoothProblem,
    mu2: float,
    mu3: float,
    d: int,
    *,
    sigma: float,
    candidates: Array | None,
    max_iter: int,
    tol: float,
) -> Fit:
    """Algorithm 1. With `candidates` None sigma stays; with none in the array it is sought between bracketing widths.

    Every objective is that of (10) at the embedding that belongs to the width of the same place. The free search
    approaches its end by ever smaller steps: where two follow one another it leaps to where they would end, unless the
    objective is above what the plain step is known to reach.
    """
    start = problem.start
    objectives: list[float] = []
    sigmas = [sigma]
    leap: tuple[float, float] | None = None  # the plain step, and what it reaches at least
    found = problem.embed(mu2, sigma, d, start)
    settled = candidates is None
    steps = Steps("steps of the width", max_iter + 1)
    for step in range(max_iter + 1):
        objective = float(found.values.sum() + mu3 / sigma**2)
        if leap is not None and objective > leap[1]:
            sigma = sigmas[-1] = leap[0]
            found = problem.embed(mu2, sigma, d, start)
            objective = float(found.values.sum() + mu3 / sigma**2)
        objectives.append(objective)
        if details():
            log(f"step {step}, sigma {sigma:.4g}, objective {objective:.8g}")
        settled |= steps.done()
        if settled or candidates is None or step == max_iter:
            break
        now = float(mu2 * np.square(found.coef).sum() + mu3 / sigma**2)
        ahead = problem.direction(mu2, found.values, found.Y)
        best, cost = best_width(problem.interpolator, mu2, mu3, found, sigma, candidates, ahead)
        settled = abs(best - sigma) <= (0.0 if len(candidates) else tol) * sigma
        if settled:
            break
        leap, target = None, best
        if not len(candidates) and len(sigmas) > 1:
            ratio = np.log(best / sigma) / np.log(sigma / sigmas[-2])
            if 0.2 < ratio < 0.95:
                leap, target = (best, objective - now + cost), sigma * (best / sigma) ** float(1 / (1 - ratio))
        sigma, start = target, np.hstack([found.Y, problem.start])
        sigmas.append(sigma)
        found = problem.embed(mu2, sigma, d, start)
    steps.close()
    image = fix_signs(found.Y)
    turned = np.where(np.einsum("ij,ij->j", image, found.Y) < 0, -1.0, 1.0)
    coef = problem.interpolator.spread(found.coef) * turned
    return Fit(found.values, image, coef, sigma, objectives, sigmas, settled)


def best_width(
    interpolator: Interpolator,
    mu2: float,
    mu3: float,
    found: Step,
    sigma: float,
    candidates: Array,
    direction: Array | None = None,
) -> tuple[float, float]:
    """Step 5 of Algorithm 1: the width of smallest cost (13) among the candidates and the current one, and that cost.

    Widths whose factors are at hand come first, then the others in the order of lower bounds on their costs, until
    these are above the best cost: the result is that of trying all. `direction` is about Ψ^-2 Y of the current width,
    if it is known. Without candidates a coarse grid brackets the minimum, and a search inside refines it.
    """
    Y = found.Y
    coefficients: dict[float, Array | None] = {sigma: found.coef}
    found.keep(sigma, found.coef)
    costs = {sigma: found.cost(mu2, mu3, sigma)}

    def cost(width: float) -> float:
        if width not in costs:
            if width not in found.energies:
                coefficients[width] = interpolator.coefficients(width, Y)
                found.keep(width, coefficients[width])
            costs[width] = found.cost(mu2, mu3, width)
        return costs[width]

    def best() -> float:
        return min(costs, key=lambda width: (costs[width], width))

    grid = sorted({sigma, *map(float, candidates if len(candidates) else interpolator.median * np.array(COARSE))})
    for width in reversed(grid):  # μ3/σ² alone rules out small ones
        if mu3 / width**2 <= min(costs.values()) and (width in found.energies or interpolator.factored(width)):
            cost(width)
    least = min(costs.values())
    others = [width for width in grid if width not in costs and interpolator.known_bound(mu2, mu3, width, Y) <= least]
    directions: dict[float, Array] = {}  # Ψ^-2 Y of the widths that have been tried
    used: dict[float, int] = {}  # how many of them the bound of a width is from
    known: dict[float, float] = {}

    def bounds(widths: list[float]) -> dict[float, float]:
        """With the directions of all widths that have a cost by now, which tell most about widths between them.

        Of larger widths costs soon exceed the best so far that the directions of the current one suffice.
        """
        open_widths = [width for width in widths if used.get(width) != len(directions)]
        every = np.hstack([Y[interpolator.unique], *directions.values()])

        def bound(width: float) -> float:
            few = width > sigma and width not in used
            return interpolator.cost_bound(mu2, mu3, width, Y, directions[sigma] if few else every)

        lower = dense.side_by_side(bound, open_widths, 2.0 * len(Y) ** 2 * every.shape[1])
        used.update((width, len(directions) if width in used or width < sigma else 0) for width in open_widths)
        known.update(zip(open_widths, lower, strict=True))
        return {width: known[width] for width in widths}

    if others:
        directions[sigma] = interpolator.direction(sigma, Y, found.coef) if direction is None else direction
    lowest_costs = bounds(others) if others else {}
    together = available_threads() if interpolator.keep > 1 else 1  # factors of the next ones are made side by side
    while lowest_costs:
        nearest = sorted(lowest_costs, key=lambda width: (lowest_costs[width], width))[:together]
        nearest = [width for width in nearest if lowest_costs[width] <= min(costs.values())]
        if not nearest:
            break
        raised = bounds(nearest)  # those that were tried meanwhile tell more
        for width in nearest:
            del lowest_costs[width]
        worth = [width for width in nearest if raised[width] <= min(costs.values())]
        interpolator.factor(worth)
        for width in worth:
            cost(width)
            directions[width] = interpolator.direction(width, Y, coefficients[width])
            if costs[width] > _FAR_OFF * min(costs.values()):  # the next step will hardly ask for it
                interpolator.recycle(width)
    if not len(candidates):
        at = grid.index(best())
        below = grid[at - 1] if at else grid[at] / _BEYOND
        above = grid[at + 1] if at + 1 < len(grid) else grid[at] * _BEYOND
        minimize_scalar(
            lambda t: min(cost(float(np.exp(t))), 1e300),
            bounds=(np.log(below), np.log(above)),
            method="bounded",
            options={"maxiter": _REFINE, "xatol": 1e-4},
        )
    return best(), costs[best()]
