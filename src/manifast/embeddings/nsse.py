"""NSSE (Örnek and Vural 2018): an embedding by labels, learnt together with its Gaussian interpolator."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from manifast._davidson import shifted_product, smallest_coefficients
from manifast._gram import median_of_squares
from manifast._labels import Labels
from manifast._validation import Array, as_count, as_number, as_positive, is_sparse
from manifast.embeddings._base import SupervisedEmbedding, check_components
from manifast.extensions import unique_rows
from manifast.graphs import heat_width, within_blocks
from manifast.kernels import knn, rbf_apply, sq_distances
from manifast.spectral import fix_signs
from manifast.theory import rbf_lipschitz

__all__ = ["NSSE", "NSSECV"]

_COARSE = tuple(np.geomspace(0.3, 6.0, 10))  # widths in medians among which the search looks for its bracket
_SHARED = tuple(np.geomspace(0.3, 6.0, 24))  # those that all candidates of a validation share
_REFINE = 6  # widths tried inside the bracket
_BEYOND = 1.4  # how far the search may leave the grid at its ends
_START = 1.5  # medians
_PANEL = 256  # rows of the kernel matrix that are made at once
_SLACK = 0.999  # of a bound, for rounding
_KEPT_BYTES = 1 << 29  # for factors of the kernel matrix that may serve again


@dataclass(frozen=True)
class Weights:
    """Weights of (10), with mu3 in units of the data."""

    mu1: float
    mu2: float
    mu3: float


class Training:
    """One training set: distances and class graphs in order of the classes, and factors that several fits share.

    Repeated rows share one coefficient c, counted once with weight 1/m for m of them: what the smallest solution of
    ΨC = Y does.
    """

    def __init__(self, X: Array, labels: Labels, n_neighbors: int | None, beta: float) -> None:
        self.order = np.argsort(labels.codes, kind="stable")
        rows = X[self.order].astype(np.float64)
        self.n = len(rows)
        self.squares = sq_distances(rows)
        self.median = median_of_squares(self.squares)
        first, self.groups, counts = unique_rows(rows)
        self.unique = slice(None) if len(first) == self.n else first
        self.roots = np.sqrt(counts)
        self._distinct = self.squares if len(first) == self.n else self.squares[np.ix_(first, first)]
        ends = np.cumsum(labels.sizes)
        self._slices = [slice(end - size, end) for end, size in zip(ends, labels.sizes, strict=True)]
        self._within = []
        for block in within_blocks(rows, [np.arange(self.n)[part] for part in self._slices], n_neighbors, beta):
            W = block.toarray() if is_sparse(block) else block
            self._within.append(np.diag(W.sum(axis=1)) - W)
        self._factors: dict[float, Array | None] = {}
        self._products: dict[tuple[float, float, bool], Array] = {}
        # All that a search comes back to, or none: large matrices are rather made again than kept.
        fit = int(_KEPT_BYTES // (8 * self.n**2))
        self._keep = fit if fit > len(_COARSE) else 1

    def contrasts(self) -> Array:
        """Class indicators."""
        hot = np.zeros((self.n, len(self._slices)))
        for c, part in enumerate(self._slices):
            hot[part, c] = 1.0
        return hot

    def objective(self, mu1: float, *, contrasts: bool = True) -> Any:
        """L_w - μ1 L_b times a block (2); L_b = diag(N - n_c) + ZZ' - 11' of the complete graph is not built.

        Without contrasts the low rank -ZZ' + 11', which sets contrasts of the classes apart, is left out.
        """
        blocks = []
        for within in self._within:
            block = within - (mu1 if contrasts else 0.0)
            block.flat[:: len(block) + 1] -= mu1 * (self.n - len(block))
            blocks.append(block)

        def apply(columns: Array) -> Array:
            out = np.empty(columns.shape)
            for part, block in zip(self._slices, blocks, strict=True):
                np.matmul(block, columns[part], out=out[part])
            if contrasts:
                out += mu1 * columns.sum(axis=0)
            return out

        return apply

    def _product(self, psi: Array, sigma: float, mu1: float, d: int) -> Array:
        """For the preconditioner. Beyond the contrasts, far below all others, those are left out of it."""
        classes = len(self._slices)
        key = (sigma, mu1, d < classes)
        if key not in self._products:
            smallest = 0 if d < classes else min(map(len, self._within))
            apply = self.objective(mu1, contrasts=d < classes)
            product = shifted_product(apply, psi, -mu1 * (self.n - smallest))
            if len(self._products) >= self._keep - 1:
                return product
            self._products[key] = product
        return self._products[key]

    def kernel(self, sigma: float) -> Array:
        """Ψ, whose columns of repeated rows are one."""
        psi = _gaussian(self.squares, sigma)
        return psi if isinstance(self.unique, slice) else psi[:, self.unique] * self.roots

    def embed(self, weights: Weights, sigma: float, d: int, start: Array) -> tuple[Array, Array, Array]:
        """Step 4 of Algorithm 1: eigenvalues, coefficients and Y of the smallest eigenvectors of (12)."""
        if self._keep == 1:
            self._factors.clear()  # too large to keep one beside what follows
        psi = self.kernel(sigma)
        product = self._product(psi, sigma, weights.mu1, d)
        return smallest_coefficients(self.objective(weights.mu1), psi, weights.mu2, d, product=product, start=start)

    def factored(self, sigma: float) -> bool:
        """Whether a factor of Ψ is at hand, so that its cost takes no more than a solve."""
        return sigma in self._factors

    def coefficients(self, sigma: float, Y: Array) -> Array | None:
        """Ψ^-1 Y, None where Ψ is singular to working precision."""
        solved = self._solve(sigma, Y[self.unique])
        return None if solved is None else solved / self.roots[:, None]

    def _solve(self, sigma: float, block: Array) -> Array | None:
        """Ψ^-1 times a block, repeated rows counted once."""
        if sigma not in self._factors:
            while len(self._factors) >= self._keep:
                self._factors.pop(next(iter(self._factors)))
            psi = np.empty(self._distinct.shape)
            for begin in range(0, len(psi), _PANEL):  # one triangle is all that a factorisation reads
                psi[begin : begin + _PANEL, begin:] = _gaussian(self._distinct[begin : begin + _PANEL, begin:], sigma)
            factor, failed = la.lapack.dpotrf(psi.T, lower=1, clean=0, overwrite_a=1)
            self._factors[sigma] = None if failed else factor
        factor = self._factors[sigma]
        return None if factor is None else np.asarray(la.lapack.dpotrs(factor, block, lower=1)[0])

    def cost_bounds(self, weights: Weights, widths: list[float], sigma: float, Y: Array, coef: Array) -> Array:
        """Lower bounds on the cost of widths, from two products with each kernel matrix instead of a factorisation.

        |Ψ^-1 y|² ≥ (y·v)² / |Ψv|² for any v. It is exact for v = Ψ^-2 y: that of the current width serves all, beside
        v = y for narrow kernels.
        """
        target = Y[self.unique]
        inner = self._solve(sigma, coef / self.roots[:, None])
        directions = target if inner is None else np.hstack([target, inner])
        repeat = directions.shape[1] // target.shape[1]
        along = np.einsum("ij,ij->j", np.tile(target, repeat), directions)
        bounds = []
        for width in widths:
            lengths = np.zeros(directions.shape[1])
            for begin in range(0, len(target), _PANEL):
                rows = slice(begin, begin + _PANEL)
                image = _gaussian(self._distinct[rows], width) @ directions
                lengths += np.square(image * self.roots[rows, None]).sum(axis=0)
            each = np.square(along) / np.maximum(lengths, np.finfo(float).tiny)
            smallest = each.reshape(repeat, -1).max(axis=0).sum()
            bounds.append(_SLACK * weights.mu2 * smallest + weights.mu3 / width**2)
        return np.array(bounds)

    def cost(self, weights: Weights, sigma: float, Y: Array) -> float:
        """The part of (10) that σ changes: μ2 tr(Y'Ψ^-2 Y) + μ3/σ² (13)."""
        coef = self.coefficients(sigma, Y)
        if coef is None:
            return np.inf
        return float(weights.mu2 * np.square(coef).sum() + weights.mu3 / sigma**2)


def _gaussian(squares: Array, sigma: float) -> Array:
    """exp(-d²/σ²) of squared distances."""
    psi = squares * (-1.0 / sigma**2)
    return np.exp(psi, out=psi)


@dataclass(frozen=True)
class Fit:
    """What Algorithm 1 ends with: Y and C belong to sigma."""

    Y: Array
    coef: Array
    sigma: float
    objectives: list[float]
    sigmas: list[float]
    settled: bool


def learn(
    training: Training,
    weights: Weights,
    d: int,
    *,
    sigma: float,
    candidates: Array | None,
    max_iter: int,
    tol: float,
    verbose: bool = False,
) -> Fit:
    """Algorithm 1. With `candidates` None sigma stays; with none in the array it is sought between bracketing widths.

    Every objective is that of (10) at the embedding that belongs to the width of the same place. The free search
    approaches its end by ever smaller steps: where two follow one another it leaps to where they would end, unless the
    objective is above what the plain step is known to reach.
    """
    start = training.contrasts()
    objectives: list[float] = []
    sigmas = [sigma]
    leap: tuple[float, float] | None = None  # the plain step, and what it reaches at least
    values, coef, Y = training.embed(weights, sigma, d, start)
    settled = candidates is None
    for step in range(max_iter + 1):
        objective = float(values.sum() + weights.mu3 / sigma**2)
        if leap is not None and objective > leap[1]:
            sigma = sigmas[-1] = leap[0]
            values, coef, Y = training.embed(weights, sigma, d, start)
            objective = float(values.sum() + weights.mu3 / sigma**2)
        objectives.append(objective)
        if verbose:
            print(f"NSSE: step {step}, sigma {sigma:.4g}, objective {objective:.8g}", file=sys.stderr, flush=True)
        if settled or candidates is None or step == max_iter:
            break
        now = float(weights.mu2 * np.square(coef).sum() + weights.mu3 / sigma**2)
        best, cost = best_width(training, weights, Y, coef, sigma, candidates)
        settled = abs(best - sigma) <= (0.0 if len(candidates) else tol) * sigma
        if settled:
            break
        leap, target = None, best
        if not len(candidates) and len(sigmas) > 1:
            ratio = np.log(best / sigma) / np.log(sigma / sigmas[-2])
            if 0.2 < ratio < 0.95:
                leap, target = (best, objective - now + cost), sigma * (best / sigma) ** float(1 / (1 - ratio))
        sigma, start = target, np.hstack([Y, training.contrasts()])
        sigmas.append(sigma)
        values, coef, Y = training.embed(weights, sigma, d, start)
    back = np.empty_like(training.order)
    back[training.order] = np.arange(training.n)
    image = fix_signs(Y[back])
    turned = np.where(np.einsum("ij,ij->j", image, Y[back]) < 0, -1.0, 1.0)
    spread = (coef / training.roots[:, None])[training.groups]
    return Fit(image, spread[back] * turned, sigma, objectives, sigmas, settled)


def best_width(
    training: Training, weights: Weights, Y: Array, coef: Array, sigma: float, candidates: Array
) -> tuple[float, float]:
    """Step 5 of Algorithm 1: the width of smallest cost (13) among the candidates and the current one, and that cost.

    Widths whose factors are at hand come first, then the others in the order of lower bounds on their costs, until
    these are above the best cost: the result is that of trying all. Without candidates a coarse grid brackets the
    minimum, and a search inside refines it.
    """
    costs = {sigma: float(weights.mu2 * np.square(coef).sum() + weights.mu3 / sigma**2)}

    def cost(width: float) -> float:
        if width not in costs:
            costs[width] = training.cost(weights, width, Y)
        return costs[width]

    def best() -> float:
        return min(costs, key=lambda width: (costs[width], width))

    grid = sorted({sigma, *map(float, candidates if len(candidates) else training.median * np.array(_COARSE))})
    for width in filter(training.factored, grid):
        cost(width)
    others = [width for width in grid if width not in costs and weights.mu3 / width**2 <= min(costs.values())]
    bounds = training.cost_bounds(weights, others, sigma, Y, coef)
    for at in np.argsort(bounds, kind="stable"):
        if bounds[at] > min(costs.values()):
            break
        cost(others[at])
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


class NSSE(SupervisedEmbedding):
    """Nonlinear supervised smooth embedding (Örnek and Vural 2018): embedding, width and interpolator learnt together.

    Minimises tr(Y'L_wY) - mu1 tr(Y'L_bY) + mu2 tr(Y'Ψ^-2 Y) + mu3/σ² subject to Y'Y = I (10) in turn over Y and σ: rows
    of a class stay together, classes are driven apart, and the Gaussian interpolator ΨC = Y that carries the embedding
    to new rows stays smooth. L_w has heat weights inside the classes, L_b joins all rows of different classes.

    Parameters
    ----------
    n_components : int, default 10
    mu1, mu2, mu3 : float, default 1.0, 0.3 and 30.0
        The weights of (10). But for the weak L_w only mu2/mu1 and mu3/mu2 matter.
    sigma : float or None, default None
        Width of the kernel exp(-d²/σ²); None is learnt.
    sigma_init : float or None, default None
        Where learning starts; None is 1.5 medians of the distances.
    sigma_grid : sequence of floats or None, default None
        Candidates for the width, of which each step takes the best, as in the paper. None brackets the best width on a
        coarse grid from 0.3 to 6 medians and refines it.
    relative : bool, default True
        Take `sigma`, `sigma_init` and `sigma_grid` in medians of the distances between rows, and `mu3` in squared
        medians, so that the scale of the features does not matter. False takes them as they are.
    n_neighbors : int or None, default None
        Join each row to that many nearest of its class, the parts of a class joined by the shortest missing edges;
        None is the complete graph inside each class.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    max_iter : int, default 20
        Steps of the width at most.
    tol : float, default 1e-2
        Relative change of the width that counts as none; with a grid it must repeat.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    sigma_ : float
    coef_ : array of shape (n, n_components)
        Of the interpolator, in float64: sums of them cancel.
    objective_history_, sigma_history_ : lists of float
        Objective (10) and width of every step, in units of the data.
    lipschitz_ : (float, float)
        Two constants of the map, as in `manifast.extensions.RBF`.
    n_iter_ : int
        Steps of the width.
    classes_ : array of classes

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from manifast import NSSE
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NSSE(n_components=9).fit(X[:500], y[:500])
    >>> nearest = KNeighborsClassifier(1).fit(model.embedding_, y[:500])
    >>> bool(nearest.score(model.transform(X[500:]), y[500:]) > 0.95)
    True
    """

    _interpolates = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        mu1: float = 1.0,
        mu2: float = 0.3,
        mu3: float = 30.0,
        sigma: float | None = None,
        sigma_init: float | None = None,
        sigma_grid: Any = None,
        relative: bool = True,
        n_neighbors: int | None = None,
        beta: Any = "mean",
        max_iter: int = 20,
        tol: float = 1e-2,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.mu1 = mu1
        self.mu2 = mu2
        self.mu3 = mu3
        self.sigma = sigma
        self.sigma_init = sigma_init
        self.sigma_grid = sigma_grid
        self.relative = relative
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        self._keep(X, learn(**self._options(X, y)))

    def _options(self, X: Array, y: Labels, training: Training | None = None) -> dict[str, Any]:
        """Arguments of `learn`, everything checked first; a training set that is at hand serves again."""
        mu1, mu2 = as_positive(self.mu1, "mu1"), as_positive(self.mu2, "mu2")
        mu3 = as_number(self.mu3, "mu3", minimum=0.0)
        given = {name: getattr(self, name) for name in ("sigma", "sigma_init")}
        widths = {name: None if value is None else as_positive(value, name) for name, value in given.items()}
        grid = None if self.sigma_grid is None else [as_positive(s, "sigma_grid") for s in np.ravel(self.sigma_grid)]
        if grid == []:
            raise ValueError("sigma_grid must be None or hold at least one width. Got none.")
        max_iter, tol = as_count(self.max_iter, "max_iter"), as_number(self.tol, "tol", minimum=0.0)
        k = None if self.n_neighbors is None else as_count(self.n_neighbors, "n_neighbors")
        check_components(self.n_components, X.shape[0], "the number of rows")
        if training is None:
            training = Training(X, y, k, heat_width(X, self._in_units(self.beta, 2)))
        d = check_components(self.n_components, len(training.roots), "the number of different rows")
        unit = training.median if self.relative else float(np.ldexp(1.0, -self._exponent))
        start = widths["sigma"] or widths["sigma_init"]
        return {
            "training": training,
            "weights": Weights(mu1, mu2, min(mu3 * unit * unit, 1e300) if mu3 else 0.0),
            "d": d,
            "sigma": _START * training.median if start is None else start * unit,
            "candidates": None if widths["sigma"] is not None else np.array(grid or []) * unit,
            "max_iter": max_iter,
            "tol": tol,
            "verbose": self.verbose,
        }

    def _keep(self, X: Array, fit: Fit) -> None:
        if not fit.settled:
            warnings.warn(
                f"NSSE: sigma still moves after {len(fit.sigmas) - 1} steps. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self._width, self.coef_, self._X = fit.sigma, fit.coef, X
        self.embedding_ = fit.Y.astype(X.dtype)
        unit = 2.0**self._exponent
        self.sigma_, self.sigma_history_ = fit.sigma * unit, [sigma * unit for sigma in fit.sigmas]
        self.objective_history_ = fit.objectives
        self.lipschitz_ = rbf_lipschitz(fit.coef, self.sigma_)
        self.n_iter_ = max(1, len(fit.sigmas) - 1)

    def _map(self, X: Array) -> Array:
        return rbf_apply(X.astype(np.float64, copy=False), self._X, self.coef_, sigma=self._width).astype(
            X.dtype, copy=False
        )


class NSSECV(NSSE):
    """NSSE with its weights and dimension chosen by validation, one after the other as in the paper.

    From typical values on, mu1, mu2, mu3 and n_components take turns: each gets the candidate with the smallest 1-NN
    error on held-out parts of the training set, the others as they are. Distances, graphs and factors of a part serve
    all candidates. The chosen values are then fitted to all rows.

    Parameters
    ----------
    n_components : int, sequence of ints or None, default None
        Candidates; None is about a third, a half, two thirds and all of the number of classes less one.
    mu1, mu2, mu3 : float or sequence of floats
        Candidates, by default (1.0,), (0.1, 0.3, 1, 3, 10) and (10, 30, 100, 300, 1000). The choice starts from the
        middle one of each.
    n_splits : int, default 5
        Random splits of the training set.
    validation_size : float, default 0.3
        Share of each class that is held out; at least one row of it stays.
    n_rounds : int, default 1
        How often every parameter takes its turn.
    sigma_grid : sequence of floats or None, default None
        Candidates for the width in the splits, in medians or absolute as `relative` says; None is 24 from 0.3 to 6
        medians. The final fit brackets and refines the width unless a grid is given.
    sigma, sigma_init, relative, n_neighbors, beta, max_iter, tol
        As in `NSSE`.
    random_state : int, default 0
        Of the splits.
    verbose : bool, default False

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Mean accuracy on the held-out rows.
    cv_results_ : dict
        "params", a list of dicts in the order they were tried, and "mean_test_score", "std_test_score".
    embedding_, sigma_, coef_, objective_history_, sigma_history_, lipschitz_, n_iter_, classes_
        Of the final fit, as in `NSSE`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import NSSECV
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NSSECV(n_components=[5, 9], mu2=1.0, n_splits=2).fit(X[:200], y[:200])
    >>> sorted(model.best_params_)
    ['mu1', 'mu2', 'mu3', 'n_components']
    """

    def __init__(
        self,
        n_components: Any = None,
        *,
        mu1: Any = (1.0,),
        mu2: Any = (0.1, 0.3, 1.0, 3.0, 10.0),
        mu3: Any = (10.0, 30.0, 100.0, 300.0, 1000.0),
        n_splits: int = 5,
        validation_size: float = 0.3,
        n_rounds: int = 1,
        sigma: float | None = None,
        sigma_grid: Any = None,
        sigma_init: float | None = None,
        relative: bool = True,
        n_neighbors: int | None = None,
        beta: Any = "mean",
        max_iter: int = 20,
        tol: float = 1e-2,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.mu1 = mu1
        self.mu2 = mu2
        self.mu3 = mu3
        self.n_splits = n_splits
        self.validation_size = validation_size
        self.n_rounds = n_rounds
        self.sigma = sigma
        self.sigma_grid = sigma_grid
        self.sigma_init = sigma_init
        self.relative = relative
        self.n_neighbors = n_neighbors
        self.beta = beta
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        candidates = self._candidates(y)
        if self.n_neighbors is not None:
            as_count(self.n_neighbors, "n_neighbors")
        splits = [Split.of(self._model({}), X, y, *parts) for parts in self._splits(y)]
        for d in candidates["n_components"]:
            most = min(len(split.training.roots) for split in splits)
            check_components(d, most, "the number of different rows in the smallest training part")
        chosen = {name: values[len(values) // 2] for name, values in candidates.items()}
        errors: dict[tuple[Any, ...], Array] = {}
        for _ in range(as_count(self.n_rounds, "n_rounds")):
            for name in (name for name in candidates if len(candidates[name]) > 1):
                trials = [chosen | {name: value} for value in candidates[name]]
                for trial in trials:
                    key = tuple(trial.values())
                    if key not in errors:
                        errors[key] = np.array([split.error(self._model(trial)) for split in splits])
                        if self.verbose:
                            print(f"NSSECV: {trial}: error {errors[key].mean():.4f}", file=sys.stderr, flush=True)
                chosen = min(trials, key=lambda trial: float(errors[tuple(trial.values())].mean()))
        if not errors:
            errors[tuple(chosen.values())] = np.array([split.error(self._model(chosen)) for split in splits])
        self.best_params_, self.best_score_ = chosen, 1.0 - float(errors[tuple(chosen.values())].mean())
        self.cv_results_ = {
            "params": [dict(zip(candidates, key, strict=True)) for key in errors],
            "mean_test_score": np.array([1.0 - found.mean() for found in errors.values()]),
            "std_test_score": np.array([found.std() for found in errors.values()]),
        }
        model = self._model(chosen)
        model.sigma_grid = self.sigma_grid
        self._keep(X, learn(**model._options(X, y)))

    def _model(self, parameters: dict[str, Any]) -> NSSE:
        """One candidate, on the grid of widths whose factors all candidates share."""
        shared = {name: getattr(self, name) for name in ("sigma", "sigma_init", "relative", "n_neighbors", "beta")}
        model = NSSE(**shared, **parameters, max_iter=self.max_iter, tol=self.tol, sigma_grid=self.sigma_grid)
        model._exponent = self._exponent
        return model

    def _candidates(self, y: Labels) -> dict[str, list[Any]]:
        candidates: dict[str, list[Any]] = {}
        for name in ("mu1", "mu2", "mu3"):
            given = np.ravel(np.asarray(getattr(self, name), dtype=object)).tolist()
            least = {"mu3": as_number}.get(name)
            candidates[name] = [least(v, name, minimum=0.0) if least else as_positive(v, name) for v in given]
        most = y.count - 1
        dimensions: Any = self.n_components
        if dimensions is None:
            dimensions = sorted({max(1, round(share * most)) for share in (1 / 3, 1 / 2, 2 / 3, 1)})
        candidates["n_components"] = [as_count(d, "n_components") for d in np.ravel(dimensions).tolist()]
        for name, values in candidates.items():
            if not values:
                raise ValueError(f"{name} must be a number or hold at least one candidate. Got none.")
        return candidates

    def _splits(self, y: Labels) -> list[tuple[Array, Array]]:
        """Rows to learn from and rows to validate on."""
        share = as_positive(self.validation_size, "validation_size")
        if share >= 1:
            raise ValueError(f"validation_size must be a share between 0 and 1. Got {self.validation_size!r} instead.")
        rng = np.random.default_rng(self.random_state)
        splits = []
        for _ in range(as_count(self.n_splits, "n_splits")):
            held = []
            for rows in y.members:
                count = min(max(1, round(share * len(rows))), len(rows) - 1)
                held.append(rng.permutation(rows)[:count])
            out = np.sort(np.concatenate(held))
            if not len(out):
                raise ValueError("y must hold a class with at least 2 members to validate on. Got single rows only.")
            splits.append((np.setdiff1d(np.arange(len(y.codes)), out), out))
        return splits


@dataclass(frozen=True)
class Split:
    """One part to learn from, whose distances and factors all candidates share, and one to validate on."""

    rows: Array
    labels: Labels
    training: Training
    new: Array
    truth: Array

    @classmethod
    def of(cls, model: NSSE, X: Array, y: Labels, part: Array, held: Array) -> Split:
        labels = Labels(y.classes, y.codes[part])
        training = Training(X[part], labels, model.n_neighbors, heat_width(X[part], model._in_units(model.beta, 2)))
        return cls(X[part], labels, training, X[held], y.codes[held])

    def error(self, model: NSSE) -> float:
        """Share of held-out rows whose nearest training row, in the embedding, is of another class."""
        options = model._options(self.rows, self.labels, self.training)
        if model.sigma is None and model.sigma_grid is None:
            options["candidates"] = self.training.median * np.array(_SHARED)
        fit = learn(**options)
        mapped = rbf_apply(self.new.astype(np.float64), self.rows, fit.coef, sigma=fit.sigma)
        nearest = knn(np.ascontiguousarray(fit.Y), 1, queries=mapped)[1][:, 0]
        return float(np.mean(self.labels.codes[nearest] != self.truth))
