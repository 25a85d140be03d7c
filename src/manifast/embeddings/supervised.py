"""Embeddings by labels: class graphs weighed against each other, or the labels themselves, with a map for new rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from manifast import objectives
from manifast._labels import Labels
from manifast._validation import Array, as_count, as_positive
from manifast.embeddings._base import SupervisedEmbedding, check_components, solve
from manifast.extensions import RBF, LatentVariable
from manifast.graphs import between_graph, heat_width, within_blocks
from manifast.kernels import laplacian
from manifast.spectral import LowRankSum, fix_signs, smallest_eigenvectors

__all__ = ["FisherEmbedding", "LabelEncoding", "SupervisedLaplacianEigenmaps"]

_RANK = 1e-12  # eigenvalues of L_w below this, relative to its size, count as 0
_RIDGES = (0.0, 1e-6, 1e-3, 1e-1)  # of the natural map, chosen among by leave-one-out
_RBF_ROWS = 10_000  # beyond, the interpolator's matrix would take more than a gigabyte


class _ClassEmbedding(SupervisedEmbedding):
    """What these share: a Gaussian map as the natural one. Rows of few features call for a ridge."""

    def _natural_map(self, X: Array) -> None:
        natural: Any = None
        if self.extension is None and len(X) <= _RBF_ROWS:
            # Chosen on centred coordinates, so that label encoding and its contrasts get the same.
            centred = self.embedding_ - self.embedding_.mean(axis=0)
            natural = RBF(ridge=RBF(ridge=_RIDGES).fit(X, centred).ridge_)
        elif self.extension is None:
            natural = LatentVariable()
            warnings.warn(
                f"with more than {_RBF_ROWS} rows new ones are mapped by extension='lvm', as the matrix of the "
                "Gaussian map would not fit. Choose an extension to silence this.",
                UserWarning,
                stacklevel=6,
            )
        self._extend(X, None if natural is None else natural.fit(X, self.embedding_))


class _ClassGraphs(_ClassEmbedding):
    """What embeddings by a within-class and a between-class graph share."""

    def _embed(self, X: Array, y: Labels) -> None:
        d = y.count - 1 if self.n_components is None else as_count(self.n_components, "n_components")
        counts = [
            None if k is None else as_count(k, name, maximum=len(X) - 1, why=f" for {len(X)} rows")
            for name in ("n_neighbors_within", "n_neighbors_between")
            for k in (getattr(self, name),)
        ]
        self._check_parameters(d, y)
        width = heat_width(X, self._in_units(self.beta, 2))
        blocks = within_blocks(X, y.members, counts[0], width)
        if counts[1] is None and not self.normalized:
            values, Y = self._choose(ClassModes(blocks, y, X, self._inside(d, y)), d)
        else:
            order = np.argsort(np.concatenate(y.members))
            within = sp.csr_array(sp.block_diag(blocks, format="csr"))[order][:, order]
            between = None if counts[1] is None else between_graph(X, y.members, counts[1], width)
            values, Y = self._solve(within, between, y, d)
        self.eigenvalues_, self.embedding_ = values, np.ascontiguousarray(Y, dtype=X.dtype)
        self._natural_map(X)

    @abstractmethod
    def _check_parameters(self, d: int, y: Labels) -> None:
        """What can be refused before any work."""

    def _inside(self, d: int, y: Labels) -> int:
        """How many directions inside a class may be among the best d: contrasts come first."""
        return max(0, d - (y.count - 1))

    @abstractmethod
    def _choose(self, modes: ClassModes, d: int) -> tuple[Array, Array]:
        """The best of the common eigenvectors of both plain Laplacians."""

    @abstractmethod
    def _solve(self, within: Any, between: Any, y: Labels, d: int) -> tuple[Array, Array]:
        """The same where the Laplacians have no common eigenvectors."""


class ClassModes:
    """Common eigenvectors of the within-class Laplacian and that of the complete graph between the classes.

    L_b = diag(N - n_c) + ZZ' - 11' has the eigenvalues N on contrasts of the classes, where L_w vanishes, N - n_c on
    whatever sums to zero inside class c, and 0 on the constant. So eigenvectors of every class's own Laplacian, the
    contrasts and the constant are all there is, and L_b is never built. All contrasts are equally good: they are turned
    so that the first ones tell the class means apart best.
    """

    def __init__(self, blocks: list[Any], labels: Labels, X: Array, inside: int) -> None:
        n, self._labels = len(X), labels
        self._contrasts = class_contrasts(labels, X)
        self.scale = max(float(block.sum(axis=1).max()) for block in blocks) or 1.0  # of the within-class Laplacian
        within, between = [np.zeros(labels.count)], [np.append(np.full(labels.count - 1, float(n)), 0.0)]
        self._inside: list[Array] = []
        self._at: list[tuple[int, int]] = [(-1, j) for j in range(labels.count)]
        for c, (block, size) in enumerate(zip(blocks, labels.sizes, strict=True)):
            wanted = min(inside, int(size) - 1)
            values, vectors = np.empty(0), np.empty((size, 0))
            if wanted:
                L = laplacian(sp.csr_array(block, dtype=np.float64))[0]
                values, vectors = smallest_eigenvectors(L, wanted, null=np.ones(size), check=False)
            self._inside.append(vectors)
            self._at += [(c, j) for j in range(wanted)]
            within.append(values)
            between.append(np.full(wanted, float(n - size)))
        self.within, self.between = np.concatenate(within), np.concatenate(between)

    def best(self, scores: Array, d: int) -> tuple[Array, Array]:
        """The d smallest scores, one per mode, and their unit vectors."""
        chosen = np.argsort(scores, kind="stable")[:d]
        Y = np.zeros((len(self._labels.codes), d))
        for column, (c, j) in enumerate(self._at[i] for i in chosen):
            if c < 0:
                Y[:, column] = self._contrasts[:, j]
            else:
                Y[self._labels.members[c], column] = self._inside[c][:, j]
        return scores[chosen], fix_signs(Y)


def class_contrasts(labels: Labels, X: Array) -> Array:
    """Orthonormal vectors (n, classes), constant on every class: contrasts of the classes, and the constant last."""
    roots = np.sqrt(labels.sizes)
    heights = np.column_stack([contrasts(roots, labels, X), roots / np.sqrt(len(X))]) / roots[:, None]
    return np.asarray(heights[labels.codes])


def contrasts(roots: Array, labels: Labels, X: Array) -> Array:
    """Orthonormal (classes, classes - 1), orthogonal to `roots`, the first ones along which class means differ most.

    The class means count with weights `roots`; where these are √n_c the scaled means, less the common one, are
    contrasts themselves.
    """
    means = np.stack([X[rows].mean(axis=0, dtype=np.float64) for rows in labels.members])
    means -= X.mean(axis=0, dtype=np.float64)
    across = la.qr(roots[:, None])[0][:, 1:]
    spread = across.T @ (roots[:, None] * means)
    if spread.shape[1] < spread.shape[0]:  # fewer features than contrasts: the others come in any order
        return np.asarray(across @ la.svd(spread)[0])
    return np.asarray(across @ la.svd(spread, full_matrices=False)[0])


class SupervisedLaplacianEigenmaps(_ClassGraphs):
    """Supervised Laplacian eigenmaps (Raducanu and Dornaika 2012): classes together, and apart from each other.

    The smallest eigenvectors of L_w - mu L_b (NSSE eq. 2), with Y'Y = I: L_w of a graph inside the classes with heat
    weights, L_b of a graph between them.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes less one. With the complete graph between the classes that many directions are
        equally good; fewer are those that tell the class means apart best, and more only add directions inside classes.
    mu : float, default 1.0
    n_neighbors_within : int or None, default None
        Join each row to that many nearest of its class, the parts of a class joined by the shortest missing edges;
        None is the complete graph inside each class.
    n_neighbors_between : int or None, default None
        Join each row to that many nearest of other classes with heat weights; None is the complete graph between the
        classes with weight 1, which is never built.
    normalized : bool, default False
        Normalised Laplacians D^-1/2 (D - W) D^-1/2, as in THEORY eq. 30.
    beta : "mean" or float, default "mean"
        Width of the heat weights exp(-d²/beta); "mean" is the mean squared distance over all pairs of rows.
    extension : None, str or extension, default None
        The map for new rows; None is `RBF` with the median distance as its width and a ridge chosen by leave-one-out
        (`LatentVariable` beyond 10,000 rows, with a warning). `RBF()` interpolates.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    classes_ : array of classes
    extension_ : the fitted map

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import SupervisedLaplacianEigenmaps
    >>> X, y = load_digits(return_X_y=True)
    >>> SupervisedLaplacianEigenmaps().fit(X[:500], y[:500]).transform(X[500:]).shape
    (1297, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        mu: float = 1.0,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
        extension: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.mu = mu
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.normalized = normalized
        self.beta = beta
        self.extension = extension
        self.verbose = verbose

    def _check_parameters(self, d: int, y: Labels) -> None:
        check_components(d, len(y.codes), "the number of rows")
        as_positive(self.mu, "mu")

    def _choose(self, modes: ClassModes, d: int) -> tuple[Array, Array]:
        natural = len(self.classes_) - 1
        if d != natural:
            what = (
                "they are equally good: those that tell the class means apart best are kept"
                if d < natural
                else "the others are directions inside classes"
            )
            warnings.warn(
                f"the complete graph between {natural + 1} classes has {natural} leading directions, and n_components "
                f"is {d}: {what}. Use n_components={natural}, or n_neighbors_between.",
                UserWarning,
                stacklevel=6,
            )
        return modes.best(modes.within - float(self.mu) * modes.between, d)

    def _solve(self, within: Any, between: Any, y: Labels, d: int) -> tuple[Array, Array]:
        objective = objectives.supervised(within, between, y, mu=float(self.mu), normalized=self.normalized)
        return solve(objective, objective.A, d, np.float64, self.verbose)


class FisherEmbedding(_ClassGraphs):
    """Largest ratio of between-class to within-class spread, tr(Y'L_bY) / tr(Y'L_wY) (THEORY eq. 36).

    The ratio is unbounded where L_w vanishes, on vectors that are constant on every class, so it takes a regularisation
    to say what is meant.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes less one.
    regularization : {"ridge", "pinv"}, default "ridge"
        Eigenvectors of L_b against L_w + eps I: with a small eps close to supervised Laplacian eigenmaps. Or those of
        the pseudo-inverse of L_w times L_b, which leaves class contrasts out: polarised embeddings that generalise
        badly, as the paper shows.
    eps : float, default 1e-3
        The ridge.
    n_neighbors_within, n_neighbors_between, normalized, beta
        The graphs, as in `SupervisedLaplacianEigenmaps`. With neighbours between the classes, or normalised Laplacians,
        "pinv" takes dense matrices of n × n, and so does "ridge" with the complete normalised one.
    extension : None, str or extension, default None
        The map for new rows; None is `RBF` with the median distance as its width and a ridge chosen by leave-one-out
        (`LatentVariable` beyond 10,000 rows, with a warning). `RBF()` interpolates.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
        Columns of unit length.
    eigenvalues_ : array of shape (n_components,)
        The ratios, descending.
    classes_ : array of classes
    extension_ : the fitted map

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifast import FisherEmbedding
    >>> X, y = load_digits(return_X_y=True)
    >>> FisherEmbedding(n_neighbors_between=10).fit(X[:500], y[:500]).transform(X[500:]).shape
    (1297, 9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        regularization: str = "ridge",
        eps: float = 1e-3,
        n_neighbors_within: int | None = None,
        n_neighbors_between: int | None = None,
        normalized: bool = False,
        beta: Any = "mean",
        extension: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.eps = eps
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.normalized = normalized
        self.beta = beta
        self.extension = extension
        self.verbose = verbose

    def _check_parameters(self, d: int, y: Labels) -> None:
        if self.regularization not in ("ridge", "pinv"):
            raise ValueError(f"regularization must be 'ridge' or 'pinv'. Got {self.regularization!r} instead.")
        as_positive(self.eps, "eps")
        n = len(y.codes)
        if self.regularization == "ridge":
            check_components(d, n - 1, "the rows less the constant vector")
        else:
            check_components(d, n - y.count, "the rows less the classes, which is the rank of L_w")

    def _inside(self, d: int, y: Labels) -> int:
        return super()._inside(d, y) if self.regularization == "ridge" else d

    def _choose(self, modes: ClassModes, d: int) -> tuple[Array, Array]:
        if self.regularization == "ridge":
            ratios = modes.between / (modes.within + float(self.eps))
        else:
            kept = modes.within > _RANK * modes.scale
            if np.sum(kept) < d:
                raise too_many(d, int(np.sum(kept)))
            ratios = np.where(kept, modes.between / np.where(kept, modes.within, 1.0), 0.0)
        ratios, Y = modes.best(-ratios, d)
        return -ratios, Y

    def _solve(self, within: Any, between: Any, y: Labels, d: int) -> tuple[Array, Array]:
        L_w, L_b = (objectives.class_laplacian(W, y, self.normalized) for W in (within, between))
        L_b = L_b.toarray() if isinstance(L_b, LowRankSum) else L_b
        if self.regularization == "ridge":
            raised = sp.csr_array(L_w + float(self.eps) * sp.eye_array(L_w.shape[0]))
            inverse, Y = smallest_eigenvectors(raised, d, B=L_b, check=False, verbose=self.verbose)
            ratios = 1.0 / inverse
        else:
            spread, axes = la.eigh(L_w.toarray())
            kept = spread > _RANK * spread[-1]
            if np.sum(kept) < d:
                raise too_many(d, int(np.sum(kept)))
            half = axes[:, kept] / np.sqrt(spread[kept])
            inside = half.T @ (L_b @ half)
            count = len(inside)
            ratios, mixing = la.eigh(0.5 * (inside + inside.T), subset_by_index=(count - d, count - 1))
            ratios, Y = ratios[::-1], half @ mixing[:, ::-1]
        return ratios, fix_signs(Y / la.norm(Y, axis=0))


def too_many(d: int, rank: int) -> ValueError:
    return ValueError(
        f"n_components must be at most {rank} for regularization='pinv', the rank of the within-class Laplacian in "
        f"working precision. Got {d}: use fewer, a larger beta, or 'ridge'."
    )


class LabelEncoding(_ClassEmbedding):
    """Rows embedded at their own labels: one corner of a simplex for each class, and a map that carries it to new rows.

    Parameters
    ----------
    n_components : int or None, default None
        None is the number of classes: column c is 1 for the rows of class c. One less is the same simplex, turned into
        the dimensions that it spans; still fewer are those that tell the class means apart best.
    extension : None, str or extension, default None
        The map for new rows; None is `RBF` with the median distance as its width and a ridge chosen by leave-one-out
        (`LatentVariable` beyond 10,000 rows, with a warning). `RBF()` interpolates.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    classes_ : array of classes
    extension_ : the fitted map

    Examples
    --------
    >>> from manifast import LabelEncoding
    >>> LabelEncoding().fit_transform([[0.0], [1.0], [2.0]], ["b", "a", "b"])
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """

    def __init__(self, n_components: int | None = None, *, extension: Any = None) -> None:
        self.n_components = n_components
        self.extension = extension

    def _embed(self, X: Array, y: Labels) -> None:
        d = y.count if self.n_components is None else as_count(self.n_components, "n_components")
        check_components(d, y.count, "the number of classes")
        Y = y.indicators
        if d < y.count:
            Y = Y @ fix_signs(contrasts(np.ones(y.count), y, X)[:, :d])
        self.embedding_ = Y.astype(X.dtype)
        self._natural_map(X)
