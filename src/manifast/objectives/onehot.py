"""The labels themselves as an embedding: no eigenproblem."""

from __future__ import annotations

import numpy as np

from manifast._labels import Labels
from manifast._rows import Rows
from manifast._validation import Array
from manifast.objectives.base import Objective, ObjectiveBuilder
from manifast.objectives.classes import contrasts
from manifast.objectives.formulas import within_laplacian
from manifast.spectral import fix_signs


class OneHot(ObjectiveBuilder):
    """Rows at their own labels: column c is 1 for the rows of class c, or the same simplex in fewer dimensions."""

    supervised = True

    def most_components(self, rows: Rows, labels: Labels | None) -> tuple[int, str]:
        assert labels is not None
        return labels.count, "the number of classes"

    def default_components(self, labels: Labels | None) -> int:
        assert labels is not None
        return labels.count

    def build(self, rows: Rows, labels: Labels | None, d: int) -> Objective:
        assert labels is not None

        def modes(d: int) -> tuple[Array, Array]:
            Y = labels.indicators
            if d < labels.count:
                Y = Y @ fix_signs(contrasts(np.ones(labels.count), labels, rows.X)[:, :d])
            return np.zeros(d), Y

        return Objective(lambda: within_laplacian(labels), drop_constant=False, modes=modes)
