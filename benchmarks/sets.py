"""The data sets of the studies, and their splits."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from manifast.datasets import load_images

_SIDE = 25  # faces and objects are averaged over the areas of a grid of this size


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of digits, or of an image set in MANIFAST_DATA.

    Grey levels are from 0 to 1; rows of yaleb, and of NAME-unit, have norm 1. frey has no labels but zeros.
    """
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, y
    plain = name.removesuffix("-unit")
    size = None if plain in ("mnist10k", "frey") else _SIDE
    X, y, _, _ = load_images(plain, size=size, unit_norm=name in ("yaleb", f"{plain}-unit"))
    return X, y


def split(y: np.ndarray, per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, so many of each class, and the others."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def partly_labelled(y: np.ndarray, per_class: int, seed: int, most: int = 2500) -> tuple[np.ndarray, ...]:
    """Training rows, their labels with -1 for all but so many of each class, and new rows; half of `most` rows each."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))[:most]
    train, new = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    for c in np.setdiff1d(y, y[train]):  # every class has a row to label
        train = np.append(train, new[y[new] == c][:1])
    new = np.setdiff1d(new, train)
    known = np.concatenate([rng.permutation(np.flatnonzero(y[train] == c))[:per_class] for c in np.unique(y)])
    some = np.full(len(train), -1)
    some[known] = y[train][known]
    return train, some, new
