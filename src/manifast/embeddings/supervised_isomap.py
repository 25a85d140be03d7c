"""Isomap on distances that know the classes: geodesics prefer to stay inside a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manifast._labels import Labels
from manifast._paths import shortest_paths
from manifast._validation import Array, as_number, as_positive
from manifast.embeddings._base import SupervisedEmbedding, check_components, check_neighbors, disconnected
from manifast.embeddings.unsupervised import classical_scaling
from manifast.extensions import as_extension
from manifast.graphs import connect_by
from manifast.kernels import neighbor_graph, sq_distances

__all__ = ["SupervisedIsomap"]

_LARGEST_EXPONENT = 50.0  # of exp(d²/β): beyond, another class is far away, and numbers need not grow


class SupervisedIsomap(SupervisedEmbedding):
    """Supervised Isomap (Geng et al. 2005), with kernel ridge regression for new rows: IsoKRR.

    Isomap on distances that shrink inside classes and grow between them: √(1 - exp(-d²/β)) for rows of one class and
    √exp(d²/β) - α for others, before neighbours and geodesics are found.

    Parameters
    ----------
    n_components : int or None, default None
        None is one less than the classes.
    n_neighbors : int or None, default None
        Nearest by the distances above; None is all other rows. With few neighbours classes that lie apart hang together
        by single edges only, which costs accuracy.
    alpha : float, default 0.5
        From 0 to 1: how much nearer rows of different classes may come.
    beta : "mean" or float, default "mean"
        "mean" is the squared mean distance over all pairs of rows. The larger, the more rows of a class fall together
        and classes become equally far from each other: towards an embedding of the labels alone.
    extension : None, str or extension, default None
        The map for new rows; None is `KernelRidge`.
    verbose : bool, default False

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
        Descending.
    extension_ : the fitted map
    classes_ : array
        The labels in order.

    Notes
    -----
    Holds n × n matrices. Where a graph of few neighbours falls into parts the shortest missing edges by the same
    distances join them, with a warning.

    References
    ----------
    Orsenigo and Vercellis, "Kernel ridge regression for out-of-sample mapping in supervised manifold learning", 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import SupervisedIsomap
    >>> X, y = load_iris(return_X_y=True)
    >>> SupervisedIsomap().fit(X[::2], y[::2]).transform(X[1::2]).shape
    (75, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        alpha: float = 0.5,
        beta: Any = "mean",
        extension: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.beta = beta
        self.extension = extension
        self.verbose = verbose

    def _embed(self, X: Any, y: Labels) -> None:
        others = X.shape[0] - 1
        d = check_components(
            y.count - 1 if self.n_components is None else self.n_components, others, "one less than the rows"
        )
        k = others if self.n_neighbors is None else check_neighbors(self.n_neighbors, X)
        alpha = as_number(self.alpha, "alpha", minimum=0.0)
        if alpha > 1:
            raise ValueError(f"alpha must be a number from 0 to 1. Got {self.alpha!r} instead.")
        distances = class_distances(X, y.codes, self._in_units(self.beta, 2), alpha)
        graph = nearest_by(distances, k)
        if disconnected(graph, True, "distance"):
            graph = connect_by(graph, distances)
        values, vectors = classical_scaling(shortest_paths(graph), d, self.verbose)
        self.eigenvalues_ = values
        self.embedding_ = (vectors * np.sqrt(values)).astype(X.dtype)
        self.extension_ = as_extension("kernel_ridge" if self.extension is None else self.extension).fit(
            X, self.embedding_
        )


def class_distances(X: Array, codes: Array, beta: Any, alpha: float) -> Array:
    """All distances that know the classes, in float64: √(1 - exp(-d²/β)) inside, √exp(d²/β) - α between."""
    if isinstance(beta, str) and beta != "mean":
        raise ValueError(f"beta must be 'mean' or a positive number. Got {beta!r} instead.")
    width = None if isinstance(beta, str) else as_positive(beta, "beta")
    squares = sq_distances(X.astype(np.float64, copy=False))
    if width is None:
        width = (float(np.sqrt(squares).sum()) / (squares.size - len(X))) ** 2 or 1.0
    ratio = np.minimum(squares / width, _LARGEST_EXPONENT)
    return np.where(codes[:, None] == codes, np.sqrt(-np.expm1(-ratio)), np.exp(0.5 * ratio) - alpha)


def nearest_by(distances: Array, k: int) -> sp.csr_array:
    """Union graph of the k nearest by a matrix of distances, ties by index, with these as lengths."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    lists = np.argsort(others, axis=1, kind="stable")[:, :k]
    return neighbor_graph(np.take_along_axis(others, lists, axis=1), lists, weights="distance")
