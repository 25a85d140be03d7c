"""The picture of the README: a Swiss roll unrolled by several methods, and points none of them has seen.

python docs/swiss_roll.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.linear_model import LinearRegression

import manifast
from manifast.datasets import make_swiss_roll

HERE = Path(__file__).resolve().parent


def main() -> None:
    X, truth = make_swiss_roll(1500, random_state=0)
    new, new_truth = make_swiss_roll(1500, random_state=1)
    methods = [
        manifast.LaplacianEigenmaps(n_neighbors=10),
        manifast.LocallyLinearEmbedding(n_neighbors=10),
        manifast.Isomap(n_neighbors=10),
        manifast.LTSA(n_neighbors=10),
        manifast.LGRM(n_neighbors=10, sigma=10.0),
    ]
    mapped = [method.fit(X).transform(new) for method in methods]
    # One row of panels for wide windows, two for phones.
    for name, shape, size in (("swiss_roll", (1, 6), (15, 3.0)), ("swiss_roll_narrow", (2, 3), (7.5, 5.6))):
        figure = plt.figure(figsize=size, layout="constrained")
        axes = figure.add_subplot(*shape, 1, projection="3d")
        axes.scatter(*X.T, c="0.82", s=2)
        axes.scatter(*new.T, c=new_truth[:, 0], s=5)
        axes.view_init(8, -75)
        axes.set_axis_off()
        axes.set_box_aspect((1, 1, 1), zoom=1.35)
        axes.set_title("1500 points in grey,\n1500 new ones in colour", fontsize=11)
        for place, (method, found) in enumerate(zip(methods, mapped, strict=True), 2):
            score = LinearRegression().fit(method.embedding_, truth).score(found, new_truth)
            axes = figure.add_subplot(*shape, place)
            axes.scatter(*method.embedding_.T, c="0.82", s=3, linewidths=0)
            axes.scatter(*found.T, c=new_truth[:, 0], s=7, linewidths=0)
            axes.set_title(f"{type(method).__name__}\nR² of the new {score:.3f}", fontsize=11)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_color("0.8")
        figure.savefig(HERE / f"{name}.png", dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    main()
