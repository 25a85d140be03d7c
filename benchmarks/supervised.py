"""Test errors of the supervised methods on the image sets of NSSE: random splits, a few images per class for training.

    python benchmarks/supervised.py [--splits 10] [--sets coil20 orl yaleb] [--methods LDE LFDA]

Images are averaged over the areas of a 25 × 25 grid. Grey levels from 0 to 1 ("pixel") or images of unit norm ("unit").
Embeddings classify by the nearest training row in the embedding.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from manifast import LDE, LFDA, NSSE, RBFDiscriminant, SupervisedIsomap, SupervisedLaplacianEigenmaps
from manifast.kernels import knn
from manifast.metrics import misclassification_rate

SIDE = 25
SETS = {
    "coil20": ("pixel", (7, 10, 20)),
    "coil20-unit": ("unit", (7, 10, 20)),
    "orl": ("pixel", (5,)),
    "yaleb": ("unit", (10, 15)),
}
METHODS: dict[str, Callable[[], Any]] = {
    "NSSE, d = 10": NSSE,
    "NSSE, d = 7, mu2 = 0.3, mu3 = 30": lambda: NSSE(7),
    "NSSE, d = 7, mu2 = 1, mu3 = 30": lambda: NSSE(7, mu2=1.0, mu3=30.0),
    "NSSE, d = 10, mu2 = 5, mu3 = 500": lambda: NSSE(10, mu2=5.0, mu3=500.0),
    "SupervisedLaplacianEigenmaps": SupervisedLaplacianEigenmaps,
    "LDE": LDE,
    "LFDA": LFDA,
    "kernel LDE": lambda: LDE(kernel="rbf"),
    "kernel LFDA": lambda: LFDA(kernel="rbf"),
    "SupervisedIsomap": SupervisedIsomap,
    "RBFDiscriminant": RBFDiscriminant,
}


def area_weights(old: int, new: int) -> np.ndarray:
    """Shares of `old` cells of a line in each of `new` ones: rows sum to one."""
    edges = np.linspace(0, old, new + 1)
    left, right = edges[:-1, None], edges[1:, None]
    cells = np.arange(old)
    return np.clip(np.minimum(right, cells + 1) - np.maximum(left, cells), 0, None) * (new / old)


def load(name: str, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Images as rows, and labels."""
    folder = Path(os.environ.get("MANIFAST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    data = np.load(folder / f"{name.removesuffix('-unit')}.npz")
    images = data["images"] / 255.0
    down, across = (area_weights(size, SIDE) for size in images.shape[1:])
    X = (down @ images @ across.T).reshape(len(images), -1)
    return X / np.linalg.norm(X, axis=1, keepdims=True) if scaling == "unit" else X, data["labels"]


def split(y: np.ndarray, per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, so many of each class, and the others."""
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)])
    return train, np.setdiff1d(np.arange(len(y)), train)


def error(model: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, new: np.ndarray) -> float:
    """Share of new rows that are misclassified, in percent."""
    model.fit(X[train], y[train])
    if hasattr(model, "transform"):
        found = y[train][knn(model.embedding_, 1, queries=model.transform(X[new]))[1][:, 0]]
    else:
        found = model.predict(X[new])
    return 100 * misclassification_rate(y[new], found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Test errors of the supervised methods.")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for name in options.sets:
        scaling, sizes = SETS[name]
        X, y = load(name, scaling)
        for per_class in sizes:
            splits = [split(y, per_class, seed) for seed in range(options.splits)]
            for method in options.methods:
                begin = time.perf_counter()
                errors = [error(METHODS[method](), X, y, *rows) for rows in splits]
                seconds = (time.perf_counter() - begin) / len(splits)
                print(
                    f"{name}, {per_class} per class ({scaling}): {method} {np.mean(errors):.2f} % "
                    f"± {np.std(errors):.2f}, {seconds:.2f} s a split",
                    flush=True,
                )


if __name__ == "__main__":
    main()
