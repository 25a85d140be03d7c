"""A classifier from the simplest supervised embedding: labels themselves, interpolated, judged by what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
from scipy.special import softmax

from manifast._classifier import ScoreClassifier
from manifast._gram import settle
from manifast._labels import Labels
from manifast._validation import Array
from manifast.extensions import choose_by_loo, interpolate, merge_copies, rbf_candidates
from manifast.kernels import rbf_apply

__all__ = ["RBFDiscriminant"]

_WIDTHS = tuple(np.geomspace(0.3, 6.0, 10))  # a finer grid chooses no better
_LEAST_MEMBERS = 5  # of every class, for a covariance of what is left out
_SHRINKAGE = 1e-3  # of the mean variance, added to the covariance; from 1e-10 to 1e-2 hardly matters on images


class RBFDiscriminant(ScoreClassifier):
    """Gaussian RBF interpolation of the labels, and a Gaussian rule on its outputs.

    One-hot labels are interpolated by y = Σ_i c_i exp(-\\|x - x_i\\|²/σ²). The outputs F that every training row gets
    when it is left out with its copies, F_loo = Y - Ψ^-1 Y / diag(Ψ^-1), choose width and ridge, and say what outputs
    to expect of each class: a new row goes to the class whose centroid is nearest in the Mahalanobis distance of their
    pooled covariance. With fewer than 5 rows in some class it goes to the nearest label.

    Parameters
    ----------
    sigma : "loo", "median" or float, default "loo"
        Width: chosen among `sigma_grid`, or the median distance between rows, or a number, taken as it is.
    ridge : float or sequence of floats, default (0.0, 1e-3, 1e-1, 1.0)
        Added to the diagonal of Ψ; several are chosen among.
    sigma_grid : sequence of floats or None, default None
        Widths for "loo", in medians of the distances between rows; None is 10 from 0.3 to 6.
    verbose : bool, default False
        Say which width was tried, and how it went.

    Attributes
    ----------
    sigma_ : float
    ridge_ : float
    loo_error_ : float
        Share of the training rows that would be misclassified if they were left out of the interpolation.
    classes_ : array
        The labels in order.

    Notes
    -----
    Width and ridge are those with the fewest left-out rows nearest to a wrong label, and of these the ones with the
    smallest squared error. On images that chooses better than the squared error alone. Every pair of them that is tried
    takes a Cholesky factor of an n × n matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import RBFDiscriminant
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RBFDiscriminant().fit(X[:500], y[:500])
    >>> model.score(X[500:], y[500:]) > 0.95
    True
    """

    def __init__(
        self,
        sigma: Any = "loo",
        ridge: Any = (0.0, 1e-3, 1e-1, 1.0),
        sigma_grid: Any = None,
        verbose: bool = False,
    ) -> None:
        self.sigma = sigma
        self.ridge = ridge
        self.sigma_grid = sigma_grid
        self.verbose = verbose

    def _learn(self, X: Array, labels: Labels) -> None:
        grid = _WIDTHS if self.sigma_grid is None else self.sigma_grid
        widths, ridges = rbf_candidates(X, self._in_units(self.sigma, 1), self.ridge, grid)
        rows, target, groups, counts = merge_copies(X, labels.indicators)

        def score(residuals: Array) -> tuple[float, float]:
            nearest = np.argmax(target - residuals, axis=1)
            return float(np.mean(nearest[groups] != labels.codes)), float(np.linalg.norm(residuals))

        sigma, self.ridge_, residuals = choose_by_loo(rows, target, counts, widths, ridges, self.verbose, score)
        left_out = (target - residuals)[groups]
        slopes, self._offsets = gaussian_rule(left_out, labels)
        scores = left_out @ slopes + self._offsets
        self.loo_error_ = float(np.mean(np.argmax(scores, axis=1) != labels.codes))
        self.sigma_ = float(np.ldexp(sigma, self._exponent))
        self._X = X
        # The rule is affine: it is part of the map.
        coef = interpolate(rows, target, counts, sigma, self.ridge_) @ slopes
        self._coef = settle((coef / counts[:, None])[groups], scores, X.dtype)

    def _scores(self, X: Any) -> Array:
        """Logarithms of the posteriors but for a term that all classes of a row share."""
        outputs = rbf_apply(X, self._X, self._coef, sigma=self._in_units(self.sigma_, 1))
        return np.asarray(outputs + self._offsets)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, if outputs are Gaussian about the centroids and all classes as likely."""
        return np.asarray(softmax(self._checked_scores(X), axis=1))


def gaussian_rule(outputs: Array, labels: Labels) -> tuple[Array, Array]:
    """Slopes (m, classes) and offsets of -½ (f - μ_c)'S^-1(f - μ_c), but for a term that all classes share.

    μ are centroids of the outputs and S is their pooled covariance; with few rows in a class the labels themselves and
    a variance for all.
    """
    n, count = outputs.shape[0], labels.count
    if labels.sizes.min() >= _LEAST_MEMBERS:
        centroids = np.stack([outputs[rows].mean(axis=0) for rows in labels.members])
        away = outputs - centroids[labels.codes]
        covariance = away.T @ away / (n - count)
        covariance.flat[:: count + 1] += _SHRINKAGE * np.trace(covariance) / count
    else:
        centroids = np.eye(count)
        covariance = np.eye(count) * np.mean(np.square(outputs - labels.indicators))
    covariance.flat[:: count + 1] += np.finfo(float).eps  # outputs that are never wrong
    slopes = la.solve(covariance, centroids.T, assume_a="pos")
    offsets = -0.5 * np.einsum("ci,ic->c", centroids, slopes)
    # Outputs sum to about 1: along that the covariance nearly vanishes, and slopes are steep but alike for all classes.
    return slopes - slopes.mean(axis=1, keepdims=True), offsets
