"""Values for parameters by name: mostly legal ones, and now and then what nobody should pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.fuzz.arrays import Draw, graph, lists

ILLEGAL: tuple[Any, ...] = (
    -1, 0, 1.5, -0.0, 10**9, 2**63, 10**400, float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, "nonsense", "",
    b"2", True, None, (), [], [1, "a"], {}, 1j, np.float32(2), np.int8(3), np.array([1.0, 2.0]), np.array(2), object(), len,  # noqa: E501
)  # fmt: skip

Drawn = Callable[[Draw], Any]


def choice(*options: Any) -> Drawn:
    return lambda draw: draw.pick(*options)


def small(draw: Draw) -> int:
    """A count that fits into few rows, mostly."""
    return int(draw.rng.integers(1, max(min(draw.n, 12), 2) + draw.pick(0, 0, 0, 3)))


def wide(draw: Draw) -> float:
    """A positive number of any size, mostly near 1."""
    if draw.chance(0.1):
        return float(10.0 ** draw.rng.uniform(-300, 300))
    return float(10.0 ** draw.rng.uniform(-6, 6))


def grid(draw: Draw) -> Any:
    return [wide(draw) for _ in range(draw.rng.integers(1, 4))]


def either(*drawn: Drawn) -> Drawn:
    return lambda draw: drawn[draw.rng.integers(len(drawn))](draw)


def _neighbors(draw: Draw) -> Any:
    if draw.chance(0.7):
        return None
    return lists(draw, draw.n, int(draw.rng.integers(1, 12)))


def _graph_or_name(draw: Draw) -> Any:
    return draw.pick("heat", "binary", "full", "l1") if draw.chance(0.8) else graph(draw, draw.n)


flag = choice(True, False)
none = choice(None)
extension = choice(None, None, "rbf", "kernel_ridge", "linear", "nystrom", "sparse", "lvm", "reconstruction",
                   "landmark_isomap", "ols")  # fmt: skip
POOLS: dict[str, Drawn] = {
    "X_new": none, "Y_new": none,
    "affinity": choice("heat", "binary", "full", "l1", "local", "precomputed"),
    "algorithm": choice("auto", "brute", "tree", "clusters"),
    "alpha": either(choice(0.0, 0.5, 0.99, 1.0), wide),
    "basis": none, "weights": choice("heat", "binary", "distance"),
    "beta": either(choice("mean", "local"), wide),
    "class_mass": flag, "coef0": either(choice(0.0, 1.0), wide), "connect": flag,
    "constraint": choice("degree", "identity"),
    "cv": choice(2, 3), "degree": choice(1, 2, 3, 7), "dictionary_method": choice("kmeans", "ksvd", "random"),
    "dictionary_size": either(none, small), "diffusion_time": either(choice(0.0, 1.0, 2.5), wide),
    "eps": wide, "errors": flag, "extension": extension, "fit_intercept": flag,
    "formula": choice("auto", "degree", "sum", "eigenvalue"),
    "gamma": wide, "gamma_A": wide, "gamma_I": either(choice(0.0), wide), "gamma_local": either(none, wide),
    "graph": _graph_or_name, "kernel": choice(None, "rbf", "linear", "polynomial", "poly"),
    "kind": choice("linear", "distance", "measured", "bound"), "label_weight": wide, "lam": either(choice(0.0), wide),
    "landmark_method": choice("random", "farthest", "kmeans"), "landmarks": either(none, choice(0.5), small),
    "local": choice("regression", "le", "lle", "ltsa", "isomap"), "local_dim": either(none, small),
    "max_iter": choice(1, 3, 20), "method": choice("standard", "modified", "hessian", "ltsa", "auto", "dense"),
    "metric": choice("euclidean", "euclidean", "cosine", "precomputed", "within", "auto"),
    "mode": choice("union", "mutual"), "mu": either(choice(0.0), wide), "mu1": wide, "mu2": wide, "mu3": wide,
    "n_components": either(choice(1, 2, None), small), "n_landmarks": either(none, small), "n_neighbors": small,
    "n_neighbors_between": either(none, small), "n_neighbors_within": either(none, small),
    "n_repeats": choice(1), "n_rounds": choice(1), "n_splits": choice(2), "n_threads": choice(None, 1, 2, 3),
    "neighbors": _neighbors, "normalization": choice(None, "sym", "rw"), "normalize": flag, "normalized": flag,
    "null": none, "objective": choice("laplacian", "lle", "modified_lle", "hessian", "ltsa", "local_regression",
                                      "isomap", "diffusion", "mds", "supervised", "fisher", "margin", "lde", "lfda"),
    "power": choice(0.5, 1, 2), "prior": none, "projection": either(none, small), "radius": wide,
    "random_state": choice(0, 1, 7), "recall": choice(0.5, 0.95, 1.0), "reg": wide,
    "n": either(none, small), "unseen": flag, "queries": none, "separation": either(choice(0.0), wide),
    "regularization": choice("ridge", "pinv"),
    "relative": flag, "ridge": either(choice(0.0, 0.1), wide), "scale": either(flag, wide), "share": choice(0.05, 0.5, 1.0),  # noqa: E501
    "sigma": either(none, wide), "sigma_grid": either(none, grid), "sigma_init": either(none, wide),
    "smoother": choice(None, None, "ridge", "kernel_ridge", "projection", "kernel_projection", "gaussian"),
    "squared": flag, "target": choice("transform", "classify"), "tol": wide, "top": either(none, small),
    "validation_size": choice(0.3, 0.5), "mmap": flag, "bias": flag,
    "weight": either(choice(0.0), wide), "width_weight": wide, "verbose": choice(False), "check": choice(True),
}  # fmt: skip
# The grids of searches over parameters: short ones, or a call takes minutes.
SHORT = {"lam", "mu", "gamma", "mu1", "mu2", "mu3", "sigma"}


def parameters(
    draw: Draw, names: Any, share: float = 0.35, *, illegal: float = 0.04, grids: bool = False
) -> dict[str, Any]:
    """Values for some of the named parameters."""
    chosen = {}
    for name in names:
        if grids and name in SHORT:
            chosen[name] = grid(draw)[:2]
        elif name in ("cv", "n_repeats", "n_rounds", "n_splits") or draw.chance(share):
            chosen[name] = POOLS[name](draw)
        if name in chosen and draw.chance(illegal):
            chosen[name] = draw.pick(*ILLEGAL)
    return chosen
