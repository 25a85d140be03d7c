"""All supervised and all semi-supervised methods over all data sets: what a practitioner reads to choose."""

from __future__ import annotations

from benchmarks.papers import see
from benchmarks.papers.model import Experiment
from benchmarks.papers.supervised import ERRORS

SHOWS = {
    "error": "misclassified new rows, %",
    "fit_s": "seconds of a fit, first split",
    "row_us": "microseconds to map or predict a row, first split",
}

EXPERIMENTS = (
    Experiment(
        "summary",
        "Summary: methods that learn from labels",
        ERRORS,
        SHOWS,
        rows=(
            "COIL-20, 7 per class",
            "COIL-20, 20 per class",
            "ORL, 5 per class",
            "Ext. Yale, 10 per class",
            "MNIST, 20 per class",
            "digits, 20 per class",
        ),
        names={
            "NSSE": "NSSECV",
            "SUPLAP": "SupervisedLaplacianEigenmaps",
            "SUPLAP, metric auto": 'SupervisedLaplacianEigenmaps(metric="auto")',
            "LDE, metric auto": 'LDE(metric="auto")',
            "SVM": "LinearSVC (scikit-learn)",
            "SVC": "SVC (scikit-learn)",
            "NN": "1-NN (scikit-learn)",
            "LDA": "LDA (scikit-learn)",
            "NYS": "LaplacianEigenmaps, Nyström",
            "SPE": "LaplacianEigenmaps, sparse code",
            "IsoKRR": "SupervisedIsomap",
            "MReg": "LapRLS, kernel",
        },
        ranked="error",
        once=("fit_s", "row_us"),
        ranges={"error": {"RBFDiscriminantCV": (3, 20), "NN": (5, 20)}},
        note="Embeddings are followed by 1-NN. Parameters are chosen on training rows.",
    ),
    Experiment(
        "summary-semi",
        "Summary: methods that learn from a few labels",
        see.TABLE,
        SHOWS,
        rows=(
            "COIL-20, 3 labels",
            "ORL, 2 labels",
            "Ext. Yale, 3 labels",
            "digits, 3 labels",
            "MNIST, 3 labels",
        ),
        names={
            "linear": "ElasticEmbedding",
            "kernel": "ElasticEmbedding, kernel",
            "LabelSpreading": "LabelSpreading (scikit-learn)",
            "SelfTraining(SVC)": "SelfTraining of SVC (scikit-learn)",
            "1-NN": "1-NN of the labelled rows (scikit-learn)",
        },
        ranked="error",
        once=("fit_s", "row_us"),
        ranges={"error": {"GFHF": (1, 40), "LGC": (1, 40)}},
        note="Embeddings are followed by 1-NN. Parameters are chosen by hiding labels.",
    ),
)
