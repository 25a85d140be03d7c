"""RBFDiscriminant: interpolation of the labels, with width and ridge chosen by leave-one-out or in folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from manifast._dask import over_blocks
from manifast._gram import Kernel, settle
from manifast._labels import Labels
from manifast._linalg import dense
from manifast._linalg.memory import check_room
from manifast._progress import log, stages
from manifast._validation import Array, as_count
from manifast._warnings import warn
from manifast._whitening import check_metric, whitenings
from manifast.classifiers.base import ClassMetric, ScoreClassifier, class_folds, preferred
from manifast.extensions import choose_by_loo, interpolate, merge_copies, rbf_candidates
from manifast.kernels import gaussian
from manifast.maps import KernelMap, LinearMap, TwoKernelMap
from manifast.spectral import fix_signs

__all__ = ["RBFDiscriminant", "RBFDiscriminantCV"]

_WIDTHS = tuple(np.geomspace(0.3, 6.0, 10))  # a finer grid chooses no better
_LEAST_MEMBERS = 5  # rows that every class needs for a covariance of the left-out outputs
_FOLDS = 5
_FEW_ROWS = 100
_CLEAR = 1.0  # errors by which one metric is clearly better than the other, in roots of the errors of both
_LEAST_RIDGE = 1e-10  # in folds, where Ψ may be singular without one
_SHRINKAGE = 1e-3  # share of the mean variance that is added to the covariance; 1e-10 to 1e-2 differ little on images


@dataclass(frozen=True)
class Choice:
    """A width, in medians of the distances where it is `relative`, a ridge, and what they scored in the folds."""

    sigma: float
    ridge: float
    relative: bool
    errors: float
    score: Any
    outputs: Array  # of rows held out, NaN for rows that never were
    shrunk: int = 0  # which of `whitenings`


@dataclass(frozen=True)
class Interpolation:
    """One interpolation of the labels: the rows that it sees, its coefficients, and the rule of its outputs."""

    rows: Array
    sigma: float
    coef: Array  # (n, classes), of the one-hot labels
    left_out: Array  # outputs of rows that were left out or held out
    centroids: Array
    covariance: Array
    held: Array | None = None  # which rows were, where not all


class RBFDiscriminant(ClassMetric, ScoreClassifier):
    """Gaussian RBF interpolation of the labels, by the map of NSSE, and a Gaussian rule on its outputs.

    One-hot labels are interpolated by y = Σ_i c_i exp(-\\|x - x_i\\|²/σ²). Every training row is left out once, with
    its copies, and gets the output F_loo = Y - Ψ^-1 Y / diag(Ψ^-1). These left-out outputs choose width and ridge. They
    give every class a centroid and all classes a pooled covariance. A new row goes to the class whose centroid is
    nearest in the Mahalanobis distance of that covariance; with fewer than 5 rows in some class, to the nearest one-hot
    label.

    Parameters
    ----------
    sigma : "loo", "median" or float, default "loo"
        Width of the Gaussians: "loo" chooses it from `sigma_grid`, "median" is the median distance between rows, and a
        number is the width itself.
    ridge : float or sequence of floats, default (0.0, 1e-3, 1e-1, 1.0)
        Added to the diagonal of Ψ; of several values the best is chosen.
    sigma_grid : sequence of floats or None, default None
        Widths for "loo", in medians of the distances between rows; None is 10 from 0.3 to 6.
    metric : {"euclidean", "within", "auto"}, default "euclidean"
        Plain distances; those after whitening by the shrunk covariance inside the classes; or the one with fewer errors
        on held-out rows. The whitening has seen the labels of all rows, so that leave-one-out is blind to it: with
        "within", 5 folds that are whitened each on their own choose width and ridge, and a new row goes to the nearest
        one-hot label.
    verbose : bool, default False
        Print every width that is tried and its score.

    Attributes
    ----------
    metric_ : str
        The metric that was chosen.
    sigma_ : float
        The width that was chosen, in the units of the data, or of whitened rows.
    ridge_ : float
        The ridge that was chosen.
    loo_error_ : float
        Share of the training rows that are misclassified when they are left out of the interpolation.
    classes_ : array
        The labels in order.

    Notes
    -----
    Cost: `fit` takes O(n³) for every pair of width and ridge that is tried, and n × n matrices. A new row takes O(n(p +
    M)) for M classes.

    Width and ridge minimise the number of left-out rows whose output is nearest to a wrong label; the squared error
    breaks ties. On images this chooses better than the squared error alone. Every pair of width and ridge that is
    tried takes a Cholesky factorisation of an n × n matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import RBFDiscriminant
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RBFDiscriminant().fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.95
    True
    """

    _stored: ClassVar[dict[str, str]] = ScoreClassifier._stored | {"map_": "map"}

    def __init__(
        self,
        sigma: Any = "loo",
        ridge: Any = (0.0, 1e-3, 1e-1, 1.0),
        sigma_grid: Any = None,
        metric: str = "euclidean",
        verbose: bool = False,
    ) -> None:
        self.sigma = sigma
        self.ridge = ridge
        self.sigma_grid = sigma_grid
        self.metric = metric
        self.verbose = verbose

    def _measure(self, X: Array, labels: Labels) -> Array:
        check_room(X.shape[0], 2, "fit it to some of the rows, or use OutOfSample(LabelEncoding(), landmarks=...)")
        self._chosen: Choice | None = None  # in folds
        check_metric(self.metric)
        if self.metric == "within":
            self._chosen = self._in_folds(X, labels, "within")
            if self._chosen is None:
                warn("no class has two rows: leave-one-out, which is blind to the metric, chose width and ridge.")
        return super()._measure(X, labels)  # type: ignore[no-any-return]

    def _whiten(self, X: Array, labels: Labels) -> Any:
        if self._chosen is None or not self._chosen.shrunk:
            return super()._whiten(X, labels)
        return whitenings(X, labels)[self._chosen.shrunk]

    def _better_metric(self, X: Array, labels: Labels) -> str:
        within, plain = (self._in_folds(X, labels, metric) for metric in ("within", "euclidean"))
        if within is None or plain is None:
            return "euclidean"
        if stages():
            log(f"errors of held-out rows: {plain.errors:g} in the Euclidean metric, {within.errors:g} within classes")
        metric = self._preferred(plain.errors, within.errors)
        self._chosen = None if metric == "euclidean" else within
        return metric

    def _preferred(self, plain: float, within: float) -> str:
        """The metric by the errors of both on held-out rows."""
        return preferred(plain, within)

    def _in_folds(self, X: Array, labels: Labels, metric: str) -> Choice | None:
        """Width and ridge by rows that were held out of the whitening too; None where no row can be held out."""
        relative = isinstance(self.sigma, str)
        grid = _WIDTHS if self.sigma_grid is None else self.sigma_grid
        target = labels.indicators
        tried: dict[tuple[int, int, float], Array] = {}
        sizes: list[float] = []
        for train, held in class_folds(labels, _FOLDS):
            part = Labels(labels.classes, labels.codes[train])
            maps: list[Any] = (whitenings(X[train], part) if metric == "within" else []) or [None]
            for at, turned in enumerate(maps):
                rows, new = (X[some] if turned is None else turned.predict(X[some]) for some in (train, held))
                widths, ridges = rbf_candidates(rows, self._in_units(self.sigma, 1), self.ridge, grid)
                distinct, values, _, counts = merge_copies(rows, target[train])
                wide = new.astype(np.float64)
                found = outputs_by_ridge(distinct, values, counts, wide, widths, ridges)
                for k, by_ridge in enumerate(found):
                    for ridge, part_outputs in by_ridge.items():
                        outputs = tried.setdefault((at, k, ridge), np.full(target.shape, np.nan))
                        outputs[held] = part_outputs
            sizes = [1.0] if self.sigma == "median" else list(grid) if relative else [float(self.sigma)]
        best: Choice | None = None
        for (at, k, ridge), outputs in tried.items():
            known = np.isfinite(outputs[:, 0])
            errors, score = self._score_outputs(outputs[known], Labels(labels.classes, labels.codes[known]), metric)
            if best is None or score < best.score:
                best = Choice(sizes[k], ridge, relative, errors, score, outputs, at)
        return best

    def _score_outputs(self, outputs: Array, labels: Labels, metric: str) -> tuple[float, Any]:
        """Errors of held-out outputs, and by what they are compared."""
        errors = float(np.sum(np.argmax(outputs, axis=1) != labels.codes))
        return errors, (errors, float(np.linalg.norm(outputs - labels.indicators)))

    def _learn(self, X: Array, labels: Labels) -> None:
        if self.metric_ == "within" and self._chosen is not None:
            first, self.ridge_ = self._by_choice(X, labels, self._chosen), self._chosen.ridge
        else:
            first = self._by_leave_one_out(X, labels)
        with np.errstate(over="ignore"):  # distances may be out of range where the rows are not
            self.sigma_ = min(float(np.ldexp(first.sigma, self._row_exponent)), float(np.finfo(float).max))
        self._keep(X, labels, [first], None)

    def _by_leave_one_out(self, X: Array, labels: Labels) -> Interpolation:
        rows, target, groups, counts = merge_copies(X, labels.indicators)
        grid = _WIDTHS if self.sigma_grid is None else self.sigma_grid
        widths, ridges = rbf_candidates(X, self._in_units(self.sigma, 1), self.ridge, grid)
        sigma, self.ridge_, residuals = choose_by_loo(
            rows, target, counts, widths, ridges, self.verbose, self._loo_score(target, groups, labels)
        )
        left_out = (target - residuals)[groups]
        rule = gaussian_rule(left_out, labels, self._gaussian_rule(left_out, labels))
        coef = interpolate(rows, target, counts, sigma, self.ridge_)
        return Interpolation(X, sigma, (coef / counts[:, None])[groups], left_out, *rule)

    def _by_choice(self, X: Array, labels: Labels, choice: Choice) -> Interpolation:
        """The interpolation of whitened rows X that the folds chose, and the nearest one-hot label as its rule."""
        rows, target, groups, counts = merge_copies(X, labels.indicators)
        sigma = rbf_candidates(X, "loo" if choice.relative else choice.sigma, 0.0, [choice.sigma])[0][0]
        held = np.isfinite(choice.outputs)
        left_out = np.where(held, choice.outputs, labels.indicators)
        coef = interpolate(rows, target, counts, sigma, choice.ridge)
        rule = gaussian_rule(left_out, labels, False)
        return Interpolation(X, sigma, (coef / counts[:, None])[groups], left_out, *rule, held[:, 0])

    def _keep(self, X: Array, labels: Labels, parts: list[Interpolation], before: LinearMap | None) -> None:
        """The map from rows to scores; `before` takes them to what a second interpolation sees."""
        left_out = np.hstack([part.left_out for part in parts])
        centroids = np.hstack([part.centroids for part in parts])
        covariance = la.block_diag(*(part.covariance for part in parts))
        slopes, offsets = rule_scores(centroids, covariance)
        scores = left_out @ slopes + offsets
        wrong = np.argmax(scores, axis=1) != labels.codes
        for part in parts:
            if part.held is not None:  # of other rows their own labels stand for what is not known
                wrong = wrong[part.held]
                break
        self.loo_error_ = float(np.mean(wrong))
        # The rule is affine in the outputs, so that its slopes become part of the coefficients.
        self.map_ = joint_map(parts, before, slopes, offsets, scores)
        self._keep_outputs(parts, before, left_out, centroids, covariance, labels)

    def _loo_score(self, target: Array, groups: Array, labels: Labels) -> Any:
        """What width and ridge minimise, from residuals of rows left out."""

        def score(residuals: Array) -> tuple[float, float]:
            nearest = np.argmax(target - residuals, axis=1)
            return float(np.mean(nearest[groups] != labels.codes)), float(np.linalg.norm(residuals))

        return score

    def _gaussian_rule(self, left_out: Array, labels: Labels) -> bool:
        """Whether centroids and covariance of the left-out outputs decide, and not the one-hot labels."""
        return bool(labels.sizes.min() >= _LEAST_MEMBERS)

    def _keep_outputs(
        self,
        parts: list[Interpolation],
        before: LinearMap | None,
        left_out: Array,
        centroids: Array,
        covariance: Array,
        labels: Labels,
    ) -> None:
        """What else of the interpolations is kept."""

    def _scores(self, X: Any) -> Array:
        """Logarithms of the posteriors, up to a term that all classes of a row share."""
        return self.map_.predict(X)

    @over_blocks
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, for outputs that are Gaussian around the centroids and equally likely classes."""
        return np.asarray(softmax(self._checked_scores(X), axis=1))


