"""What a smoother is: a penalty or constraint that keeps an embedding predictable from the rows, and its map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sklearn.base import BaseEstimator

from manifast._links import Documented
from manifast._rows import Rows
from manifast._validation import Array
from manifast.maps import Map

if TYPE_CHECKING:
    from manifast.smoothers.gaussian import Interpolation
    from manifast.smoothers.projection import Features


class Penalizing(Protocol):
    """A smoother ready for its rows that adds a penalty to A, and whose regression of Y is the map."""

    def added_to(self, A: Any, *, unit: float, drop_constant: bool) -> Any:
        """A + unit · R; with `drop_constant` R need not vanish on constants, which are left out anyway."""

    def penalty(self, unit: float) -> Any:
        """unit · R, a `RidgePenalty` or an array."""

    def fit(self, Y: Array) -> Map:
        """The map f with f(x_i) ≈ y_i."""


class Smoother(Documented, BaseEstimator, ABC):  # type: ignore[misc]
    """A smoother with its own parameters; a grid search reaches them as `smoother__name`.

    `prepare` is all that a new smoother must define: it gives a `Penalizing` object for these rows, or one of the two
    constraints that the solve knows: `Features`, whose span holds the embedding, or `Interpolation`.
    """

    sparse: ClassVar[bool] = False  # whether rows may be a sparse matrix
    interpolates: ClassVar[bool] = False  # whether the map takes training rows to their embedding

    @abstractmethod
    def prepare(self, rows: Rows) -> Penalizing | Features | Interpolation:
        """The smoother for these rows: what does not depend on the embedding is computed once."""

    def check(self, rows: Rows) -> None:
        """Refuse what can be refused before any work."""

    def columns(self, rows: Rows) -> int | None:
        """Features that a projection may combine; None where the embedding is free."""
        return None

    @property
    def kernel_values(self) -> bool:
        """Whether rows are rows of a kernel matrix."""
        return getattr(self, "kernel", None) == "precomputed"
