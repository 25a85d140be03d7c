"""The picture of the README: a Swiss roll unrolled by several methods, and points none of them has seen.

python docs/swiss_roll.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.linear_model import LinearRegression

import manifast


def roll(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, and their true coordinates: arc length and height."""
    X, t = make_swiss_roll(n, random_state=seed)
    return X, np.column_stack([0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t)), X[:, 1]])


def main() -> None:
    X, truth = roll(1000, 0)
    new, new_truth = roll(1000, 1)
    methods = [
        manifast.LaplacianEigenmaps(n_neighbors=8),
        manifast.LocallyLinearEmbedding(n_neighbors=8),
        manifast.Isomap(n_neighbors=8),
        manifast.LTSA(n_neighbors=8),
        manifast.LGRM(n_neighbors=8, sigma=10.0),
    ]
    figure = plt.figure(figsize=(14, 2.9), layout="constrained")
    axes = figure.add_subplot(1, 6, 1, projection="3d")
    axes.scatter(*X.T, c="0.8", s=2)
    axes.scatter(*new.T, c=new_truth[:, 0], s=4)
    axes.view_init(8, -75)
    axes.set_axis_off()
    axes.set_title("1000 points, and 1000 new", fontsize=10)
    for place, method in enumerate(methods, 2):
        method.fit(X)
        mapped = method.transform(new)
        score = LinearRegression().fit(method.embedding_, truth).score(mapped, new_truth)
        axes = figure.add_subplot(1, 6, place)
        axes.scatter(*method.embedding_.T, c="0.8", s=2)
        axes.scatter(*mapped.T, c=new_truth[:, 0], s=4)
        axes.set_title(f"{type(method).__name__}\nR² on the new: {score:.4f}", fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=80)


if __name__ == "__main__":
    main()