class RBFDiscriminantCV(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RBFDiscriminant):  # type: ignore[misc]
    """The discriminant to start with: metric, rule, width and ridge by validation; a classifier, and an embedding.

    `RBFDiscriminant` that chooses the metric in folds, and between the Gaussian rule and the nearest one-hot label by
    cross-validation of the left-out outputs. Where the folds do not tell the metrics apart, both interpolate the labels
    and their scores are added, which is often better than either. Its decisions are those of 1-NN in an embedding:
    `embedding_` puts every training row at the centre of its class, and `transform` new rows where their outputs are,
    in coordinates in which the covariance S of left-out outputs F_loo is the identity: y = S^(-1/2) f(x).

    Parameters
    ----------
    n_components : int or None, default None
        Dimensions of the embedding; None is one less than the classes, which decides as `predict` does. Fewer are those
        that tell the centres of the classes apart best.
    sigma, ridge, sigma_grid, metric, verbose
        As in `RBFDiscriminant`; the default of `metric` is "auto".

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    metric_ : {"euclidean", "within", "both"}
    sigma_, ridge_, loo_error_, classes_
        As in `RBFDiscriminant`; where both metrics were taken, `sigma_` and `ridge_` are those of the Euclidean one.
    rule_ : {"gaussian", "label"}

    Notes
    -----
    Cost: `fit` takes O(n³) for every pair of width and ridge that is tried, in each metric, and n × n matrices. A new
    row takes O(n(p + M)) for M classes.

    In the Euclidean metric width and ridge minimise the share of wrong left-out rows plus their mean squared error,
    times 100 / n beyond 100 rows. Of few rows the errors alone, which are few, choose worse.

    Within classes two shrinkages of the covariance are tried: of all classes together, and as much as each class alone
    calls for. With wide Gaussians and a large ridge the second decides as linear discriminant analysis does with the
    shrinkage of scikit-learn's `LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")`. One metric is taken alone
    where it makes fewer errors on held-out rows by more than the root of the errors of both.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import RBFDiscriminantCV
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RBFDiscriminantCV().fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.95
    True
    >>> model.transform(X[500:]).shape
    (1297, 9)
    """

    _stored: ClassVar[dict[str, str]] = RBFDiscriminant._stored | {"embedding_map_": "map"}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        sigma: Any = "loo",
        ridge: Any = (0.0, 1e-3, 1e-1, 1.0),
        sigma_grid: Any = None,
        metric: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(sigma, ridge, sigma_grid, metric, verbose)
        self.n_components = n_components

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Learn from the rows X and their labels y, and return `embedding_`."""
        return self.fit(X, y).embedding_  # type: ignore[no-any-return]

    @over_blocks
    def transform(self, X: Any) -> Array:
        """Embedding of new rows; a row's result does not depend on the other rows."""
        check_is_fitted(self)
        return self.embedding_map_.predict(self._measure_new(self._validate(X, reset=False)))

    def _score_outputs(self, outputs: Array, labels: Labels, metric: str) -> tuple[float, Any]:
        if metric == "within":
            return super()._score_outputs(outputs, labels, metric)
        wrong = float(np.mean(np.argmax(outputs, axis=1) != labels.codes))
        wrong = min(wrong, rule_error(outputs, labels))
        # Of few rows the errors are too few to tell widths apart.
        weight = min(1.0, _FEW_ROWS / len(outputs))
        return wrong * len(outputs), wrong + weight * float(np.mean(np.square(outputs - labels.indicators).sum(axis=1)))

    def _loo_score(self, target: Array, groups: Array, labels: Labels) -> Any:
        def score(residuals: Array) -> float:
            return float(self._score_outputs((target - residuals)[groups], labels, "euclidean")[1])

        return score

    def _gaussian_rule(self, left_out: Array, labels: Labels) -> bool:
        wrong = float(np.mean(np.argmax(left_out, axis=1) != labels.codes))
        return rule_error(left_out, labels) < wrong

    def _preferred(self, plain: float, within: float) -> str:
        """One metric where it is clearly better, else both."""
        if abs(plain - within) <= _CLEAR * np.sqrt(plain + within):
            return "both"
        return "within" if within < plain else "euclidean"

    def _learn(self, X: Array, labels: Labels) -> None:
        super()._learn(X, labels)
        first = self.__dict__.pop("_first")
        if self.metric_ != "both":
            return
        assert self._chosen is not None
        found = whitenings(X, labels)
        if not found:
            self.metric_ = "euclidean"
            return
        before = found[self._chosen.shrunk]
        second = self._by_choice(before.predict(X), labels, self._chosen)
        self._keep(X, labels, [first, second], before)
        del self._first

    def _keep_outputs(
        self,
        parts: list[Interpolation],
        before: LinearMap | None,
        left_out: Array,
        centroids: Array,
        covariance: Array,
        labels: Labels,
    ) -> None:
        self._first = parts[0]
        self.rule_ = "label" if is_label_rule(parts[0]) else "gaussian"
        most = labels.count - 1
        d = most if self.n_components is None else as_count(self.n_components, "n_components", maximum=most)
        values, vectors = la.eigh(covariance)
        root = vectors / np.sqrt(values) @ vectors.T  # S^-1/2
        centres = centroids @ root
        mean = centres.mean(axis=0)
        # Along the means of the left-out outputs, as one-hot labels are equally far apart in all directions.
        means = np.stack([left_out[rows].mean(axis=0) for rows in labels.members]) @ root
        spanned = la.orth((centres - mean).T)
        axes = spanned @ la.svd((means - means.mean(axis=0)) @ spanned, full_matrices=False)[2][:d].T
        places, axes = fix_signs_of((centres - mean) @ axes, axes)
        image = places[labels.codes]
        self.embedding_map_ = joint_map(parts, before, root @ axes, -(mean @ axes), image)
        self.embedding_ = np.ascontiguousarray(image, dtype=parts[0].rows.dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self.embedding_map_.intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def outputs_by_ridge(
    rows: Array, values: Array, counts: Array, new: Array, widths: list[float], ridges: list[float]
) -> list[dict[float, Array]]:
    """For every width the outputs at new rows by each ridge whose matrix is definite; widths go side by side."""

    def of(sigma: float) -> dict[float, Array]:
        matrix, across = gaussian(rows, sigma=sigma), gaussian(new, rows, sigma=sigma)
        found = {}
        for ridge in ridges:
            factor = matrix.copy()
            factor.flat[:: len(factor) + 1] += max(ridge, _LEAST_RIDGE) / counts
            if dense.factor(factor):
                found[ridge] = across @ dense.solve(factor, values)
        return found

    return dense.for_each_matrix(of, widths, len(rows), len(ridges) * len(rows) ** 3 / 3.0)


def joint_map(
    parts: list[Interpolation], before: LinearMap | None, slopes: Array, offsets: Array, image: Array
) -> KernelMap | TwoKernelMap:
    """The affine function of the outputs of one or two interpolations, side by side, as a map of rows."""
    count = parts[0].coef.shape[1]
    duals = [
        settle(part.coef @ slopes[at * count : (at + 1) * count], image, part.rows.dtype)
        for at, part in enumerate(parts)
    ]
    maps = [Kernel("rbf", part.sigma) for part in parts]
    plain = KernelMap(maps[0], parts[0].rows, duals[0], offsets)
    return plain if before is None else TwoKernelMap.of(plain, before, maps[1], duals[1])


def fix_signs_of(places: Array, axes: Array) -> tuple[Array, Array]:
    """Columns of both, turned so that `places` have the signs of `fix_signs`."""
    fixed = fix_signs(places.copy())
    signs = np.where(np.einsum("ij,ij->j", fixed, places) < 0, -1.0, 1.0)
    return places * signs, axes * signs


def rule_error(outputs: Array, labels: Labels) -> float:
    """Share of left-out outputs that the Gaussian rule misses, learnt from the other four fifths of them."""
    if labels.sizes.min() < 2:
        return 1.0
    means = np.stack([outputs[rows].mean(axis=0) for rows in labels.members])
    own = means.diagonal()
    if (own <= (means.sum(axis=0) - own) / (labels.count - 1)).any():
        # A row that is left out of its class alone lowers the output of just that class. Where outputs hold little
        # else, as for wide Gaussians, the rule would learn this mark of left-out rows, which new rows do not carry.
        return 1.0
    wrong = 0.0
    for train, held in class_folds(labels, _FOLDS, most=len(labels.codes)):
        part = Labels(labels.classes, labels.codes[train])
        slopes, offsets = rule_scores(*gaussian_rule(outputs[train], part, True))
        wrong += np.sum(np.argmax(outputs[held] @ slopes + offsets, axis=1) != labels.codes[held])
    return float(wrong) / len(outputs)


def is_label_rule(part: Interpolation) -> bool:
    """Whether the nearest one-hot label decides."""
    return np.array_equal(part.centroids, np.eye(len(part.centroids)))


def gaussian_rule(outputs: Array, labels: Labels, estimated: bool) -> tuple[Array, Array]:
    """Centroids of the outputs and their pooled covariance; or the one-hot labels, and one variance."""
    n, count = outputs.shape[0], labels.count
    if estimated:
        centroids = np.stack([outputs[rows].mean(axis=0) for rows in labels.members])
        away = outputs - centroids[labels.codes]
        covariance = away.T @ away / max(n - count, 1)
        covariance.flat[:: count + 1] += _SHRINKAGE * np.trace(covariance) / count
    else:
        centroids = np.eye(count)
        covariance = np.eye(count) * np.mean(np.square(outputs - labels.indicators))
    covariance.flat[:: count + 1] += np.finfo(float).eps  # S would be 0 where no output is ever wrong
    return centroids, covariance


def rule_scores(centroids: Array, covariance: Array) -> tuple[Array, Array]:
    """Slopes (m, classes) and offsets of -½ (f - μ_c)'S^-1(f - μ_c), up to a term that all classes share."""
    slopes = la.solve(covariance, centroids.T, assume_a="pos")
    offsets = -0.5 * np.einsum("ci,ic->c", centroids, slopes)
    # Outputs add up to about 1. In that direction the covariance nearly vanishes, and all classes share a steep slope:
    # it changes no decision and is removed.
    return slopes - slopes.mean(axis=1, keepdims=True), offsets
