"""Smoothers (R, f): a penalty R or a constraint that keeps an embedding predictable from X, and the map f of it.

* `Ridge`, `KernelRidge`: ridge regression, a penalty (LGRM, elastic embedding);
* `Projection`, `KernelProjection`: Y = XW or Y = KV, a constraint (LPP, NPE, LLTSA, LDE, LFDA, SDA, SDE);
* `Gaussian`: Gaussian interpolation, the penalty Ψ^-2 (NSSE).
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from manifast.smoothers.base import Smoother
from manifast.smoothers.gaussian import Gaussian
from manifast.smoothers.projection import KernelProjection, Projection
from manifast.smoothers.ridge import KernelRidge, Ridge

__all__ = ["SMOOTHERS", "Gaussian", "KernelProjection", "KernelRidge", "Projection", "Ridge", "Smoother", "as_smoother"]

SMOOTHERS: dict[str, type[Smoother]] = {
    "ridge": Ridge,
    "kernel_ridge": KernelRidge,
    "projection": Projection,
    "kernel_projection": KernelProjection,
    "gaussian": Gaussian,
}


def as_smoother(value: Any) -> Smoother | None:
    """A fresh smoother from a short name or an instance; None stays None."""
    if value is None:
        return None
    if isinstance(value, str) and value in SMOOTHERS:
        return SMOOTHERS[value]()
    if isinstance(value, Smoother):
        return clone(value)  # type: ignore[no-any-return]
    names = ", ".join(map(repr, SMOOTHERS))
    raise ValueError(
        f"smoother must be None, one of {names}, or an instance of manifast.smoothers. Got {value!r} instead."
    )
