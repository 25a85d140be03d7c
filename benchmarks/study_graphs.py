"""Which width of the heat weights, and how many neighbours: the study behind `beta="local"`.

    python benchmarks/study_graphs.py [--sets orl coil20 yaleb digits mnist10k rolls frey] [--seeds 3] [--first 1000]
                                      [--rules mean "local 1/4" ...] [--keep]

For every set, rule and number of neighbours it prints, and with --keep puts into benchmarks/results/graphs.json for the
documentation (benchmarks/tables.py),
* the error in % on unlabelled rows of GFHF, LGC, LGC with alpha = 0.5 and RMGT, with 1 and 3 labels per class;
* the 1-NN error in % of new rows in 20 dimensions of Laplacian eigenmaps, by the Nyström formula, the mean of the
  neighbours, RBF, kernel ridge, linear and barycentric maps;
* for rolls the R² of the chart (angle from 2 dimensions, angle and height from 10) of new rows;
* for frey, which has no labels, the share of the 10 nearest new rows' neighbours that stay neighbours;
* the connected components of the graph.

Rules: "mean" is one width, the mean squared distance of all pairs; "b" and "b/4" one width, the mean squared distance
to the 5 nearest, and a quarter of it; "local c" one width per row, exp(-d² / (c s_i s_j)) with s_i² that of row i.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_s_curve, make_swiss_roll

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.results import FOLDER, keep
from benchmarks.sets import read, split
from manifast import GFHF, LGC, RMGT, LaplacianEigenmaps
from manifast.extensions import RBF, KernelRidge, Linear, Reconstruction
from manifast.graphs import connect_components
from manifast.kernels import knn, neighbor_graph

RULES = ("mean", "b", "b/4", "local 1", "local 1/2", "local 1/4", "local 1/8")
NEIGHBORS = (5, 8, 10, 15)
MODELS: dict[str, Callable[[Any], Any]] = {
    "GFHF": lambda W: GFHF(graph=W),
    "LGC": lambda W: LGC(graph=W),
    "LGC .5": lambda W: LGC(graph=W, alpha=0.5),
    "RMGT": lambda W: RMGT(graph=W),
}
MAPS = (RBF, KernelRidge, Linear, Reconstruction)
PER_CLASS = {"orl": 5, "coil20": 10, "yaleb": 20, "digits": 50, "mnist10k": 100}


class Graph:
    """A rule and a number of neighbours on training rows: weights among them, and of new rows to them."""

    def __init__(self, X: np.ndarray, k: int, rule: str) -> None:
        self.X, self.k = X, k
        distances, self.indices = knn(X, max(k, 5))
        squares = np.square(distances[:, :5]).mean(axis=1)
        self.local = rule.startswith("local")
        share = rule.split()[-1].removeprefix("b") if self.local else rule.removeprefix("b")
        above, _, below = share.partition("/")
        factor = float(above or 1) / float(below or 1) if rule != "mean" else 1.0
        self.beta = factor * (1.0 if self.local else squares.mean() if rule != "mean" else 2 * X.var(axis=0).sum())
        self.scales = np.sqrt(np.maximum(squares, 1e-6 * squares.mean()))
        scaled = distances / np.sqrt(self.scales[:, None] * self.scales[self.indices]) if self.local else distances
        W = neighbor_graph(scaled[:, :k], self.indices[:, :k], beta=self.beta)
        self.parts = int(connected_components(W)[0])
        self.W = connect_components(W, X, beta=float(squares.mean()))

    def of_new(self, new: np.ndarray) -> sp.csr_array:
        """Weights relative to the nearest, which the maps divide out."""
        distances, found = knn(self.X, max(self.k, 5), queries=new)
        squares = np.square(distances)
        if self.local:
            squares = squares / (np.sqrt(squares[:, :5].mean(axis=1))[:, None] * self.scales[found])
        squares = squares[:, : self.k]
        weights = np.exp(-(squares - squares.min(axis=1, keepdims=True)) / self.beta)
        rows = np.repeat(np.arange(len(new)), self.k)
        return sp.csr_array((weights.ravel(), (rows, found[:, : self.k].ravel())), shape=(len(new), len(self.X)))


Row = tuple[str, int, dict[str, float]]  # rule, neighbours, and what was found, the last the connected components


def unlabelled_errors(name: str, seeds: range, rules: Sequence[str]) -> Iterator[Row]:
    X, y = read(name)
    if len(X) > 2500:
        keep = np.random.default_rng(seeds[0]).permutation(len(X))[:2500]
        X, y = X[keep], y[keep]
    for k in NEIGHBORS:
        for rule in rules:
            graph = Graph(X, k, rule)
            found = {}
            for count in (1, 3):
                for model, make in MODELS.items():
                    errors = []
                    for seed in seeds:
                        known, others = split(y, count, seed)
                        some = np.full(len(y), -1)
                        some[known] = y[known]
                        errors.append(np.mean(make(graph.W).fit(X, some).transduction_[others] != y[others]))
                    found[f"{model}, {count} label{'s' * (count > 1)}"] = 100 * float(np.mean(errors))
            yield rule, k, {**found, "components": graph.parts}


def nearest_errors(name: str, seeds: range, rules: Sequence[str]) -> Iterator[Row]:
    X, y = read(name)
    names = [f"1-NN, {kind}" for kind in ("Nyström", "mean", *(made.__name__ for made in MAPS))]
    for k in NEIGHBORS:
        for rule in rules:
            found, parts = [], []
            for seed in seeds:
                train, new = split(y, PER_CLASS[name], seed)
                new = np.random.default_rng(seed).permutation(new)[:2000]
                graph = Graph(X[train], k, rule)
                model = LaplacianEigenmaps(20, affinity="precomputed").fit(graph.W)
                Y, links = model.embedding_, graph.of_new(X[new])
                mapped = [model.transform(links), links @ Y / links.sum(axis=1)[:, None]]
                mapped += [kind().fit(X[train], Y).predict(X[new]) for kind in MAPS]
                nearest = (knn(Y, 1, queries=np.ascontiguousarray(Z))[1][:, 0] for Z in mapped)
                found.append([100 * np.mean(y[train][near] != y[new]) for near in nearest])
                parts.append(graph.parts)
            yield rule, k, averaged(names, found, parts)


def averaged(names: Sequence[str], found: list[Any], parts: list[int]) -> dict[str, float]:
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True)) | {"components": float(np.mean(parts))}


def charts(seeds: range, rules: Sequence[str]) -> Iterator[Row]:
    measures = "R², angle by 2", "R², angle by 10", "R², height by 10"
    names = [f"{surface} {measure}" for surface in ("Swiss roll", "S curve") for measure in measures]
    for k in NEIGHBORS[1:]:
        for rule in rules:
            found, parts = [], []
            for seed in seeds:
                row = []
                for make in (make_swiss_roll, make_s_curve):
                    X, t = make(1300, random_state=seed)
                    chart = np.column_stack([t, X[:, 1]])
                    graph = Graph(X[:1000], k, rule)
                    model = LaplacianEigenmaps(10, affinity="precomputed").fit(graph.W)
                    mapped = model.transform(graph.of_new(X[1000:]))
                    row += [explained(model.embedding_[:, :2], mapped[:, :2], chart)[0]]
                    row += list(explained(model.embedding_, mapped, chart))
                    parts.append(graph.parts)
                found.append(row)
            yield rule, k, averaged(names, found, parts)


def explained(Y: np.ndarray, mapped: np.ndarray, chart: np.ndarray) -> np.ndarray:
    """R² of new rows' charts from a linear regression on the embedding of the training rows."""
    coef = np.linalg.lstsq(np.column_stack([Y, np.ones(len(Y))]), chart[: len(Y)], rcond=None)[0]
    found, truth = np.column_stack([mapped, np.ones(len(mapped))]) @ coef, chart[len(Y) :]
    return 1 - np.square(found - truth).sum(axis=0) / np.square(truth - truth.mean(axis=0)).sum(axis=0)


