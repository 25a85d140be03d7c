"""Maps by the sparse code of a new row in the training rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast._validation import Array, as_count, as_matrix, as_number, as_positive, own
from manifast.extensions.base import Extension
from manifast.graphs import nearest
from manifast.maps import SparseCodeMap, prepared


class SparseCode(Extension):
    """Code a new row by the training rows and take the mean of their embeddings, weighted by the code (SPARSE, (9)).

    The code is the one of smallest L1 norm, with errors allowed in every feature at the same price; y = Σ_i |a_i| y_i /
    Σ_i |a_i|. A row whose code is empty gets the embedding of its nearest training row.

    Parameters
    ----------
    lam : float, default 0.0
        Weight of the L1 norm; 0 is the limit, an exact code.
    errors : bool, default True
        Code against [X I] instead of X alone.
    power : float, default 1
        Weights |a|^power: 1 as in the paper, 2 is often better.
    normalize : bool, default True
        Scale all rows to unit norm first.
    top : int or None, default None
        Keep only that many coefficients of each code, the largest.
    projection : int or None, default None
        Project all rows to that many random orthonormal axes first.
    dictionary_size : int or None, default None
        Code against that many training rows only (SPARSE sec. 4.4).
    dictionary_method : {"kmeans", "nearest"}, default "kmeans"
        Which: the nearest to the centres of k-means, the same for all new rows; or the nearest to each new row.
    random_state : int, default 0
        Of the projection and k-means.
    verbose : bool, default False
        Show progress.
    basis : None, "identity" or matrix of shape (m, p), default None
        What errors are coded in: one by one for every feature (None and "identity"), or in the rows of a matrix, such
        as a Fourier or Haar basis, in which they are sparser (SPARSE sec. 3.2). Its rows are scaled and projected as
        those of X are.
    weights : None, "power" or function, default None
        Weights of eq. 9: |a|^power, or what the function gives for an array of entries of the codes, one number of at
        least 0 for each.

    Notes
    -----
    Cost: `fit` keeps the rows. A new row takes O(np) per step of the homotopy, of which there are about as many as
    entries in its code.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.extensions import SparseCode
    >>> X, Y = np.eye(3), np.array([[0.0], [1.0], [2.0]])
    >>> SparseCode(errors=False).fit(X, Y).predict([[1.0, 1.0, 0.0]]).round(6)
    array([[0.5]])
    """

    _stored: ClassVar[dict[str, str]] = Extension._stored | {"_count": "count", "_atoms": "atoms"}

    map_: SparseCodeMap

    def __init__(
        self,
        lam: float = 0.0,
        errors: bool = True,
        power: float = 1,
        normalize: bool = True,
        top: int | None = None,
        projection: int | None = None,
        dictionary_size: int | None = None,
        dictionary_method: str = "kmeans",
        random_state: int = 0,
        verbose: bool = False,
        basis: Any = None,
        weights: Any = None,
    ) -> None:
        self.lam = lam
        self.errors = errors
        self.power = power
        self.normalize = normalize
        self.top = top
        self.projection = projection
        self.dictionary_size = dictionary_size
        self.dictionary_method = dictionary_method
        self.random_state = random_state
        self.verbose = verbose
        self.basis = basis
        self.weights = weights

    def _fit(self, X: Array, Y: Array) -> SparseCodeMap:
        n, p = X.shape
        lam, power = as_number(self.lam, "lam", minimum=0.0), as_positive(self.power, "power")
        top = None if self.top is None else as_count(self.top, "top")
        size = None if self.dictionary_size is None else as_count(self.dictionary_size, "dictionary_size", maximum=n)
        if self.dictionary_method not in ("kmeans", "nearest"):
            raise ValueError(
                f"dictionary_method must be 'kmeans' or 'nearest'. Got {self.dictionary_method!r} instead."
            )
        if self.weights is not None and self.weights != "power" and not callable(self.weights):
            raise ValueError(f"weights must be None, 'power' or a function. Got {self.weights!r} instead.")
        axes = None
        if self.projection is not None:
            count = as_count(self.projection, "projection", maximum=p, why=f" for {p} features")
            gaussian_matrix = np.random.default_rng(self.random_state).standard_normal((p, count))
            axes = np.ascontiguousarray(la.qr(gaussian_matrix, mode="economic")[0], dtype=X.dtype)
        normalize = bool(self.normalize)
        basis = self._error_basis(p, X.dtype)
        rows = prepared(X, axes, normalize)
        self._count, self._atoms = n, np.arange(n)
        if size is not None and self.dictionary_method == "kmeans":
            self._atoms = representatives(rows, size, self.random_state)
        return SparseCodeMap(
            rows[self._atoms],
            Y[self._atoms],
            lam=lam,
            errors=bool(self.errors) and basis is None,
            basis=None if basis is None else prepared(basis, axes, normalize),
            power=power,
            weights=self.weights if callable(self.weights) else None,
            normalize=normalize,
            axes=axes,
            top=top,
            near=size if self.dictionary_method == "nearest" else None,
        )

    def _error_basis(self, p: int, dtype: Any) -> Array | None:
        """Rows in which errors are coded, None for the axes themselves."""
        if self.basis is None or (isinstance(self.basis, str) and self.basis == "identity" and self.errors):
            return None
        if not self.errors:
            raise ValueError("basis must be None with errors=False. Got a basis: use errors=True to code errors in it.")
        if isinstance(self.basis, str):
            raise ValueError(f"basis must be None, 'identity' or a matrix. Got {self.basis!r} instead.")
        matrix: Array = own(as_matrix(self.basis, "basis", dtype=dtype, min_rows=1, columns=p), self.basis)
        return matrix

    def codes(self, X: Any) -> sp.csr_array:
        """Sparse codes of new rows, one column per training row."""
        rows = self._new_rows(X)
        codes = self.map_.codes(rows, verbose=self.verbose)
        columns = self._atoms[codes.indices].astype(codes.indices.dtype)
        return sp.csr_array((codes.data, columns, codes.indptr), shape=(codes.shape[0], self._count))

    def _image(self, rows: Array) -> Array:
        return self.map_.predict(rows, verbose=self.verbose)

    @property
    def X_(self) -> Array:
        return self.map_.atoms

    @property
    def Y_(self) -> Array:
        return self.map_.images


def representatives(X: Array, count: int, seed: int) -> Array:
    """Numbers of the rows nearest to the centres of k-means, ascending."""
    from sklearn.cluster import KMeans

    centers = KMeans(count, n_init=1, random_state=seed).fit(X).cluster_centers_.astype(X.dtype)
    return np.unique(nearest(X, 1, queries=centers)[1])
