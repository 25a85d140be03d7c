"""Approximate nearest neighbours of all rows: overlapping clusters, the exact kernel inside each, and lists joined.

Rows are parted by centroids of a sample, every row belongs to its nearest few, and the rows of a cluster are compared
with each other. How many of the true neighbours that finds is estimated on a sample of rows against the exact search;
where it is too few, the lists are improved by neighbours of neighbours and by another partition.
Everything depends on the rows and the seed alone: not on the threads, whose kernels give the same bits for any number.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from manifast._core import affine as _affine
from manifast._core import clusters as _clusters
from manifast._core import knn as _knn
from manifast._progress import details, log
from manifast._validation import Array

_SIZE = 500  # rows per centroid, or √n where that is more: then finding centroids and comparing rows cost alike
_OVERLAPS = (2, 3, 4)  # clusters that a row belongs to, in one partition after the other until recall suffices
_LARGEST = 8  # larger clusters than this many times their mean size are cut: the work grows with the square
_SAMPLE = 25  # sampled rows per centroid, from which k-means finds the centroids
_STEPS = 4  # of k-means
_AROUND = 8  # times √centroids: so many centroids are compared with the rows near one coarse centre
_JUDGES = 500  # rows from which recall is estimated
_GAIN = 0.005  # neighbours of neighbours are tried again while recall grows by this much


class Partition(NamedTuple):
    """Clusters of rows: every row belongs to its nearest few."""

    starts: Array  # of the clusters among their members
    known: Array  # members at the beginning of each cluster that belong to it first of all
    members: Array  # rows, cluster by cluster
    places: Array  # (n, overlap): where a row stands among the members, in its nearest cluster first
    labels: Array  # (n, overlap): its clusters

    def first(self) -> Partition:
        """The same where a row belongs to its nearest cluster only."""
        taken = np.zeros(len(self.members), dtype=bool)
        taken[self.places[:, 0]] = True
        places = (np.cumsum(taken) - 1)[self.places[:, :1]]
        starts = np.concatenate([[0], np.cumsum(taken)])[self.starts]
        none = np.zeros_like(self.known)
        return Partition(starts, none, self.members[taken], places, np.ascontiguousarray(self.labels[:, :1]))


class Lists:
    """The k nearest of every row found so far: squared distances in float64, ties by number; -1 where none is known."""

    def __init__(self, x: Array, k: int, threads: int) -> None:
        self._x, self._threads = x, threads
        self.keys = np.full((x.shape[0], k), np.inf)
        self.near = np.full((x.shape[0], k), -1, dtype=np.int32)

    def add_partition(self, partition: Partition) -> None:
        """Take in what a partition finds: first among the rows of one cluster, then among those that overlap it.

        What is known from the former keeps most rows of the latter from being candidates.
        """
        first = partition.first()
        self._labels, self._order = partition.labels, first.members
        for part in (first, partition):
            keep = min(self.keys.shape[1] + 1, self._x.shape[0] - 1)
            candidates = np.empty((len(part.members), keep), dtype=np.int32)
            _clusters.cluster_candidates(
                self._x, part.starts, part.known, part.members, self.keys, candidates, self._threads
            )
            _clusters.rank_candidates(
                self._x, self._order, part.places, candidates, self.keys, self.near, self._threads
            )

    def join(self) -> None:
        """Take in the neighbours of neighbours."""
        keys, near = np.empty_like(self.keys), np.empty_like(self.near)
        _clusters.join_neighbors(
            self._x, self._order, self._labels, self.keys, self.near, keys, near, self._threads
        )
        self.keys, self.near = keys, near


def few_rows(n: int, k: int) -> bool:
    """Whether the exact search is as fast."""
    return n <= max(4 * _SIZE, 2 * k)


def all_neighbors(x: Array, k: int, recall: float, seed: int, threads: int) -> tuple[Array, Array, float]:
    """Distances, indices, and the recall reached, for checked rows whose squares stay in range."""
    n = x.shape[0]
    if few_rows(n, k):
        return *_exact(x, None, k, threads), 1.0
    random = np.random.default_rng(seed)
    judges = _Judges(x, k, random, threads)
    lists = Lists(x, k, threads)
    for overlap in _OVERLAPS:
        lists.add_partition(_partition(x, overlap, random, threads))
        reached = judges.recall(lists, "clusters")
        while reached < recall:
            before = reached
            lists.join()
            reached = judges.recall(lists, "neighbours of neighbours")
            if reached - before < _GAIN:
                break
        if reached >= recall:
            break
    return *_finished(x, lists, threads), reached


class _Judges:
    """A sample of rows whose true neighbours are known from the exact search."""

    def __init__(self, x: Array, k: int, random: np.random.Generator, threads: int) -> None:
        self._rows = np.sort(random.choice(x.shape[0], min(x.shape[0], _JUDGES), replace=False))
        distances, indices = _exact(x, x[self._rows], k + 1, threads)
        itself = indices == self._rows[:, None]
        itself[~itself.any(axis=1), -1] = True  # pushed out by k + 1 copies of the row
        self._farthest = distances[~itself].reshape(-1, k)[:, -1:]

    def recall(self, lists: Lists, after: str) -> float:
        """The share of their neighbours that is listed; whatever is as close as the k-th nearest counts."""
        found = np.sqrt(lists.keys[self._rows]).astype(self._farthest.dtype)
        share = float(np.mean(found <= self._farthest))
        if details():
            log(f"{after}: recall {share:.3f}")
        return share


def _finished(x: Array, lists: Lists, threads: int) -> tuple[Array, Array]:
    """Distances and indices; rows of which fewer than k neighbours are known are searched exactly."""
    k = lists.keys.shape[1]
    distances, indices = np.sqrt(lists.keys, out=lists.keys).astype(x.dtype), lists.near.astype(np.int64)
    short = np.flatnonzero(lists.near[:, -1] < 0)
    if len(short):
        found, at = _exact(x, x[short], k + 1, threads)
        itself = at == short[:, None]
        itself[~itself.any(axis=1), -1] = True
        distances[short], indices[short] = found[~itself].reshape(-1, k), at[~itself].reshape(-1, k)
    return distances, indices


def _partition(x: Array, overlap: int, random: np.random.Generator, threads: int) -> Partition:
    """Clusters around centroids of a sample; those that are too large are cut into pieces."""
    n = x.shape[0]
    size = max(_SIZE, int(sqrt(n)))
    count, most = n // size, _LARGEST * size
    centroids = _centroids(x, count, random, threads)
    nearest = _nearest_centroids(x, centroids, min(overlap, count), random, threads)
    labels = nearest.T.ravel()  # all nearest clusters, then all second ones: so they stand in every cluster
    flat = np.argsort(labels.astype(np.int32), kind="stable")
    sizes, known = np.bincount(labels, minlength=count), np.bincount(nearest[:, 0], minlength=count)
    starts, members = np.concatenate([[0], np.cumsum(sizes)]), (flat % n).astype(np.int32)
    pieces, cuts = np.ones(count, dtype=np.int64), [starts]
    for c in np.flatnonzero(sizes > most):
        part = slice(starts[c], starts[c + 1])
        turned, pieces[c] = _halved(x, members[part], most, random, threads)
        members[part], flat[part] = members[part][turned], flat[part][turned]
        cuts.append(starts[c] + np.arange(1, pieces[c]) * sizes[c] // pieces[c])
    starts = np.sort(np.concatenate(cuts))
    known = np.repeat(np.where(pieces > 1, 0, known), pieces)  # in pieces those rows no longer stand in front
    places, labels_of = np.empty(len(flat), dtype=np.int64), np.empty(len(flat), dtype=np.int32)
    places[flat] = np.arange(len(flat))
    labels_of[flat] = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    shape = nearest.T.shape
    return Partition(
        starts,
        known,
        members,
        np.ascontiguousarray(places.reshape(shape).T),
        np.ascontiguousarray(labels_of.reshape(shape).T),
    )


def _nearest_centroids(
    x: Array, centroids: Array, overlap: int, random: np.random.Generator, threads: int
) -> Array:
    """The nearest few centroids of every row; of many centroids only those around the nearest of a coarser set."""
    count = len(centroids)
    coarse = int(sqrt(count))
    near = _AROUND * coarse
    if count < 2 * near:
        return _exact(centroids, x, overlap, threads)[1]
    centers = _centroids(centroids, coarse, random, threads)
    around = _exact(centroids, centers, near, threads)[1]
    group = _exact(centers, x, 1, threads)[1].ravel()
    rows = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group, minlength=coarse))[:-1])
    nearest = np.empty((x.shape[0], overlap), dtype=np.int64)
    for some, candidates in zip(rows, around, strict=True):
        if len(some):
            candidates = np.sort(candidates)
            nearest[some] = candidates[_exact(centroids[candidates], x[some], overlap, threads)[1]]
    return nearest


def _halved(x: Array, rows: Array, most: int, random: np.random.Generator, threads: int) -> tuple[Array, int]:
    """An order of the rows of a large cluster, and the number of equal parts of it that are compact and small enough.

    A part is halved at the median along the direction from one of its rows to the farthest of them. Equal rows
    fall into parts by their number.
    """
    order = np.arange(len(rows))
    pieces = 2 ** int(np.ceil(np.log2(len(rows) / most)))
    parts = 1
    while parts < pieces:
        for i in range(parts):
            part = slice(i * len(rows) // parts, (i + 1) * len(rows) // parts)
            points = x[rows[order[part]]].astype(np.float64)
            points -= points[random.integers(len(points))]
            farthest = points[int(np.argmax(np.einsum("ij,ij->i", points, points)))]
            along = np.empty((len(points), 1))
            _affine.affine(points, np.ascontiguousarray(farthest[:, None]), None, along, threads)
            order[part] = order[part][np.argsort(along[:, 0], kind="stable")]
        parts *= 2
    return order, pieces


def _centroids(x: Array, count: int, random: np.random.Generator, threads: int) -> Array:
    """Centroids of a sample of the rows by a few steps of k-means, from random rows."""
    rows = random.choice(x.shape[0], min(x.shape[0], _SAMPLE * count), replace=False)
    sample = x[rows]
    centroids: Array = sample[:count].copy()
    for _ in range(_STEPS):
        labels = _exact(centroids, sample, 1, threads)[1].ravel()
        order = np.argsort(labels, kind="stable")
        taken, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(sample[order].astype(np.float64), starts, axis=0)
        centroids[taken] = sums / sizes[:, None]
    return centroids


def _exact(x: Array, queries: Array | None, k: int, threads: int) -> tuple[Array, Array]:
    m = x.shape[0] if queries is None else queries.shape[0]
    distances, indices = np.empty((m, k), dtype=x.dtype), np.empty((m, k), dtype=np.int64)
    _knn.knn(x, queries, distances, indices, threads)
    return distances, indices
