"""Embeddings, each with a `transform` for rows it has never seen."""

from manifast.embeddings._base import expected_failed_checks
from manifast.embeddings.classes import FisherEmbedding, LabelEncoding, SupervisedLaplacianEigenmaps
from manifast.embeddings.composed import ComposedEmbedding
from manifast.embeddings.discriminants import LDE, LFDA
from manifast.embeddings.elastic import ElasticEmbedding, ElasticEmbeddingCV
from manifast.embeddings.lgrm import LGRM
from manifast.embeddings.local import LTSA, LocallyLinearEmbedding, LocalRegressionEmbedding
from manifast.embeddings.nsse import NSSE, NSSECV
from manifast.embeddings.out_of_sample import OutOfSample
from manifast.embeddings.partly_labelled import SDA, SDE, TCA
from manifast.embeddings.projections import LLTSA, LPP, NPE, SpectralRegression
from manifast.embeddings.scaling import ClassicalMDS, Isomap, SupervisedIsomap
from manifast.embeddings.spectral import DiffusionMaps, LaplacianEigenmaps
from manifast.embeddings.validated import SDACV, SDECV, TCACV

__all__ = [
    "LDE",
    "LFDA",
    "LGRM",
    "LLTSA",
    "LPP",
    "LTSA",
    "NPE",
    "NSSE",
    "NSSECV",
    "SDA",
    "SDACV",
    "SDE",
    "SDECV",
    "TCA",
    "TCACV",
    "ClassicalMDS",
    "ComposedEmbedding",
    "DiffusionMaps",
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
