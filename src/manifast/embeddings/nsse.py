"""NSSE (Örnek and Vural 2018): an embedding by labels, learnt together with its Gaussian interpolator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from manifast import objectives
from manifast._choices import graph_choices, listed, warn_of_edges
from manifast._labels import Labels
from manifast._linalg.interpolation import Interpolator
from manifast._linalg.memory import LANDMARKS, check_room
from manifast._lipschitz import rbf_lipschitz
from manifast._progress import Steps, log
from manifast._rows import Rows
from manifast._validation import Array, as_count, as_number, as_positive
from manifast._warnings import warn
from manifast._whitening import whitening
from manifast.embeddings._base import SupervisedEmbedding
from manifast.embeddings._callbacks import FollowedFit
from manifast.embeddings._metric import ClassMetric
from manifast.embeddings.composed import Composed, choice
from manifast.kernels import knn
from manifast.smoothers import Gaussian, Smoother
from manifast.solve import Solution, embed

__all__ = ["NSSE", "NSSECV"]

_SHARED = tuple(np.geomspace(0.3, 6.0, 24))  # widths that all candidates of a validation share
_FEW_CLASSES = 20
_DIMENSIONS = 10  # by default at most, of few classes
_WEIGHTS = (0.3, 30.0), (0.001, 100.0)  # mu2 and mu3 of few and of many classes
_NARROW = 0.1, 3.0  # mu2 and mu3 of another start of a validation, which lead to widths below a median
_PLAIN = 1e-4, 1.0  # mu2 and width of a start that is close to SupervisedLaplacianEigenmaps
_CLEAR = 0.5  # validation errors that a choice must save to be taken, in roots of the errors of both
_STARTS = 1.5, 0.5  # medians from which a validated fit learns the width


class NSSE(FollowedFit, ClassMetric, Composed, SupervisedEmbedding):
    """Nonlinear supervised smooth embedding (Örnek and Vural 2018): embedding, width and interpolator learnt together.

    Minimises tr(Y'L_wY) - mu1 tr(Y'L_bY) + mu2 tr(Y'Ψ^-2 Y) + mu3/σ² subject to Y'Y = I (10) in turn over Y and σ: rows
    of a class stay together, classes are driven apart, and the Gaussian interpolator ΨC = Y that carries the embedding
    to new rows stays smooth. L_w has heat weights inside the classes, L_b joins all rows of different classes.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes less one, and at most 10 for up to 20 classes.
    mu1 : float, default 1.0
    mu2, mu3 : float or None, default None
        The other weights of (10); None is 0.3 and 30 for up to 20 classes, 0.001 and 100 for more: no one pair suits
        both objects and faces. But for the weak L_w only mu2/mu1 and mu3/mu2 matter.
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
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances; those after whitening by the shrunk covariance inside the classes, which suits faces under
        changing light; or of the two the one that makes fewer 1-NN errors on held-out rows, in 5 folds.
    max_iter : int, default 20
        Steps of the width at most.
    tol : float, default 1e-2
        Relative change of the width that counts as none; with a grid it must repeat.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

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

    Notes
    -----
    Cost: Every width that is tried takes O(n³) and every step of the eigensolver O(n²d), with a few n × n matrices. A
    new row takes O(n(p + d)).

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
        n_components: int | None = None,
        *,
        mu1: float = 1.0,
        mu2: float | None = None,
        mu3: float | None = None,
        sigma: float | None = None,
        sigma_init: float | None = None,
        sigma_grid: Any = None,
        relative: bool = True,
        n_neighbors: int | None = None,
        beta: Any = "mean",
        metric: str = "euclidean",
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
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        mu1 = as_positive(self.mu1, "mu1")
        if self.n_neighbors is not None:
            as_count(self.n_neighbors, "n_neighbors")
        return choice(objectives.Supervised, self, mu=mu1, n_neighbors_within=self.n_neighbors)

    def _smoother(self) -> Smoother | None:
        defaults = _WEIGHTS[len(self.classes_) > _FEW_CLASSES]
        mu2, mu3 = (own if given is None else given for given, own in zip((self.mu2, self.mu3), defaults, strict=True))
        weights = {"weight": as_positive(mu2, "mu2"), "width_weight": as_number(mu3, "mu3", minimum=0.0)}
        return choice(Gaussian, self, **weights)

    def _dimensions(self, builder: objectives.ObjectiveBuilder, rows: Rows, labels: Labels | None) -> int:
        assert labels is not None
        check_room(rows.n, 4, LANDMARKS)
        default = default_dimensions(labels.count)
        return int(builder.dimensions(default if self.n_components is None else self.n_components, rows, labels))

    def _keep(
        self, rows: Rows, builder: objectives.ObjectiveBuilder, objective: objectives.Objective, solution: Solution
    ) -> None:
        super()._keep(rows, builder, objective, solution)
        fit = solution.details
        if not fit.settled:
            steps = len(fit.sigmas) - 1
            warn(f"NSSE: sigma still changes after {steps} steps. Raise max_iter or tol.", ConvergenceWarning)
        sigmas = np.ldexp(np.array([fit.sigma, *fit.sigmas]), rows.exponent)
        widths = np.clip(sigmas, np.finfo(float).tiny, np.finfo(float).max).tolist()
        self.coef_, self.sigma_ = fit.coef, widths[0]
        self.sigma_history_, self.objective_history_ = widths[1:], fit.objectives
        self.lipschitz_ = rbf_lipschitz(fit.coef, self.sigma_)
        self.n_iter_ = max(1, len(fit.sigmas) - 1)


class NSSECV(NSSE):
    """NSSE with its weights and dimension chosen by validation, one after the other as in the paper.

    It starts from what is close to `SupervisedLaplacianEigenmaps`, a small mu2 and a width of one median, or from a
    point that is clearly better: what `NSSE` takes for few classes or for many, or weights that lead to narrow kernels.
    From there on mu1, mu2, mu3, n_components and sigma take turns: each gets the candidate with the smallest 1-NN error
    on held-out parts of the training set, the others as they are. Clearly better is what saves more errors than half of
    what chance explains. Distances, graphs, factors and embeddings of a part serve all candidates that share them. The
    chosen values are then fitted to all rows. As Algorithm 1 may stay at a poor width, every fit learns it from two
    starts, and the smaller objective (10) is kept.

    Parameters
    ----------
    n_components : int, sequence of ints or None, default None
        Candidates; None is about a third, a half, two thirds and all of the number of classes less one.
    mu1, mu2, mu3 : float or sequence of floats
        Candidates, by default (1.0,), (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1, 3, 10) and (1, 3, 10, 30, 100, 300, 1000). The
        choice starts from those nearest to the points above. A warning says where the best one is at the edge of its
        candidates.
    n_splits : int, default 5
        Random splits of the training set.
    validation_size : float, default 0.3
        Share of each class that is held out; at least one row of it stays.
    n_rounds : int, default 2
        How often every parameter takes its turn.
    sigma_grid : sequence of floats or None, default None
        Candidates for the width in the splits, in medians or absolute as `relative` says; None is 24 from 0.3 to 6
        medians. The final fit brackets and refines the width unless a grid is given.
    sigma : float, sequence or None, default None
        Candidates for the width, None among them for a learnt one. None alone is (None, 1.0) where mu2 and mu3 have
        several candidates, widths are relative, and neither `sigma_init` nor `sigma_grid` is given; else a learnt one.
    n_neighbors, beta
        As in `NSSE`, or sequences of such values: then they take turns, too, from the first of each on.
    sigma_init, relative, metric, max_iter, tol
        As in `NSSE`.
    random_state : int, default 0
        Of the splits.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    best_params_ : dict
        mu1, mu2, mu3, n_components, and sigma and what was chosen of the graph where they have several candidates: what
        to give to an `NSSE`.
    best_score_ : float
        Mean accuracy on the held-out rows.
    cv_results_ : dict
        "params", a list of dicts in the order they were tried, and "mean_test_score", "std_test_score".
    embedding_, sigma_, coef_, objective_history_, sigma_history_, lipschitz_, n_iter_, classes_
        Of the final fit, as in `NSSE`.

    Notes
    -----
    Cost: `fit` takes one fit of `NSSE`, O(n³) per width, for every candidate in every part, and one more.

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
        mu2: Any = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0),
        mu3: Any = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
        n_splits: int = 5,
        validation_size: float = 0.3,
        n_rounds: int = 2,
        sigma: Any = None,
        sigma_grid: Any = None,
        sigma_init: float | None = None,
        relative: bool = True,
        n_neighbors: Any = None,
        beta: Any = "mean",
        metric: str = "euclidean",
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
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _embed(self, X: Array, y: Labels) -> None:
        candidates = self._candidates(y)
        check_room(X.shape[0], 4, LANDMARKS)
        rows = Rows(X, self._row_exponent)
        plain = self.__dict__.pop("_unwhitened")
        splits = [Split.of(plain, self._row_exponent, y, *parts, self.metric_ == "within") for parts in self._splits(y)]
        most = min(len(split.interpolator.roots) for split in splits)
        for d in candidates["n_components"]:
            why = ", the number of different rows in the smallest training part"
            as_count(d, "n_components", maximum=most, why=why)
        errors: dict[tuple[Any, ...], Array] = {}
        rounds = as_count(self.n_rounds, "n_rounds")
        open_names = [name for name in candidates if len(candidates[name]) > 1]
        starts = starting_points(y.count, candidates)
        first = len(starts) if len(starts) > 1 else 0
        steps = Steps("choices of weights", first + rounds * sum(len(candidates[name]) for name in open_names))

        def best_of(trials: list[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
            """The first of those with the fewest errors, and whether the search is to end here."""
            tried, stop = [], False
            for trial in trials:
                key = tuple(trial.values())
                if key not in errors:
                    errors[key] = np.array([split.error(self._model(trial)) for split in splits])
                    if self.verbose:
                        log(f"{trial}: error {errors[key].mean():.4f}")
                tried.append(trial)
                stop = steps.done()
                if stop:
                    break
            return min(tried, key=lambda trial: float(errors[tuple(trial.values())].mean())), stop

        chosen = starts[0]
        for name in ([""] if first else []) + rounds * open_names:  # the starts, then every parameter in turn
            trials = [chosen | {name: value} for value in candidates[name]] if name else starts
            best, stop = best_of(trials)
            before = errors.get(tuple(chosen.values()))
            if before is None or clearly_fewer(errors[tuple(best.values())], before, splits):
                chosen = best
            if stop:
                break
        steps.close()
        if not errors:
            errors[tuple(chosen.values())] = np.array([split.error(self._model(chosen)) for split in splits])
        means = {key: float(found.mean()) for key, found in errors.items()}
        names = ["mu1", "mu2", "mu3"]
        if chosen.get("sigma") is not None:  # mu3 is without effect, and below the smallest mu2 nothing changes
            names = ["mu1", "mu2"] if chosen["mu2"] == max(candidates["mu2"]) else ["mu1"]
        warn_of_edges(names, candidates, chosen, means)
        self.best_params_, self.best_score_ = chosen, 1.0 - float(errors[tuple(chosen.values())].mean())
        self.cv_results_ = {
            "params": [dict(zip(candidates, key, strict=True)) for key in errors],
            "mean_test_score": np.array([1.0 - found.mean() for found in errors.values()]),
            "std_test_score": np.array([found.std() for found in errors.values()]),
        }
        model = self._model(chosen)
        builder, smoother = model._objective(), model._smoother()
        assert isinstance(smoother, Gaussian)
        d = model._dimensions(builder, rows, y)
        objective = builder.build(rows, y, d)
        self._keep(rows, builder, objective, from_two_starts(smoother, objective, rows, Interpolator(rows.X), d))

    def _measure(self, X: Any, labels: Labels) -> Any:
        self._unwhitened = X  # parts of it are whitened each on their own
        return super()._measure(X, labels)

    def _model(self, parameters: dict[str, Any]) -> NSSE:
        """One candidate."""
        model = choice(NSSE, self, verbose=False, metric="euclidean", **parameters)  # of rows in the metric
        model.classes_ = self.classes_
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
        candidates |= self._widths(candidates)
        graphs = graph_choices(self.n_neighbors, self.beta)
        candidates |= {name: list(dict.fromkeys(graph[name] for graph in graphs)) for name in graphs[0]}
        if "n_neighbors" not in candidates and self.n_neighbors is not None:
            as_count(self.n_neighbors, "n_neighbors")
        for name, values in candidates.items():
            if not values:
                raise ValueError(f"{name} must be a number or hold at least one candidate. Got none.")
        return candidates

    def _widths(self, candidates: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Candidates for the width, where there are several."""
        given = listed(self.sigma, "sigma")
        if given is not None:
            return {"sigma": [None if width is None else as_positive(width, "sigma") for width in given]}
        learnt = self.sigma_init is None and self.sigma_grid is None and self.relative
        several = len(candidates["mu2"]) > 1 and len(candidates["mu3"]) > 1
        return {"sigma": [None, _PLAIN[1]]} if self.sigma is None and learnt and several else {}

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


def default_dimensions(classes: int) -> int:
    return classes - 1 if classes > _FEW_CLASSES else min(classes - 1, _DIMENSIONS)


def starting_points(classes: int, candidates: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The candidates nearest to supervised Laplacian eigenmaps if the width is one of them, to what `NSSE` takes for so
    many classes, to what it takes for others, and to narrow kernels; of parameters without such a value the first.
    """
    few = classes <= _FEW_CLASSES
    weights = [(_PLAIN[0], _WEIGHTS[not few][1])] if "sigma" in candidates else []
    points: list[dict[str, Any]] = []
    for mu2, mu3 in (*weights, _WEIGHTS[not few], _WEIGHTS[few], _NARROW):
        d = min(classes - 1, _DIMENSIONS) if (mu2, mu3) == _WEIGHTS[0] else classes - 1
        own = {"mu1": 1.0, "mu2": mu2, "mu3": mu3, "n_components": d, "sigma": _PLAIN[1] if mu2 == _PLAIN[0] else None}
        point = {name: nearest_to(own.get(name), values) for name, values in candidates.items()}
        if point not in points:
            points.append(point)
    return points


def nearest_to(value: float | None, candidates: list[Any]) -> Any:
    """The candidate of the nearest ratio, the first of several, 0 the farthest; for None that is None or the first."""
    if value is None:
        return None if None in candidates else candidates[0]
    numbers = [candidate for candidate in candidates if candidate is not None] or candidates
    if numbers[0] is None:
        return None
    return min(numbers, key=lambda candidate: abs(np.log(candidate / value)) if candidate > 0 else np.inf)


def clearly_fewer(new: Array, old: Array, splits: list[Split]) -> bool:
    """Whether errors of splits, as shares, are fewer by more than half of what chance explains."""
    sizes = np.array([len(split.truth) for split in splits])
    wrong, before = float(new @ sizes), float(old @ sizes)
    return bool(before - wrong > _CLEAR * np.sqrt(before + wrong))


@dataclass(frozen=True)
class Split:
    """One part to learn from, whose distances and factors all candidates share, and one to validate on."""

    rows: Rows
    labels: Labels
    interpolator: Interpolator
    new: Array
    truth: Array
    objectives: dict[tuple[Any, ...], objectives.Objective]  # of mu1 and graphs: these and products serve again

    @classmethod
    def of(cls, X: Array, exponent: int, y: Labels, part: Array, held: Array, within: bool) -> Split:
        known = Labels(y.classes, y.codes[part])
        turned = whitening(X[part], known) if within else None  # which has not seen the labels held out
        some, new = (X[at] if turned is None else turned.predict(X[at]) for at in (part, held))
        rows = Rows(some, exponent)
        return cls(rows, known, Interpolator(rows.X), new, y.codes[held], {})

    def error(self, model: NSSE) -> float:
        """Share of held-out rows whose nearest training row, in the embedding, is of another class."""
        builder, smoother = model._objective(), model._smoother()
        assert isinstance(smoother, Gaussian)
        if model.sigma is None and model.sigma_grid is None:
            grid = np.array(_SHARED) if model.relative else np.array(_SHARED) * self.interpolator.median
            smoother.set_params(sigma_grid=grid * (1.0 if model.relative else 2.0**self.rows.exponent))
            if self.interpolator.keep > 2 * len(grid):  # all of them will be wanted: bounds would only cost time
                self.interpolator.factor((self.interpolator.median * np.array(_SHARED)).tolist())
        d = model._dimensions(builder, self.rows, self.labels)
        graph = model.mu1, model.n_neighbors, model.beta
        if graph not in self.objectives:
            self.objectives[graph] = builder.build(self.rows, self.labels, d)
        solution = from_two_starts(smoother, self.objectives[graph], self.rows, self.interpolator, d)
        assert solution.map is not None
        mapped = solution.map.predict(self.new.astype(np.float64))
        nearest = knn(np.ascontiguousarray(solution.Y), 1, queries=mapped)[1][:, 0]
        return float(np.mean(self.labels.codes[nearest] != self.truth))


def from_two_starts(smoother: Gaussian, objective: Any, rows: Rows, interpolator: Interpolator, d: int) -> Solution:
    """The solution of the smaller objective (10) of those that two widths lead to; of one where the user chose it."""
    if smoother.sigma is not None or smoother.sigma_init is not None:
        return embed(objective, smoother.prepare(rows, interpolator), d)
    unit = 1.0 if smoother.relative else interpolator.median * 2.0**rows.exponent
    found = []
    for start in _STARTS:
        begun = clone(smoother).set_params(sigma_init=start * unit)
        found.append(embed(objective, begun.prepare(rows, interpolator), d))
    return min(found, key=lambda solution: float(solution.details.objectives[-1]))
