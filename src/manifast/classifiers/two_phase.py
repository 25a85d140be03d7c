"""Classification by two ridge codes of each new row: TPTSSR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from manifast._kernels import affine_product
from manifast._labels import Labels
from manifast._linalg import dense as _dense
from manifast._linalg.systems import spd_solver
from manifast._threads import one_blas_thread
from manifast._validation import Array, as_positive
from manifast.classifiers.base import ScoreClassifier, in_bounds, visible_ridge
from manifast.maps import MAPS

__all__ = ["TPTSSR"]

_CHUNK = 1 << 21  # codes held at once


@dataclass(frozen=True)
class TwoPhaseCode:
    """Negative residuals of the classes when a row is coded by the training rows that explain it best alone."""

    kind: ClassVar[str] = "two_phase_code"

    rows: Array  # (n, p)
    coder: Array  # (p, n): a row times it is the first code
    codes: Array  # (n,), classes of the rows
    ridge: float
    kept: int  # rows of the second code
    count: int  # of classes

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> TwoPhaseCode:
        numbers = header["ridge"], header["kept"], header["count"]
        return cls(arrays["rows"], arrays["coder"], arrays["codes"], *numbers)

    def header(self) -> dict[str, Any]:
        return {"map": self.kind, "ridge": self.ridge, "kept": self.kept, "count": self.count}

    def arrays(self) -> dict[str, Array]:
        return {"rows": self.rows, "coder": self.coder, "codes": self.codes}

    def predict(self, X: Array) -> Array:
        train = self.rows.astype(X.dtype, copy=False)
        turned, coder = np.ascontiguousarray(train.T), self.coder.astype(X.dtype, copy=False)
        squares = np.einsum("ij,ij->i", train, train)
        scores = np.empty((len(X), self.count), X.dtype)
        step = max(1, _CHUNK // len(train))
        with one_blas_thread():  # the systems are small, and results must not depend on the number of threads
            for begin in range(0, len(X), step):
                rows = X[begin : begin + step]
                codes = affine_product(rows, coder)
                alone = codes * (codes * squares - 2 * affine_product(rows, turned))  # |x - a_i x_i|² - |x|²
                near = np.argsort(alone, axis=1, kind="stable")[:, : self.kept]
                for at, row in enumerate(rows):
                    scores[begin + at] = self._compete(row.astype(np.float64), np.sort(near[at]))
        return scores

    def _compete(self, x: Array, near: Array) -> Array:
        """Negative residuals of the classes when these training rows code x."""
        atoms, classes = self.rows[near].astype(np.float64), self.codes[near]
        gram = affine_product(atoms, np.ascontiguousarray(atoms.T))
        gram.flat[:: len(gram) + 1] += self.ridge
        factor, _ = _dense.factor_jittered(gram, "the products of the kept rows")
        code = _dense.solve(factor, affine_product(atoms, x[:, None]))[:, 0]
        present = np.unique(classes)
        rest = x - affine_product(np.where(classes == present[:, None], code, 0.0), atoms)
        residuals = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        size = max(float(np.sqrt(np.einsum("i,i", x, x))), float(np.finfo(np.float32).tiny))
        scores = np.full(self.count, -residuals.max() - size)
        scores[present] = -residuals
        return scores


MAPS[TwoPhaseCode.kind] = TwoPhaseCode


class TPTSSR(ScoreClassifier):
    """Two-phase test sample sparse representation (Xu et al. 2011).

    A new row x is coded by all training rows, a = argmin |x - Σ_i a_i x_i|² + ridge |a|². A share of the training rows
    is kept, those with the smallest |x - a_i x_i|, and codes x a second time. The class whose part of the second code
    leaves the smallest residual wins. Every training row needs a label: -1 is a class like any other.

    Parameters
    ----------
    share : float, default 0.05
        Share of the training rows that are kept for the second code; at least one row is kept.
    ridge : float, default 0.01
        Ridge of both codes, more than 0.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    classes_ : array of shape (classes,)

    Notes
    -----
    Cost: `fit` factors the Gram matrix of the rows or of the features, the smaller: O(np min(n, p)). A new row takes
    O(np) and, for s rows that are kept, O(s²(s + p)).

    `decision_function` is the negative residual of each class. A class of which no row was kept comes last: its score
    is below the lowest of the others by the norm of the row. The ridge is not scaled with the data; the default is for
    rows of about unit norm.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import TPTSSR
    >>> X, y = load_digits(return_X_y=True)
    >>> bool(TPTSSR().fit(X[:1000] / 16, y[:1000]).score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    _stored: ClassVar[dict[str, str]] = ScoreClassifier._stored | {"map_": "map"}

    def __init__(self, share: float = 0.05, ridge: float = 0.01, *, verbose: bool | int = False) -> None:
        self.share = share
        self.ridge = ridge
        self.verbose = verbose

    def _learn(self, X: Array, labels: Labels) -> None:
        share = as_positive(self.share, "share")
        if share > 1:
            raise ValueError(f"share must be more than 0 and at most 1. Got {self.share!r} instead.")
        ridge = in_bounds(self._in_units(as_positive(self.ridge, "ridge"), 2))
        wide = X.astype(np.float64, copy=False)
        # a = X (X'X + ridge I)^-1 x = (XX' + ridge I)^-1 X x: the smaller of the two systems is solved.
        tall = X.shape[0] >= X.shape[1]
        gram = wide.T @ wide if tall else wide @ wide.T
        ridge = visible_ridge(ridge, gram, "ridge", "a larger ridge, or smaller rows")
        gram.flat[:: len(gram) + 1] += ridge
        solve = spd_solver(gram, advice="Use a larger ridge.")
        coder = np.ascontiguousarray(solve(wide.T) if tall else solve(wide).T, dtype=X.dtype)
        kept = max(1, round(share * X.shape[0]))
        self.map_ = TwoPhaseCode(X, coder, labels.codes.astype(np.int64), ridge, kept, labels.count)

    def _scores(self, X: Array) -> Array:
        return self.map_.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # codes compare directions, and scikit-learn's checks have two features
        return tags
