"""When does an embedding generalise? Margins, Lipschitz constants, the condition parameter and the bounds of THEORY.

THEORY is Vural and Guillemot 2018, NSSE is Örnek and Vural 2018; equation and theorem numbers are theirs. The theorems
ask for a map that is flat enough for the margin between the classes. On real images they rarely apply. Every function
says whether its condition holds and by how much it is missed, and `generalization_report` says it on one page.

    report         one page about a fitted embedding
    verdicts       the theorems on that embedding, at the parameters that serve them best
    fitted_maps    what is known of its map
    bounds         Theorems 2, 5, 6, 8 and 9, as formulas
    classifier     the linear classifier (4) that the theorems speak of
    margins, balls, gaussian_maps    what these formulas are fed with, measured on rows, labels and coefficients
    categories     Theorem 16: classes in categories, with its matrices and margin
    separability   Theorem 14 and Corollary 15: what class graphs guarantee before anything is embedded

Modules import those below them only. The Lipschitz constants themselves are in `manifast._lipschitz`.
"""

from manifast._lipschitz import LipschitzConstants, linear_lipschitz, rbf_lipschitz
from manifast.theory.balls import ball_probability, covering_number, within_diameter
from manifast.theory.bounds import (
    Bound,
    covering_bound,
    linear_bound,
    nearest_neighbor_bound,
    rbf_linear_bound,
    rbf_nearest_neighbor_bound,
)
from manifast.theory.categories import CategoryConditions, category_conditions, category_margin, category_objectives
from manifast.theory.classifier import LinearClassifier, linear_classifier
from manifast.theory.gaussian_maps import (
    InverseGrowth,
    coefficient_bound,
    condition_parameter,
    inverse_growth,
    optimal_sigma,
)
from manifast.theory.margins import q_mean_margin, separation_margin
from manifast.theory.report import GeneralizationReport, generalization_report
from manifast.theory.separability import SeparationBound, origin_distance_bound, two_class_margin_bound
from manifast.theory.verdicts import CoveringVerdict, Verdict

__all__ = [
    "Bound",
    "CategoryConditions",
    "CoveringVerdict",
    "GeneralizationReport",
    "InverseGrowth",
    "LinearClassifier",
    "LipschitzConstants",
    "SeparationBound",
    "Verdict",
    "ball_probability",
    "category_conditions",
    "category_margin",
    "category_objectives",
    "coefficient_bound",
    "condition_parameter",
    "covering_bound",
    "covering_number",
    "generalization_report",
    "inverse_growth",
    "linear_bound",
    "linear_classifier",
    "linear_lipschitz",
    "nearest_neighbor_bound",
    "optimal_sigma",
    "origin_distance_bound",
    "q_mean_margin",
    "rbf_linear_bound",
    "rbf_lipschitz",
    "rbf_nearest_neighbor_bound",
    "separation_margin",
    "two_class_margin_bound",
    "within_diameter",
]
