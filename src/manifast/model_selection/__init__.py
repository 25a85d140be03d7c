"""Model selection: folds, scores and pipelines where only some rows have a label, and comparison of methods.

    labelled     LabeledSplit, labeled_scorer, LabeledRows: rows without a label kept from where they do not belong
    comparison   compare: one table of methods on the user's own data
"""

from manifast.model_selection.comparison import Comparison, MethodResult, compare, default_methods
from manifast.model_selection.labelled import LabeledRows, LabeledSplit, labeled_scorer

__all__ = [
    "Comparison",
    "LabeledRows",
    "LabeledSplit",
    "MethodResult",
    "compare",
    "default_methods",
    "labeled_scorer",
]
