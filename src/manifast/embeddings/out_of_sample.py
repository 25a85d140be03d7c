"""A `transform` for anybody's embedder: its embedding of the training rows, and one of our maps for all others."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone

from manifast._validation import Array, as_count
from manifast.embeddings._base import Embedding
from manifast.extensions import as_extension, representatives

__all__ = ["OutOfSample"]

_SAMPLE_PER_CENTER = 20  # rows that k-means sees for each landmark


class OutOfSample(Embedding):
    """Give any scikit-learn-style embedder a map for new rows.

    Parameters
    ----------
    embedder : estimator with `fit_transform`
        t-SNE, MDS, SpectralEmbedding, UMAP, or one of ours; it is cloned, and need not have a `transform`.
    extension : str or extension, default "rbf"
        The map: a short name or an instance of `manifast.extensions`, or any object with `fit(X, Y)` and `predict(X)`.
    landmarks : int, float or None, default None
        Embed only that many rows, or that share of them, and carry all others over by the map: how a million rows are
        embedded where the embedder itself can take a few thousand.
    landmark_method : {"random", "kmeans"}, default "random"
        Rows drawn at random, or those nearest to the centres of k-means.
    random_state : int, default 0
        Of the choice of landmarks.

    Attributes
    ----------
    embedding_ : array of shape (n, d)
        What the embedder gave; with landmarks, for the other rows, what the map gives.
    embedder_ : the fitted embedder
    extension_ : the fitted map
    landmarks_ : int array
        Rows that the embedder saw.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.manifold import SpectralEmbedding
    >>> from manifast import OutOfSample
    >>> X = load_digits().data
    >>> model = OutOfSample(SpectralEmbedding(n_components=3, random_state=0)).fit(X[:500])
    >>> model.transform(X[500:]).shape
    (1297, 3)
    """

    def __init__(
        self,
        embedder: Any,
        extension: Any = "rbf",
        *,
        landmarks: float | None = None,
        landmark_method: str = "random",
        random_state: int = 0,
    ) -> None:
        self.embedder = embedder
        self.extension = extension
        self.landmarks = landmarks
        self.landmark_method = landmark_method
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> OutOfSample:
        """Embed the rows of X and learn the map for new ones; y goes to the embedder where given."""
        super().fit(X, y)
        return self

    def _embed(self, X: Array, y: Any) -> None:
        if not hasattr(self.embedder, "fit_transform"):
            raise ValueError(f"embedder must have fit_transform. Got {type(self.embedder).__name__} instead.")
        extension = as_extension(self.extension)
        chosen = self._choose(X)
        some = len(chosen) < X.shape[0]
        rows = X[chosen] if some else X
        embedder = clone(self.embedder)
        labels = None if y is None else np.asarray(y)[chosen]
        Y = np.asarray(embedder.fit_transform(rows) if labels is None else embedder.fit_transform(rows, labels))
        if Y.ndim != 2 or len(Y) != len(rows):
            raise ValueError(f"embedder must give one row per row of X. Got shape {Y.shape} for {len(rows)} rows.")
        Y = np.ascontiguousarray(Y, dtype=X.dtype)
        self.extension_ = extension.fit(rows, Y)
        self.embedder_, self.landmarks_ = embedder, chosen
        if some:
            self.embedding_ = self.extension_.predict(X).astype(X.dtype, copy=False)
            self.embedding_[chosen] = Y
        else:
            self.embedding_ = Y

    def _choose(self, X: Array) -> Array:
        n = X.shape[0]
        if self.landmark_method not in ("random", "kmeans"):
            raise ValueError(f"landmark_method must be 'random' or 'kmeans'. Got {self.landmark_method!r} instead.")
        if self.landmarks is None:
            return np.arange(n)
        count = self.landmarks
        if isinstance(count, Real) and not isinstance(count, bool) and float(count) != int(count) and 0 < count < 1:
            count = max(2, round(float(count) * n))
        count = as_count(count, "landmarks", maximum=n, why=f" for {n} rows, or a share between 0 and 1")
        rng = np.random.default_rng(self.random_state)
        if self.landmark_method == "random" or count == n:
            return np.sort(rng.choice(n, count, replace=False))
        sample = np.sort(rng.choice(n, min(n, _SAMPLE_PER_CENTER * count), replace=False))
        return sample[representatives(X[sample], count, self.random_state)]
