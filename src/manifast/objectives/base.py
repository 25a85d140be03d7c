"""What an objective is: the matrices (A, B) of one problem, and the parametrised object that builds them from rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import partial
from types import FunctionType, MethodType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from manifast._labels import Labels
from manifast._linalg.condensed import Margins
from manifast._links import Documented
from manifast._rows import Rows
from manifast._threads import lazy
from manifast._validation import Array, as_count
from manifast.extensions import LatentVariable
from manifast.graphs import check_metric
from manifast.maps import Predictor


class Objective:
    """min tr(Y'AY) subject to Y'BY = I, or with `ratio` the largest of tr(Y'BY) against tr(Y'AY).

    Parameters
    ----------
    A : array, sparse matrix, LowRankSum, LinearOperator with `toarray`, or function
        A function without arguments makes the matrix where somebody asks for it.
    B : None, vector, array, sparse matrix or LowRankSum, default None
        None is the identity, a vector a diagonal.
    drop_constant : bool, default True
        Whether the constant vector, which A does not see, is left out.
    ratio : bool, default False
    centred : bool, default False
        Whether a projection counts Y less its mean in the constraint: Y'HY = I.
    unit : float, default 1.0
        The size of A that the weights of penalties are relative to.
    modes : function of d, optional
        The d best eigenvalues and their vectors where they are known in closed form.
    margin : Margins, optional
        Where B is not zero on labelled rows only: what these are.
    finish : function of the eigenvalues, optional
        What to show as eigenvalues, and factors of the columns.
    unbounded : str, optional
        Why there is no solution without a smoother.
    free_only : str, optional
        Why there is none with a smoother.
    floor : float, optional
        No eigenvalue of A is below.
    lengths : bool, default False
        Whether the embedding without a smoother is in the units of the rows.
    source
        What it was made from, for the natural map.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import ComposedEmbedding
    >>> from manifast.objectives import Objective
    >>> path = np.diag([1.0, 2, 2, 1]) - np.eye(4, k=1) - np.eye(4, k=-1)
    >>> ComposedEmbedding(Objective(path), n_components=1).fit_transform(np.arange(4.0)[:, None]).round(3).ravel()
    array([ 0.653,  0.271, -0.271, -0.653])
    """

    def __init__(
        self,
        A: Any,
        B: Any = None,
        *,
        drop_constant: bool = True,
        ratio: bool = False,
        centred: bool = False,
        unit: float = 1.0,
        modes: Callable[[int], tuple[Array, Array]] | None = None,
        margin: Margins | None = None,
        finish: Callable[[Array], tuple[Array, Array]] | None = None,
        unbounded: str = "",
        free_only: str = "",
        floor: float | None = None,
        lengths: bool = False,
        source: Any = None,
    ) -> None:
        self._A, self.B = A, B
        self.drop_constant, self.ratio, self.centred, self.unit = drop_constant, ratio, centred, unit
        self.modes, self.margin, self.finish, self.floor = modes, margin, finish, floor
        self.unbounded, self.free_only, self.lengths, self.source = unbounded, free_only, lengths, source

    @lazy
    def A(self) -> Any:
        return self._A() if isinstance(self._A, FunctionType | MethodType | partial) else self._A

    @property
    def n(self) -> int:
        return int(self.A.shape[0])

    @property
    def weights(self) -> Array:
        """The diagonal of B."""
        return np.ones(self.n) if self.B is None else np.asarray(self.B)

    @property
    def null(self) -> Array | None:
        """What the solver leaves out."""
        return np.ones(self.n) if self.drop_constant else None

    def images(self, F: Array) -> tuple[Array, Array]:
        """A F and B F."""
        return np.asarray(self.A @ F), np.asarray(self.B @ F)

    def replace(self, **changes: Any) -> Objective:
        """The same with some properties changed."""
        other = copy(self)
        if "_A" in changes:
            other.__dict__.pop("A", None)  # made from the old one
        other.__dict__.update(changes)
        return other


class ObjectiveBuilder(Documented, BaseEstimator, ABC):  # type: ignore[misc]
    """An objective with its own parameters; a subclass says how (A, B) follow from rows and labels.

    `build` is all that a new objective must define. Parameters are those of its constructor, as in scikit-learn: a grid
    search reaches them as `objective__name`.
    """

    supervised: ClassVar[bool] = False  # whether it needs labels
    unlabelled: ClassVar[bool] = False  # whether rows may be without a label, marked -1
    sparse: ClassVar[bool] = False  # whether rows may be a sparse matrix
    natural_name: ClassVar[str | None] = None  # of the natural map among the extensions
    metrics: ClassVar[tuple[str, ...]] = ()  # what the parameter `metric` may be, where distances are between rows

    @abstractmethod
    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        """(A, B) of these rows for an embedding of d dimensions."""

    def check(self, rows: Rows, labels: Labels | None, d: int) -> None:
        """Refuse what can be refused before any work."""

    def row_metric(self) -> str:
        """The metric by which distances between rows are measured, checked."""
        if not self.metrics:
            return "euclidean"
        metric: str = self.metric
        check_metric(metric, self.metrics)
        return metric

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        """The largest n_components, and what it comes from."""
        return rows.n - 1, "the rows less the constant vector"

    def default_components(self, labels: Labels | None) -> int:
        """n_components where nobody chose one."""
        return 2 if labels is None else labels.count - 1

    def natural_map(self, rows: Rows, objective: Objective, Y: Array, values: Array) -> Predictor:
        """The fitted extension for new rows that belongs to what `build` gave; by default the mean of the nearest."""
        return LatentVariable().fit(rows.X, Y)

    def place_all(self, natural: Any, objective: Objective) -> Array:
        """The embedding of all rows where the objective is one of landmarks, from their natural map."""
        raise ValueError(f"{type(self).__name__} must build an objective of all rows. Got one of fewer.")

    def dimensions(self, value: Any, rows: Rows, labels: Labels | None) -> int:
        """n_components, checked."""
        if value is None:
            return self.default_components(labels)
        most, why = self.most_components(rows, labels)
        return as_count(value, "n_components", maximum=most, why=f", {why}")