def preserved(seeds: range, rules: Sequence[str]) -> Iterator[Row]:
    """The share of the 10 nearest training rows of new ones that are the nearest in 5 dimensions, too."""
    X, _ = read("frey")
    for k in NEIGHBORS:
        for rule in rules:
            found, parts = [], []
            for seed in seeds:
                order = np.random.default_rng(seed).permutation(len(X))
                train, new = order[:1000], order[1000:]
                graph = Graph(X[train], k, rule)
                model = LaplacianEigenmaps(5, affinity="precomputed").fit(graph.W)
                before = knn(X[train], 10, queries=X[new])[1]
                mapped = np.ascontiguousarray(model.transform(graph.of_new(X[new])))
                after = knn(model.embedding_, 10, queries=mapped)[1]
                found.append([np.mean([len(set(a) & set(b)) for a, b in zip(before, after, strict=True)]) / 10])
                parts.append(graph.parts)
            yield rule, k, averaged(["neighbours kept"], found, parts)


def main() -> None:
    parser = argparse.ArgumentParser(description="Widths of heat weights and numbers of neighbours.")
    parser.add_argument("--sets", nargs="+", default=[*PER_CLASS, "rolls", "frey"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=1000, help="the first seed; below 1000 nothing was chosen")
    parser.add_argument("--rules", nargs="+", default=RULES)
    parser.add_argument("--keep", action="store_true", help="put the rows into benchmarks/results/graphs.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.first, options.first + options.seeds)
    for name in options.sets:
        rest = seeds, options.rules
        tables = {"rolls": [charts(*rest)], "frey": [preserved(*rest)]}.get(name)
        for table in tables or [unlabelled_errors(name, *rest), nearest_errors(name, *rest)]:
            print(f"\n{name}")
            rows = []
            for rule, k, found in table:
                shown = ", ".join(f"{measure} {value:.3g}" for measure, value in found.items())
                print(f"{rule:9s} {k:2d}: {shown}", flush=True)
                common = {"set": name, "rule": rule, "n_neighbors": k, "splits": len(seeds)}
                rows += [{**common, "measure": measure, "value": round(value, 4)} for measure, value in found.items()]
            if options.keep:
                keep(FOLDER / "graphs.json", ("set", "rule", "n_neighbors", "measure"), rows)


if __name__ == "__main__":
    main()
