"""``python -m manifast demo``: digits embedded, and digits held out that are mapped by several methods."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manifast._validation import Array

TRAINING = 1000


@dataclass(frozen=True)
class Line:
    """One line of the table: errors in %, times in seconds."""

    method: str
    map: str
    error: float
    fit: float
    per_row: float


def demo(output: str) -> list[Line]:
    """Fit on 1000 of scikit-learn's digits, map the other 797, print a table and draw a picture."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    print(f"{TRAINING} digits embedded in 10 dimensions; {len(X) - TRAINING} others mapped, and named by their nearest")
    print(f"\n{'method':<31} {'map for new rows':<24} {'1-NN error':>10} {'fit':>10} {'per new row':>12}")
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the digits fall into components, which are joined
        for name, map_name, model in models(10):
            line = measure(name, map_name, model, X, y)
            lines.append(line)
            times = f"{1e3 * line.fit:>7.1f} ms {1e6 * line.per_row:>9.1f} µs"
            print(f"{line.method:<31} {line.map:<24} {line.error:>8.1f} % {times}", flush=True)
        pixels = nearest_error(X[:TRAINING], y[:TRAINING], X[TRAINING:], y[TRAINING:])
        print(f"{'all 64 pixels':<31} {'':<24} {pixels:>8.1f} %")
        draw(X, y, Path(output))
    return lines


def models(d: int) -> list[tuple[str, str, Any]]:
    """Name of the method, name of the map, and the estimator."""
    from sklearn import manifold

    import manifast
    from manifast.extensions import RBF

    near: dict[str, Any] = {"n_neighbors": 10}
    tsne = manifold.TSNE(2, random_state=0, max_iter=400)  # 1000 take 2.5 times as long for the same error
    made: list[tuple[str, str, Any]] = [
        (f"Laplacian eigenmaps, {label}", map_name, manifast.LaplacianEigenmaps(d, **parameters, extension=extension))
        for label, parameters in (("kNN", near), ("full", {"affinity": "full"}))
        for map_name, extension in (
            ("Nyström", None),
            ("RBF, σ by leave-one-out", RBF("loo", sigma_grid=(0.3, 0.5, 0.8, 1.3, 2.0))),
            ("latent variable", "lvm"),
            ("sparse code", "sparse"),
        )
    ]
    made += [
        ("LLE", "reconstruction", manifast.LocallyLinearEmbedding(d, **near)),
        ("LLE (scikit-learn)", "its own transform", manifold.LocallyLinearEmbedding(n_components=d, **near)),
        ("LTSA", "reconstruction", manifast.LTSA(d, n_neighbors=14)),
        ("Isomap", "geodesics", manifast.Isomap(d, **near)),
        ("Isomap (scikit-learn)", "its own transform", manifold.Isomap(n_components=d, **near)),
        ("LGRM", "its own kernel ridge", manifast.LGRM(d, n_neighbors=14)),
        ("LPP", "its own projection", manifast.LPP(d, **near, alpha=1.0)),
        ("spectral regression", "its own kernel ridge", manifast.SpectralRegression(d, **near, kernel="rbf")),
        ("t-SNE (scikit-learn)", "latent variable", manifast.OutOfSample(tsne)),
    ]
    by_labels: list[tuple[str, str, Any]] = [
        ("supervised eigenmaps", "RBF", manifast.SupervisedLaplacianEigenmaps()),
        ("NSSE", "its own RBF", manifast.NSSE(9)),
        ("LDE", "its own projection", manifast.LDE()),
        ("LFDA", "its own projection", manifast.LFDA()),
        ("supervised Isomap", "kernel ridge", manifast.SupervisedIsomap()),
        ("RBF discriminant", "classifies by itself", manifast.RBFDiscriminant()),
    ]
    return made + [(f"{name}, by labels", map_name, model) for name, map_name, model in by_labels]


def measure(name: str, map_name: str, model: Any, X: Array, y: Array) -> Line:
    """Times are of a first call each, as in a script. Only methods by labels look at y."""
    start = perf_counter()
    # The threads of t-SNE meet in every step: on a busy machine two took 3.5 times the processor time of one.
    with threadpool_limits(1 if "t-SNE" in name else None):
        model.fit(X[:TRAINING], y[:TRAINING])
    fitted = perf_counter()
    found = model.predict(X[TRAINING:]) if hasattr(model, "predict") else model.transform(X[TRAINING:])
    done = perf_counter()
    if hasattr(model, "predict"):
        error = 100.0 * float(np.mean(found != y[TRAINING:]))
    else:
        error = nearest_error(model.embedding_, y[:TRAINING], found, y[TRAINING:])
    return Line(name, map_name, error, fitted - start, (done - fitted) / len(found))


def nearest_error(known: Array, labels: Array, unknown: Array, truth: Array) -> float:
    """Share of rows whose nearest known row has another label, in %."""
    from manifast.kernels import knn

    _, neighbors = knn(known.astype(np.float64), 1, queries=unknown.astype(np.float64))
    return 100.0 * float(np.mean(labels[neighbors[:, 0]] != truth))


def draw(X: Array, y: Array, file: Path) -> None:
    """Training rows and held-out rows in two dimensions, side by side."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("\nno picture: matplotlib is not installed (pip install matplotlib)", file=sys.stderr)
        return
    import manifast

    shown = [
        manifast.LaplacianEigenmaps(n_neighbors=10, affinity="full"),
        manifast.Isomap(n_neighbors=10),
        manifast.LFDA(2),
        manifast.NSSE(2),
    ]
    from manifast.plotting import plot_embedding

    figure = Figure(figsize=(4 * len(shown), 8), layout="constrained")
    axes = figure.subplots(2, len(shown), sharex="col", sharey="col")
    for column, model in enumerate(shown):
        model.fit(X[:TRAINING], y[:TRAINING])
        seen, new = f"{type(model).__name__}: {TRAINING} training digits", f"{len(X) - TRAINING} digits it has not seen"
        plot_embedding(model, y[:TRAINING], names="inside", title=seen, ax=axes[0, column])
        plot_embedding(model.transform(X[TRAINING:]), y[TRAINING:], names="inside", title=new, ax=axes[1, column])
    figure.savefig(file, dpi=100)
    print(f"\npicture: {file}")
