"""Objectives (A, B): which rows belong together and which apart. An embedding minimises tr(Y'AY) with Y'BY = I.

Without labels: `Laplacian`, `Diffusion`, `LLE`, `ModifiedLLE`, `HessianLLE`, `LTSA`, `LocalRegression`, `Isomap` and
`MDS`. By labels: `Supervised`, `Fisher`, `LDE`, `LFDA`. By some labels: `Margin`, `SDA`, `SDE`. Of your own: `Given`,
or a subclass of `ObjectiveBuilder` with a method `build`.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from manifast.objectives.base import Objective, ObjectiveBuilder
from manifast.objectives.classes import Fisher, Supervised
from manifast.objectives.formulas import laplacian_eigenmaps, sample_margins
from manifast.objectives.given import Given
from manifast.objectives.graphs import Diffusion, Laplacian
from manifast.objectives.local import LLE, LTSA, CliqueLLE, HessianLLE, LocalRegression, ModifiedLLE
from manifast.objectives.margin import SDA, SDE, Margin
from manifast.objectives.onehot import OneHot
from manifast.objectives.scaling import MDS, ClassIsomap, Isomap
from manifast.objectives.scatter import LDE, LFDA

__all__ = [
    "LDE",
    "LFDA",
    "LLE",
    "LTSA",
    "MDS",
    "OBJECTIVES",
    "SDA",
    "SDE",
    "ClassIsomap",
    "CliqueLLE",
    "Diffusion",
    "Fisher",
    "Given",
    "HessianLLE",
    "Isomap",
    "Laplacian",
    "LocalRegression",
    "Margin",
    "ModifiedLLE",
    "Objective",
    "ObjectiveBuilder",
    "OneHot",
    "Supervised",
    "as_objective",
    "laplacian_eigenmaps",
    "sample_margins",
]

OBJECTIVES: dict[str, type[ObjectiveBuilder]] = {
    "laplacian": Laplacian,
    "diffusion": Diffusion,
    "lle": LLE,
    "modified_lle": ModifiedLLE,
    "hessian": HessianLLE,
    "ltsa": LTSA,
    "local_regression": LocalRegression,
    "isomap": Isomap,
    "mds": MDS,
    "supervised": Supervised,
    "fisher": Fisher,
    "margin": Margin,
    "lde": LDE,
    "lfda": LFDA,
    "sda": SDA,
    "sde": SDE,
}


def as_objective(value: Any) -> ObjectiveBuilder:
    """A fresh objective from a short name, an instance, a function (X, y) -> Objective, an `Objective` or a matrix."""
    if isinstance(value, str) and value in OBJECTIVES:
        return OBJECTIVES[value]()
    if isinstance(value, ObjectiveBuilder):
        return clone(value)  # type: ignore[no-any-return]
    if isinstance(value, Objective) or callable(value) or hasattr(value, "shape"):
        return Given(value)
    names = ", ".join(map(repr, OBJECTIVES))
    raise ValueError(
        f"objective must be one of {names}, an instance of manifast.objectives, a function (X, y) -> Objective, an "
        f"Objective or a matrix. Got {value!r} instead."
    )
