"""Image sets by name, as rows of features, and splits of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import fetch_olivetti_faces, load_digits

from manifast.datasets import area_average, load_images

Rows = tuple[Any, Any]


class MissingSet(Exception):
    """An image set that is not in the data folder."""


class Sets:
    """Image sets from a folder; digits come with scikit-learn, and ORL from its downloader where that is asked for."""

    def __init__(self, folder: Any = None, download: bool = False) -> None:
        self._folder, self._download = folder, download
        self._images = lru_cache(maxsize=None)(self._read)

    def rows(
        self, name: str, *, size: int | None = None, unit: bool = False, classes: tuple[int, int] | None = None
    ) -> Rows:
        """Rows and labels; images averaged over a grid of `size`, rows of unit norm, classes from one to another."""
        images, y = self._images(name)
        if classes is not None:
            kept = (y >= classes[0]) & (y <= classes[1])
            images, y = images[kept], y[kept]
        if size is not None and size < images.shape[1]:
            images = area_average(images, size)
        X = images.reshape(len(images), -1)
        if unit:
            lengths = np.linalg.norm(X, axis=1, keepdims=True)
            X = X / np.where(lengths > 0, lengths, 1)
        return X, y

    def _read(self, name: str) -> Rows:
        if name == "digits":
            digits = load_digits()
            return digits.images / 16.0, digits.target
        try:
            found = load_images(name, self._folder)
        except ValueError as problem:
            if name == "orl" and self._download:
                faces = fetch_olivetti_faces()
                return faces.images.astype(np.float64), faces.target
            raise MissingSet(str(problem)) from None
        return found.images, np.unique(found.y, return_inverse=True)[1]  # MATLAB files count classes from 1


def per_class(y: Any, count: int, seed: int) -> tuple[Any, Any]:
    """Training rows, so many of each class, and the others."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:count] for c in np.unique(y)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def share(n: int, part: float, seed: int) -> tuple[Any, Any]:
    """A random share of the rows, and the others."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: round(part * n)], order[round(part * n) :]


def held_out(y: Any, count: int = 3, part: float = 0.3) -> list[tuple[Any, Any]]:
    """Random splits of training rows for validation; every class keeps a row on each side."""
    splits = []
    for seed in range(count):
        rng = np.random.default_rng([7, seed])
        held = []
        for c in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == c))
            held.append(rows[: min(max(1, round(part * len(rows))), len(rows) - 1)])
        away = np.concatenate(held)
        splits.append((np.setdiff1d(np.arange(len(y)), away), away))
    return splits
