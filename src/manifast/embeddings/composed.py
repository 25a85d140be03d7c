"""The idea as a class: an embedding is a choice of objective and smoother; the solve follows from their structure."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from manifast._labels import Labels, read_labels
from manifast._progress import stage
from manifast._rows import Rows
from manifast._validation import Array
from manifast.embeddings._base import Embedding
from manifast.extensions import as_extension, extensions_for
from manifast.maps import KernelMap, LinearMap, Predictor
from manifast.objectives import Objective, ObjectiveBuilder, as_objective
from manifast.smoothers import Smoother, as_smoother
from manifast.solve import Solution, embed

__all__ = ["ComposedEmbedding"]


Part = TypeVar("Part", bound=BaseEstimator)


def refuse_precomputed(metric: Any) -> None:
    """Refuse distances where a map of the rows is learnt."""
    if isinstance(metric, str) and metric == "precomputed":
        raise ValueError(
            "metric must be 'euclidean' or 'cosine' where rows are mapped, as by a projection or a regression. Got "
            "'precomputed' instead: give rows as X and neighbours from elsewhere as neighbors=(distances, indices)."
        )


def check_map_of_distances(extension: Any, given: Any) -> None:
    """Refuse a map of rows where X holds distances."""
    if getattr(extension, "metric", None) != "precomputed":
        names = ", ".join(map(repr, extensions_for("precomputed")))
        raise ValueError(
            f"extension must be a map of distances for metric='precomputed': one of {names}, or an instance with the "
            f"same metric. Got {given!r} instead, which maps rows."
        )


def choice(kind: type[Part], estimator: Any, **others: Any) -> Part:
    """An objective or smoother with the parameters that an estimator has under the same names, and others."""
    shared = {name: getattr(estimator, name) for name in kind._get_param_names() if hasattr(estimator, name)}
    made: Part = kind(**(shared | others))
    return made


class Composed(Embedding):
    """Base of all embeddings that are an objective and a smoother: a subclass says which."""

    _stored: ClassVar[dict[str, str]] = Embedding._stored | {
        "map_": "map",
        "_power": "power",
        "_values": "numbers",
        "objective_": "part",
        "smoother_": "part",
        "classes_": "labels",
    }

    @abstractmethod
    def _objective(self) -> ObjectiveBuilder:
        """The objective with this estimator's parameters."""

    def _smoother(self) -> Smoother | None:
        """The smoother with this estimator's parameters; None leaves the map to an extension."""
        return None

    def _embed(self, X: Any, y: Any) -> None:
        builder, smoother = self._objective(), self._smoother()
        labels = y if isinstance(y, Labels) else None
        metric = builder.row_metric()
        if metric == "precomputed":
            self._check_distances(builder, smoother)
        rows = Rows(X, self._row_exponent, metric=metric)
        if smoother is not None:
            smoother.check(rows)
            rows = Rows(X, self._row_exponent, smoother.kernel_values, smoother.columns(rows), metric)
        d = self._dimensions(builder, rows, labels)
        builder.check(rows, labels, d)
        objective = builder.build(rows, labels, d)
        if smoother is not None and getattr(builder, "n_landmarks", None) is not None:
            raise ValueError("n_landmarks must be None where there is a smoother, which needs all rows.")
        if smoother is not None and objective.free_only:
            raise ValueError(objective.free_only)
        prepared = None if smoother is None else smoother.prepare(rows)
        with stage(f"{d} dimensions"):
            solution = embed(objective, prepared, d, exact=self.n_components is not None)
        self._keep(rows, builder, objective, solution)

    def _check_distances(self, builder: ObjectiveBuilder, smoother: Smoother | None) -> None:
        """Refuse what needs the rows where there are only distances between them."""
        if smoother is not None:
            refuse_precomputed("precomputed")
        natural = self.extension is None or (isinstance(self.extension, str) and self.extension == builder.natural_name)
        if not natural:
            check_map_of_distances(as_extension(self.extension, "precomputed"), self.extension)

    def _dimensions(self, builder: ObjectiveBuilder, rows: Rows, labels: Labels | None) -> int:
        return builder.dimensions(self.n_components, rows, labels)

    def _keep(self, rows: Rows, builder: ObjectiveBuilder, objective: Objective, solution: Solution) -> None:
        """Keep the embedding and the map: the smoother's, the natural one of the objective, or another extension."""
        self._values, self._source, self.map_, self._power = solution.values, objective.source, solution.map, 0
        self.embedding_ = np.ascontiguousarray(solution.Y, dtype=rows.X.dtype)
        for name in ("extension_", "graph_recall_"):  # of a fit with other parameters
            self.__dict__.pop(name, None)
        self.__dict__.update(rows.recall)
        if isinstance(objective.source, int):
            self.n_neighbors_ = objective.source
        if solution.map is not None:
            return
        natural = None
        if len(solution.Y) < rows.n:  # of landmarks: the others are placed by the map
            natural = builder.natural_map(rows, objective, solution.Y, solution.values)
            self.embedding_ = builder.place_all(natural, objective).astype(rows.X.dtype, copy=False)
        self._power = rows.exponent if objective.lengths else 0
        self._extend(
            rows.features,
            lambda: natural or self._natural_map(rows, builder, objective, solution.values),
            builder.natural_name,
        )
        if self._power:  # back in the units of the data
            with np.errstate(over="ignore", under="ignore"):
                self.embedding_ = np.ldexp(self.embedding_, self._power)

    def _natural_map(self, rows: Rows, builder: ObjectiveBuilder, objective: Objective, values: Array) -> Predictor:
        return builder.natural_map(rows, objective, self.embedding_, values)

    def _map(self, X: Any) -> Array:
        mapped: Array = super()._map(X) if self.map_ is None else self.map_.predict(X)
        if not self._power:
            return mapped
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(mapped, self._power))

    @property
    def eigenvalues_(self) -> Array:
        """Eigenvalues of the columns; in squared units of the rows where the embedding has their units."""
        if "_values" not in self.__dict__:
            raise AttributeError("eigenvalues_ exists after fit")
        power: int = 2 * self._power
        with np.errstate(over="ignore", under="ignore"):
            values: Array = np.ldexp(self._values, power)
        if not np.array_equal(np.ldexp(values, -power), self._values):
            raise AttributeError(
                "eigenvalues_ are in squared units of X, which leave the range of float64: fit X times "
                f"2.0**{-self._power}, whose eigenvalues are in range."
            )
        return values

    @property
    def components_(self) -> Array:
        """Coefficients of a linear map (n_components, p), in the units of the data."""
        coef = np.ascontiguousarray(self._linear("components_").coef.T)
        if not self._exponent:
            return coef
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(coef, -self._exponent))

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of a kernel map (n, n_components)."""
        return self._of_map(KernelMap, "dual_coef_").dual  # type: ignore[no-any-return]

    @property
    def intercept_(self) -> Array:
        """What a linear or kernel map adds to every row (n_components,)."""
        if isinstance(self.__dict__.get("map_"), LinearMap):
            return self._linear("intercept_").intercept
        return self._of_map((LinearMap, KernelMap), "intercept_").intercept  # type: ignore[no-any-return]

    def _linear(self, name: str) -> LinearMap:
        """The linear map of the features themselves, whatever the metric."""
        own: LinearMap = self._of_map(LinearMap, name)
        before = self.__dict__.get("_whitening")
        if before is None:
            return own
        return LinearMap(before.coef @ own.coef, before.intercept @ own.coef + own.intercept)


class ComposedEmbedding(Composed):
    """Any objective with any smoother: min tr(Y'(A + R)Y) subject to Y'BY = I, and the map that goes with it.

    The objective says which rows belong together, the smoother what keeps the embedding predictable from them. Every
    named embedding is such a choice: LPP is ("laplacian", "projection"), LGRM is ("local_regression", "kernel_ridge"),
    NSSE is ("supervised", "gaussian"). The others are methods without a name.

    Parameters
    ----------
    objective : str, object of `manifast.objectives`, function, `Objective` or matrix
        "laplacian", "diffusion", "lle", "modified_lle", "hessian", "ltsa", "local_regression", "isomap", "mds" without
        labels; "supervised", "fisher", "lde", "lfda" by labels; "margin", "sda", "sde" by some labels. An object has
        parameters of its own, which a grid search reaches as `objective__n_neighbors`. A function (X, y) gives an
        `Objective`, or the matrix A of a Laplacian.
    smoother : None, str or object of `manifast.smoothers`, default None
        "ridge", "kernel_ridge", "projection", "kernel_projection", "gaussian"; None leaves the map to `extension`.
    n_components : int or None, default 2
        None is what the objective calls for: one less than the classes where it has labels.
    extension : None, str or extension, default None
        The map for new rows where there is no smoother; None is the natural one of the objective.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    objective_ : the objective with its parameters
    smoother_ : the smoother with its parameters, or None
    components_, dual_coef_, intercept_ : where the map has them
    extension_ : the fitted map, where there is no smoother

    Notes
    -----
    Cost: `fit` takes what the objective takes, up to O(n²p) for the neighbours, and what the smoother takes: O(np²) for
    a linear map, O(n³) and n × n matrices for a kernel.

    Examples
    --------
    Supervised eigenmaps with the smoother of LGRM, which no paper has:

    >>> from sklearn.datasets import load_digits
    >>> from manifast import ComposedEmbedding
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ComposedEmbedding("supervised", "kernel_ridge", n_components=9).fit(X[:500], y[:500])
    >>> model.transform(X[500:]).shape
    (1297, 9)
    """

    def __init__(
        self,
        objective: Any = "laplacian",
        smoother: Any = None,
        *,
        n_components: int | None = 2,
        extension: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.objective = objective
        self.smoother = smoother
        self.n_components = n_components
        self.extension = extension
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> ComposedEmbedding:
        """Embed the rows of X, by their labels y where the objective asks for them, and learn the map for new rows."""
        super().fit(X, y)
        return self

    def _objective(self) -> ObjectiveBuilder:
        self.objective_ = as_objective(self.objective)
        return self.objective_

    def _smoother(self) -> Smoother | None:
        self.smoother_ = as_smoother(self.smoother)
        if self.smoother_ is not None and self.extension is not None:
            raise ValueError(
                f"extension must be None where a smoother brings its own map. Got {self.extension!r} beside the "
                f"smoother {self.smoother!r}: use smoother=None for another map."
            )
        return self.smoother_

    @property
    def _interpolates(self) -> bool:  # type: ignore[override]
        smoother = as_smoother(self.smoother)
        return smoother is not None and smoother.interpolates

    @property
    def _sparse(self) -> bool:  # type: ignore[override]
        smoother = as_smoother(self.smoother)
        return as_objective(self.objective).sparse and (smoother is None or smoother.sparse)

    def _pairwise(self) -> bool:
        parts = (self.objective, self.smoother)
        given = (getattr(part, name, None) for part in parts for name in ("affinity", "kernel", "metric"))
        return any(isinstance(value, str) and value == "precomputed" for value in given)

    def _metric(self) -> Any:
        metric = getattr(self.objective, "metric", None)
        return metric if isinstance(metric, str) else None

    def _targets(self, y: Any, X: Any) -> Any:
        builder = as_objective(self.objective)
        if not builder.supervised and (y is None or not builder.unlabelled):
            return None
        labels = read_labels(self, y, X.shape[0], unlabelled=True)
        without = labels.codes < 0
        if without.any() and not builder.unlabelled:
            raise ValueError(
                f"y must hold a label for every row, as the objective {self.objective!r} has no use for rows without "
                f"one. Got {int(without.sum())} rows marked -1 or missing: use 'margin', 'sda' or 'sde', or recode the "
                "labels if -1 is a class."
            )
        self.classes_ = labels.classes
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = as_objective(self.objective).supervised
        return tags
