"""Classifiers: label propagation, and classifiers of labelled rows.

    transduction   GFHF, LGC, RMGT: scores of the training rows on their graph; an extension serves new rows
    regression     LapRLS, FME: scores on the graph and a linear or kernel map, learnt together
    validated      LapRLSCV, FMECV: the same with their weights chosen by hidden labels
    two_phase      TPTSSR: ridge codes of each new row by the labelled rows
    discriminant   RBFDiscriminant: interpolation of the labels, and a Gaussian rule on its outputs
    base           what they share

In label propagation a row is unlabelled where y is -1, NaN, None or pandas' NA.
"""

from manifast.classifiers.discriminant import RBFDiscriminant, RBFDiscriminantCV
from manifast.classifiers.regression import FME, LapRLS
from manifast.classifiers.transduction import GFHF, LGC, RMGT
from manifast.classifiers.two_phase import TPTSSR
from manifast.classifiers.validated import FMECV, LapRLSCV

__all__ = [
    "FME",
    "FMECV",
    "GFHF",
    "LGC",
    "RMGT",
    "TPTSSR",
    "LapRLS",
    "LapRLSCV",
    "RBFDiscriminant",
    "RBFDiscriminantCV",
]
