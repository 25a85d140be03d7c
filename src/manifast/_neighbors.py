"""How the neighbours of training rows are searched: exactly, or by clusters, and what a long exact search says."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from manifast._progress import stage
from manifast._validation import Array
from manifast._warnings import warn
from manifast.graphs import Distances

_MANY = 50_000  # rows from which on a search by clusters is worth a word
_FEATURES = 9  # from which on no kd-tree is as fast
_PROBES = 128  # rows that its time is estimated from


def given_lists(neighbors: Any) -> Any:
    """Lists of neighbours that were given as `neighbors`; None where they are to be searched."""
    return None if isinstance(neighbors, str) else neighbors


def search_neighbors(distances: Distances, X: Any, k: int, how: str | None) -> tuple[Array, Array, float | None]:
    """Distances and indices of the k nearest others of every row of X, and the recall where `how` is not None.

    `how` is None for the exact search, "approximate" for the one by clusters, "auto" for the latter from 50,000 dense
    rows of 9 features on.
    """
    if how not in (None, "approximate", "auto"):
        raise ValueError(
            f"neighbors must be None, 'approximate', 'auto' or a pair (distances, indices). Got {how!r} instead."
        )
    many = distances.n >= _MANY and distances.features >= _FEATURES
    if how == "approximate" or (how == "auto" and many):
        with stage(f"{k} nearest neighbours of {distances.n} rows, by clusters"):
            return distances.nearest_by_clusters(k)
    if many:
        _announce(distances, X, k)
    with stage(f"{k} nearest neighbours of {distances.n} rows"):
        return *distances.nearest(k), None if how is None else 1.0


def _announce(distances: Distances, X: Array, k: int) -> None:
    """Warn of how long the exact search will take, and say what is faster."""
    distances.nearest_to(X[:1], k)  # packs the rows
    begin = perf_counter()
    distances.nearest_to(X[:_PROBES], k)
    # A set against itself takes half the distances of as many queries.
    seconds = (perf_counter() - begin) * distances.n / _PROBES / 2
    warn(
        f"the exact search for {k} neighbours of {distances.n} rows will take about {_duration(seconds)}: "
        "neighbors='approximate' is far faster on data with structure, and says how many of the neighbours it finds; "
        "'auto' chooses it from 50,000 rows of 9 features on."
    )


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
