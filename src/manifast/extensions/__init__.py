"""Maps for new points, f alone: fitted to rows X and any finished embedding Y of them.

Each has `fit(X, Y)` and `predict(X_new)`. A row's prediction has the same bits in any batch and on any number of
threads; predicting changes nothing. What is fitted is a map of `manifast.maps`, the attribute `map_`.
"""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.base import clone

from manifast._linalg.copies import unique_rows
from manifast._validation import Array
from manifast.extensions.base import Extension, Learner
from manifast.extensions.gaussian import (
    RBF,
    choose_by_loo,
    interpolate,
    loo_residuals,
    merge_copies,
    rbf_candidates,
    spread,
)
from manifast.extensions.geodesic import LandmarkIsomap, check_reach, mean_squares, natural_triangulation, reach_graph
from manifast.extensions.linear import KernelRidge, Linear
from manifast.extensions.neighbors import (
    LatentVariable,
    Nystrom,
    Reconstruction,
    finite_factors,
    natural_mean,
    natural_nystrom,
    out_of_kernel,
    out_of_reach,
    refuse_out_of_reach,
)
from manifast.extensions.sparse_code import SparseCode, representatives

__all__ = [
    "EXTENSIONS",
    "RBF",
    "Extension",
    "KernelRidge",
    "LandmarkIsomap",
    "LatentVariable",
    "Linear",
    "Nystrom",
    "Reconstruction",
    "SparseCode",
    "as_extension",
    "check_reach",
    "check_rows",
    "choose_by_loo",
    "extensions_for",
    "finite_factors",
    "fit_owned",
    "interpolate",
    "loo_residuals",
    "mean_squares",
    "merge_copies",
    "natural_mean",
    "natural_nystrom",
    "natural_triangulation",
    "out_of_kernel",
    "out_of_reach",
    "rbf_candidates",
    "reach_graph",
    "refuse_out_of_reach",
    "representatives",
    "spread",
    "unique_rows",
]

Kind = TypeVar("Kind", bound="Learner")

EXTENSIONS: dict[str, type[Extension]] = {
    "rbf": RBF,
    "kernel_ridge": KernelRidge,
    "linear": Linear,
    "lvm": LatentVariable,
    "nystrom": Nystrom,
    "reconstruction": Reconstruction,
    "landmark_isomap": LandmarkIsomap,
    "sparse": SparseCode,
}


def extensions_for(metric: str) -> list[str]:
    """Names of the extensions that measure by a metric."""
    return [name for name, kind in EXTENSIONS.items() if metric in kind._metrics]


def fit_owned(extension: Kind, X: Any, Y: Array) -> Kind:
    """`extension.fit(X, Y)` for rows that a model owns: an extension of this module keeps them without a copy."""
    if isinstance(extension, Extension):
        return extension._learn_rows(*extension._check(X, Y))
    fitted: Kind = extension.fit(X, Y)
    return fitted


def as_extension(value: Any, metric: Any = None, *, optional: bool = True) -> Extension:
    """A fresh, unfitted extension from a short name or an instance; a name takes a metric where its map has that."""
    if isinstance(value, str) and value in EXTENSIONS:
        kind = EXTENSIONS[value]
        return kind(metric=metric) if metric in kind._metrics else kind()
    if hasattr(value, "fit") and hasattr(value, "predict") and not isinstance(value, type):
        made: Extension = clone(value)
        return made
    known = ("None, " if optional else "") + "one of " + ", ".join(map(repr, EXTENSIONS))
    raise ValueError(f"extension must be {known}, or an instance with fit and predict. Got {value!r} instead.")


def check_rows(extension: Any, n: int) -> None:
    """Refuse more rows than one of our maps can be fitted to; others know for themselves."""
    if isinstance(extension, Extension):
        extension._check_rows(n)
