"""The estimators: each is a choice of objective, smoother and solve, and has a `transform` for new rows."""

from manifast.embeddings._base import expected_failed_checks
from manifast.embeddings.discriminants import LDE, LFDA
from manifast.embeddings.linear import LPP, SpectralRegression
from manifast.embeddings.nsse import NSSE, NSSECV
from manifast.embeddings.out_of_sample import OutOfSample
from manifast.embeddings.semisupervised import SDA, SDE, TCA, ElasticEmbedding, ElasticEmbeddingCV
from manifast.embeddings.supervised import FisherEmbedding, LabelEncoding, SupervisedLaplacianEigenmaps
from manifast.embeddings.supervised_isomap import SupervisedIsomap
from manifast.embeddings.unsupervised import (
    LGRM,
    LTSA,
    Isomap,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    LocalRegressionEmbedding,
)

__all__ = [
    "LDE",
    "LFDA",
    "LGRM",
    "LPP",
    "LTSA",
    "NSSE",
    "NSSECV",
    "SDA",
    "SDE",
    "TCA",
    "ElasticEmbedding",
    "ElasticEmbeddingCV",
    "FisherEmbedding",
    "Isomap",
    "LabelEncoding",
    "LaplacianEigenmaps",
    "LocalRegressionEmbedding",
    "LocallyLinearEmbedding",
    "OutOfSample",
    "SpectralRegression",
    "SupervisedIsomap",
    "SupervisedLaplacianEigenmaps",
    "expected_failed_checks",
]
