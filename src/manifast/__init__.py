"""Manifold learning that works on data it has never seen.

Names load on first use: ``import manifast.kernels`` brings NumPy, scipy.sparse and the C core, nothing more.
"""

from __future__ import annotations

import importlib
from importlib.metadata import version as _version
from typing import Any

__version__ = _version("manifast")

_MODULES = (
    "classifiers",
    "datasets",
    "embeddings",
    "extensions",
    "graphs",
    "kernels",
    "metrics",
    "model_selection",
    "objectives",
    "persistence",
    "plotting",
    "scale",
    "smoothers",
    "spectral",
    "theory",
)
_ESTIMATORS = (
    "LDE",
    "LFDA",
    "LGRM",
    "LLTSA",
    "LPP",
    "LTSA",
    "NPE",
    "NSSE",
    "NSSECV",
    "ClassicalMDS",
    "ComposedEmbedding",
    "DiffusionMaps",
    "FisherEmbedding",
    "SDA",
    "SDACV",
    "SDE",
    "SDECV",
    "TCA",
    "TCACV",
    "ElasticEmbedding",
    "ElasticEmbeddingCV",
    "Isomap",
    "LabelEncoding",
    "LaplacianEigenmaps",
    "LocalRegressionEmbedding",
    "LocallyLinearEmbedding",
    "OutOfSample",
    "SpectralRegression",
    "SupervisedLaplacianEigenmaps",
    "SupervisedIsomap",
    "expected_failed_checks",
)
_CLASSIFIERS = (
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
)
_NAMES = (
    {"show_config": "manifast._config", "save": "manifast.persistence", "load": "manifast.persistence"}
    | dict.fromkeys(_CLASSIFIERS, "manifast.classifiers")
    | dict.fromkeys(_ESTIMATORS, "manifast.embeddings")
)

__all__ = ["__version__", *_MODULES, *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"manifast.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'manifast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
