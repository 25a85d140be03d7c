"""The table of entries: how often each public name is called, and by what; and the names that are not called.

An entry's call draws its arguments, calls the library through `Trial.run` and judges the result. The weights are chosen
so that most calls are cheap; estimators get about a tenth.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz import of_kernels
from tests.fuzz.of_functions import FUNCTIONS
from tests.fuzz.of_models import MODELS
from tests.fuzz.of_plots import PLOTS
from tests.fuzz.trial import Trial

ENTRIES: dict[str, tuple[float, Callable[[Trial], None]]] = {
    "kernels.sq_distances": (12, of_kernels.sq_distances),
    "kernels.gaussian": (12, of_kernels.gaussian),
    "kernels.rbf_apply": (12, of_kernels.rbf_apply),
    "kernels.knn": (12, of_kernels.knn),
    "kernels.approximate_knn": (4, of_kernels.approximate_knn),
    "kernels.l1_code": (8, of_kernels.l1_code),
    "kernels.neighbor_graph": (10, of_kernels.neighbor_graph),
    "kernels.laplacian": (10, of_kernels.laplacian),
    **FUNCTIONS,
    **MODELS,
    **PLOTS,
}

# Packages without which a call is refused, or not made.
NEEDS = {"persistence.to_onnx": "onnx"} | {name: "matplotlib" for name in PLOTS if name.startswith("plotting.")}

# Public names without an entry of their own, and why.
WITHOUT = {
    "bases of classes": ("extensions.Extension", "objectives.ObjectiveBuilder", "smoothers.Smoother"),
    "what calls return": (
        "theory.Bound", "theory.SeparationBound", "theory.CategoryConditions", "theory.LipschitzConstants",
        "theory.Verdict", "theory.GeneralizationReport", "theory.CoveringVerdict", "theory.InverseGrowth",
        "theory.LinearClassifier", "model_selection.Comparison", "model_selection.MethodResult",
        "datasets.ImageSet", "persistence.NotStored",
    ),
    "called by model_selection.compare and LabeledRows": (
        "model_selection.default_methods", "model_selection.labeled_scorer",
    ),
    "no data in": ("show_config", "expected_failed_checks"),
}  # fmt: skip
