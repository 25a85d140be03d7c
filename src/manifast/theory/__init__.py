"""When does an embedding generalise? Margins, Lipschitz constants, the condition parameter and the bounds of THEORY.

THEORY is Vural and Guillemot 2018, NSSE is Örnek and Vural 2018; equation and theorem numbers are theirs. The theorems
ask for a map that is flat enough for the margin between the classes. On real images they rarely apply. Every function
says whether its condition holds and by how much it is missed, and `generalization_report` says it on one page.

    report         one page about a fitted embedding
    verdicts       the theorems on that embedding, at the parameters that serve them best
    fitted_maps    what is known of its map
    bounds         Theorems 2, 5, 6, 8 and 9, as formulas
    margins, balls, gaussian_maps    what these formulas are fed with, measured on rows, labels and coefficients
    separability   Theorems 14 and 16 and Corollary 15: what class graphs guarantee before anything is embedded

Modules import those below them only. The Lipschitz constants themselves are in `manifast._lipschitz`.
"""

from manifast._lipschitz import LipschitzConstants, linear_lipschitz, rbf_lipschitz
from manifast.theory.balls import ball_probability, within_diameter
from manifast.theory.bounds import (
    Bound,
    covering_bound,
    linear_bound,
    nearest_neighbor_bound,
    rbf_linear_bound,
    rbf_nearest_neighbor_bound,
)
from manifast.theory.gaussian_maps import coefficient_bound, condition_parameter, optimal_sigma
from manifast.theory.margins import q_mean_margin, separation_margin
from manifast.theory.report import GeneralizationReport, generalization_report
from manifast.theory.separability import (
    CategoryConditions,
    SeparationBound,
    category_conditions,
    origin_distance_bound,
    two_class_margin_bound,
)
from manifast.theory.verdicts import Verdict

__all__ = [
    "Bound",
    "CategoryConditions",
    "GeneralizationReport",
    "LipschitzConstants",
    "SeparationBound",
    "Verdict",
    "ball_probability",
    "category_conditions",
    "coefficient_bound",
    "condition_parameter",
    "covering_bound",
    "generalization_report",
    "linear_bound",
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
