"""Small fitted models, one per kind of map and more, for the tests of saved models; and the files of this version.

``python tests/saved_models.py`` writes what is missing in tests/golden/: a model, rows and their images for each. The
files of a version are kept for ever: later versions add files of their own names, and never write these again.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.manifold import SpectralEmbedding

import manifast
from manifast import extensions

GOLDEN = Path(__file__).parent / "golden"
FEATURES = 4


def rows(count=24, seed=0, dtype=np.float64):
    """Rows on a noisy curve."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 3, count))
    curve = np.column_stack([np.cos(t), np.sin(t), t, t**2 / 3])
    return (curve + 0.01 * rng.standard_normal(curve.shape)).astype(dtype)


def labels(count=24):
    return np.where(np.arange(count) < count // 2, "low", "high")


def some_labels(count=24):
    return np.where(np.arange(count) % 3 == 0, (np.arange(count) >= count // 2).astype(int), -1)


def affinities(count=24):
    X = rows(count)
    return np.exp(-np.square(X[:, None] - X).sum(axis=2))


def distances(count=24):
    X = rows(count)
    return np.sqrt(np.square(X[:, None] - X).sum(axis=2))


def sparse_rows(count=24, dtype=np.float64):
    X = rows(count, dtype=dtype)
    return sp.csr_array(np.where(X > 0.3, X, 0))


def models():
    """Fitted models by name."""
    X, X32, y, some = rows(), rows(dtype=np.float32), labels(), some_labels()
    k = {"n_neighbors": 6}
    embed = lambda model, X=X, y=None: model.fit(X) if y is None else model.fit(X, y)  # noqa: E731
    Y = X[:, :2] ** 2
    made = {
        "lpp": embed(manifast.LPP(2, **k)),
        "lpp_float32": embed(manifast.LPP(2, **k), X32),
        "lpp_kernel": embed(manifast.LPP(2, kernel="poly", **k)),
        "lda_like": embed(manifast.LDE(1, n_neighbors=3), X, y),
        "lda_within": embed(manifast.LDE(1, n_neighbors=3, metric="within"), X, y),
        "nsse_within": embed(manifast.NSSE(1, metric="within"), X, y),
        "lgrm": embed(manifast.LGRM(1, kernel="rbf", **k)),
        "elastic": embed(manifast.ElasticEmbedding(1, n_neighbors=5), X, some),
        "nsse": embed(manifast.NSSE(1), X, y),
        "mds": embed(manifast.ClassicalMDS(2)),
        "eigenmaps": embed(manifast.LaplacianEigenmaps(2, **k)),
        "eigenmaps_full": embed(manifast.LaplacianEigenmaps(1, affinity="full")),
        "eigenmaps_sparse": embed(manifast.LaplacianEigenmaps(1, **k), sparse_rows()),
        "eigenmaps_given": embed(manifast.LaplacianEigenmaps(1, affinity="precomputed"), affinities()),
        "diffusion": embed(manifast.DiffusionMaps(2)),
        "diffusion_given": embed(manifast.DiffusionMaps(2, metric="precomputed"), distances()),
        "diffusion_neighbors": embed(manifast.DiffusionMaps(2, metric="precomputed", **k), distances()),
        "lle": embed(manifast.LocallyLinearEmbedding(2, **k)),
        "isomap": embed(manifast.Isomap(2, n_neighbors=5)),
        "isomap_huge": embed(manifast.Isomap(2, n_neighbors=5), X * 1e200),
        "isomap_given": embed(manifast.Isomap(2, n_neighbors=None, radius=1.5, metric="precomputed"), distances()),
        "mds_given": embed(manifast.ClassicalMDS(2, metric="precomputed", n_landmarks=10), distances()),
        "mds_cosine": embed(manifast.ClassicalMDS(2, metric="cosine")),
        "eigenmaps_cosine": embed(manifast.LaplacianEigenmaps(2, metric="cosine", **k)),
        "eigenmaps_distances": embed(manifast.LaplacianEigenmaps(1, metric="precomputed", **k), distances()),
        "composed": embed(manifast.ComposedEmbedding("supervised", "kernel_ridge", n_components=1), X, y),
        "out_of_sample": embed(manifast.OutOfSample(SpectralEmbedding(2, random_state=0, n_neighbors=6))),
        "encoding": embed(manifast.LabelEncoding(), X, y),
        "gfhf": embed(manifast.GFHF(5), X, some),
        "gfhf_given": embed(manifast.GFHF(graph="precomputed"), affinities(), some),
        "rmgt": embed(manifast.RMGT(5, prior=np.array([0.4, 0.6])), X, some),
        "laprls": embed(manifast.LapRLS(5), X, some),
        "fme_kernel": embed(manifast.FME(5, kernel="rbf"), X32, some),
        "tptssr": embed(manifast.TPTSSR(0.3), X, y),
        "rbf_discriminant": embed(manifast.RBFDiscriminant(), X, y),
        "rbf_discriminant_cv": embed(manifast.RBFDiscriminantCV(), X, y),
        "rbf_discriminant_both": embed(manifast.RBFDiscriminantCV(1), X, y),  # classes that both metrics tell apart
        "rbf_discriminant_within": embed(manifast.RBFDiscriminant(metric="within"), X, y),
        "linear": extensions.Linear().fit(X, Y),
        "rbf": extensions.RBF().fit(X, Y),
        "kernel_ridge": extensions.KernelRidge("poly").fit(X, Y),
        "lvm_sparse": extensions.LatentVariable().fit(sparse_rows(), Y),
        "nystrom": extensions.Nystrom(5).fit(X, Y),
        "reconstruction": extensions.Reconstruction(5).fit(X, Y),
        "landmark_isomap": extensions.LandmarkIsomap(5).fit(X, Y),
        "sparse_code": extensions.SparseCode(projection=3, top=2, dictionary_size=10).fit(X, Y),
        "sparse_code_basis": extensions.SparseCode(basis=np.eye(4)[:2]).fit(X32, Y.astype(np.float32)),
    }
    return made


def new_rows(model, count=7):
    """Rows as a model takes them."""
    if model.n_features_in_ == FEATURES:
        scale = 2.0**model._exponent if getattr(model, "_exponent", 0) else 1.0
        return rows(count, seed=1) * scale
    return affinities()[:count]


def images(model, X):
    """All that a model says of new rows."""
    names = [name for name in ("transform", "predict", "decision_function", "predict_proba") if hasattr(model, name)]
    return {name: getattr(model, name)(X) for name in names}


def write_golden():
    GOLDEN.mkdir(exist_ok=True)
    for name, model in models().items():
        if (GOLDEN / f"{name}.manifast").exists():
            continue
        manifast.save(model, GOLDEN / f"{name}.manifast")
        X = new_rows(model)
        np.savez_compressed(GOLDEN / f"{name}.npz", rows=X, **images(model, X))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_golden()
