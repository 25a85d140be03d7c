"""SEE's face table on Extended Yale: accuracy of unlabelled and of new faces from a few labels per person.

    python benchmarks/semisupervised.py [--splits 10] [--labels 3] [--options] [--kernel]

Labels 10 to 37, half of the images for training, PCA of 98 % fitted on them, pixels / 255, 10-NN heat graph. Embeddings
are classified by the nearest labelled row (best dimension), FME by its largest score. Every weight is chosen from the
paper's grid in two ways: the best mean over the splits on the test images, as in the paper, and by hiding labels.
--options scales rows to unit length before and after a whitened PCA and takes 5 neighbours.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.faces import load
from manifast import SDA, ElasticEmbedding, ElasticEmbeddingCV
from manifast._linalg.systems import PenalizedSystem
from manifast.embeddings.elastic import GRID
from manifast.graphs import knn_graph
from manifast.kernels import laplacian
from manifast.smoothers.ridge import LinearRidgeSmoother

Curves = tuple[Any, Any, Any]  # accuracies by dimension: unlabelled rows, new rows, unlabelled rows as if they were new


class Split:
    """One random half of the faces, some of them with labels."""

    def __init__(self, X: Any, y: Any, labels: int, seed: int, options: bool) -> None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(X))
        train, new = np.sort(order[: len(X) // 2]), order[len(X) // 2 :]
        steps = (Normalizer(), PCA(0.98, whiten=True), Normalizer()) if options else (PCA(0.98),)
        pipeline = make_pipeline(*steps).fit(X[train])
        self.X, self.new = (pipeline.transform(X[rows]) for rows in (train, new))
        self.y, self.y_new = y[train], y[new]
        chosen = [rng.permutation(np.flatnonzero(self.y == c))[:labels] for c in np.unique(y)]
        self.labelled = np.sort(np.concatenate(chosen))
        self.some = np.full(len(train), -1)
        self.some[self.labelled] = self.y[self.labelled]
        self.k = 5 if options else 10
        W = knn_graph(self.X, self.k)
        self.L = laplacian(W)[0]
        self.graph = W

    def hidden(self) -> list[tuple[Any, Any]]:
        """Labels with a part hidden, and the rows hidden, as ElasticEmbeddingCV splits them."""
        known = self.y[self.labelled]
        parts = RepeatedStratifiedKFold(n_splits=min(5, np.bincount(known)[10:].min()), n_repeats=5, random_state=0)
        found = []
        for _, away in parts.split(known, known):
            some = self.some.copy()
            some[self.labelled[away]] = -1
            found.append((some, self.labelled[away]))
        return found


def nearest(gallery: Any, codes: Any, queries: Any, truth: Any) -> Any:
    """1-NN accuracy by dimension."""
    distances, curve = np.zeros((len(queries), len(gallery))), []
    for d in range(gallery.shape[1]):
        distances += np.subtract.outer(queries[:, d], gallery[:, d]) ** 2
        curve.append(100 * np.mean(codes[np.argmin(distances, axis=1)] == truth))
    return np.array(curve)


def judged(model: Any, split: Split, some: Any, rows: Any) -> Curves:
    """Accuracies by dimension of a fitted embedding: some training rows by `embedding_`, new rows by `transform`."""
    known = np.flatnonzero(some != -1)
    gallery, codes = model.embedding_[known], split.y[known]
    return (
        nearest(gallery, codes, model.embedding_[rows], split.y[rows]),
        nearest(gallery, codes, model.transform(split.new), split.y_new),
        nearest(gallery, codes, model.transform(split.X[rows]), split.y[rows]),
    )


def elastic(split: Split, some: Any, rows: Any, weights: Any) -> Curves:
    lam, mu, gamma = weights
    model = ElasticEmbedding(lam=lam, mu=mu, gamma=gamma, graph=split.graph)
    return judged(model.fit(split.X, some), split, some, rows)


def sda(split: Split, some: Any, rows: Any, weights: Any) -> Curves:
    alpha, beta = weights
    return judged(SDA(alpha=alpha, ridge=beta, graph=split.graph).fit(split.X, some), split, some, rows)


def fme(split: Split, some: Any, rows: Any, weights: Any) -> Curves:
    """(U + L + R) F = U Y, then the regression of F."""
    mu, gamma = weights
    classes, codes = np.unique(split.y, return_inverse=True)
    U = np.where(some != -1, 1e9, 0.0)
    smoother = LinearRidgeSmoother(split.X, 1 / gamma)
    system = PenalizedSystem(sp.csr_array(split.L + sp.diags_array(U)), smoother.penalty(mu * gamma))
    F = system.solve(U[:, None] * (codes[:, None] == np.arange(len(classes))))
    coef, intercept = smoother.fit(F)
    scores = (F[rows], split.new @ coef + intercept, split.X[rows] @ coef + intercept)
    truths = (split.y[rows], split.y_new, split.y[rows])
    right = [classes[part.argmax(axis=1)] == truth for part, truth in zip(scores, truths, strict=True)]
    return tuple(np.array([100 * part.mean()]) for part in right)


METHODS = {"elastic": (elastic, 3), "FME": (fme, 2), "SDA": (sda, 2)}


def best_on_test(method: Any, splits: list[Split], count: int) -> tuple[float, float, Any]:
    """The best mean curves over the splits, of unlabelled and of new rows, each at its own weights and dimension."""
    best: list[Any] = [(0.0, None), (0.0, None)]
    for weights in product(GRID, repeat=count):
        runs = [method(split, split.some, np.flatnonzero(split.some == -1), weights) for split in splits]
        for part in (0, 1):
            length = min(len(run[part]) for run in runs)
            curve = np.mean([run[part][:length] for run in runs], axis=0)
            best[part] = max(best[part], (curve.max(), (*weights, int(curve.argmax()) + 1)), key=lambda pair: pair[0])
    return best[0][0], best[1][0], best[1][1]


def by_validation(name: str, splits: list[Split], kernel: str | None = None) -> tuple[float, float]:
    """Mean accuracies with weights and dimension chosen on hidden labels of each split alone, for each of the two."""
    found = np.zeros((len(splits), 2))
    for at, split in enumerate(splits):
        rows = np.flatnonzero(split.some == -1)
        if name == "elastic":
            for part, target in enumerate(("embedding", "transform")):
                search = ElasticEmbeddingCV(kernel=kernel, target=target, graph=split.graph).fit(split.X, split.some)
                found[at, part] = judged(search, split, split.some, rows)[part][-1]
            continue
        method, count = METHODS[name]
        grid = list(product(GRID, repeat=count))
        hidden = [[method(split, some, away, weights) for some, away in split.hidden()] for weights in grid]
        for part, seen in enumerate((0, 2)):
            curves = np.array([np.mean([run[seen] for run in runs], axis=0) for runs in hidden])
            chosen, d = np.unravel_index(curves.argmax(), curves.shape)
            found[at, part] = method(split, split.some, rows, grid[chosen])[part][d]
    return float(found[:, 0].mean()), float(found[:, 1].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="SEE's accuracies on Extended Yale.")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--options", action="store_true", help="unit rows, whitened PCA, 5 neighbours")
    parser.add_argument("--kernel", action="store_true", help="also the Gaussian kernel, by validation only")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    X, y = load("yaleb")
    splits = [Split(X, y, chosen.labels, seed, chosen.options) for seed in range(chosen.splits)]
    print(f"{len(splits)} splits, {chosen.labels} labels per person, unlabelled / new faces", flush=True)
    for name in METHODS:
        u, t = by_validation(name, splits)
        print(f"{name}, by validation: {u:.1f} / {t:.1f}", flush=True)
        u, t, weights = best_on_test(METHODS[name][0], splits, METHODS[name][1])
        print(f"{name}, best on test: {u:.1f} / {t:.1f} at {weights}", flush=True)
    if chosen.kernel:
        u, t = by_validation("elastic", splits, "rbf")
        print(f"elastic, Gaussian kernel, by validation: {u:.1f} / {t:.1f}", flush=True)


if __name__ == "__main__":
    main()
