"""The accuracy tables of SPARSE on faces: new images through a full-graph embedding, four maps, 1-NN.

    python benchmarks/faces.py [--splits 10] [--sets orl yaleb]

Random orthonormal projection to 200 axes, unit rows, Laplacian eigenmaps on the full heat graph of the training rows,
1-NN among their embeddings; the best dimension on the mean curve over random splits, as in the paper.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.linalg as la

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from manifast import LaplacianEigenmaps
from manifast.extensions import RBF, LatentVariable, Linear, SparseCode
from manifast.graphs import mean_sq_distance
from manifast.kernels import knn

SHARES = (0.3, 0.5, 0.7)
MAPS = {
    "sparse": lambda X: SparseCode(),
    "sparse, a²": lambda X: SparseCode(power=2),
    "sparse, 100 nearest": lambda X: SparseCode(dictionary_size=100, dictionary_method="nearest"),
    "sparse, 100 by k-means": lambda X: SparseCode(dictionary_size=100),
    "LVM 3": lambda X: LatentVariable(3),
    "linear": lambda X: Linear(),
    "RBF": lambda X: RBF(np.sqrt(mean_sq_distance(X))),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    folder = Path(os.environ.get("MANIFAST_DATA") or Path(__file__).parents[2] / "shared" / "data")
    data = np.load(folder / f"{name}.npz")
    X, y = data["images"].reshape(len(data["images"]), -1) / 255.0, data["labels"]
    if name == "yaleb":
        X, y = X[(y >= 10) & (y <= 37)], y[(y >= 10) & (y <= 37)]
    return X, y


def accuracies(X: np.ndarray, y: np.ndarray, share: float, seed: int) -> dict[str, dict[int, float]]:
    """Accuracy by map and dimension for one split."""
    rng = np.random.default_rng(seed)
    axes = la.qr(rng.standard_normal((X.shape[1], 200)), mode="economic")[0]
    X = X @ axes
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    order = rng.permutation(len(X))
    n = round(share * len(X))
    train, new = order[:n], order[n:]
    Y = LaplacianEigenmaps(n - 2, affinity="full").fit(X[train]).embedding_
    dimensions = [d for d in (10, 20, 50, *range(100, n - 2, 100)) if d < n - 2] + [n - 2]
    found: dict[str, dict[int, float]] = {}
    for name, make in MAPS.items():
        mapped = make(X[train]).fit(X[train], Y).predict(X[new])
        found[name] = {}
        for d in dimensions:
            # Columns are Z with Z'DZ = I; the paper compares them as they are.
            nearest = knn(np.ascontiguousarray(Y[:, :d]), 1, queries=np.ascontiguousarray(mapped[:, :d]))[1][:, 0]
            found[name][d] = 100 * float(np.mean(y[train][nearest] == y[new]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy tables of SPARSE on faces.")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sets", nargs="+", default=["orl", "yaleb"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for name in options.sets:
        X, y = load(name)
        for share in SHARES:
            runs = [accuracies(X, y, share, seed) for seed in range(options.splits)]
            best = []
            for kind in MAPS:
                curve = {d: np.mean([run[kind][d] for run in runs]) for d in runs[0][kind]}
                d = max(curve, key=curve.__getitem__)
                best.append(f"{kind} {curve[d]:.1f} (d = {d})")
            print(f"{name}, {share:.0%} training: {', '.join(best)}", flush=True)


if __name__ == "__main__":
    main()
