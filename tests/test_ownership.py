"""A fitted model owns what it needs: overwriting what was given to `fit` changes nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA

from manifast import (
    FME,
    FMECV,
    GFHF,
    LDE,
    LFDA,
    LGC,
    LGRM,
    LPP,
    LTSA,
    NSSE,
    NSSECV,
    RMGT,
    SDA,
    SDACV,
    SDE,
    SDECV,
    TCA,
    TCACV,
    TPTSSR,
    ElasticEmbedding,
    ElasticEmbeddingCV,
    FisherEmbedding,
    Isomap,
    LabelEncoding,
    LaplacianEigenmaps,
    LapRLS,
    LapRLSCV,
    LocallyLinearEmbedding,
    LocalRegressionEmbedding,
    OutOfSample,
    RBFDiscriminant,
    SpectralRegression,
    SupervisedIsomap,
    SupervisedLaplacianEigenmaps,
)
from manifast._validation import as_matrix, own
from manifast.extensions import (
    EXTENSIONS,
    RBF,
    KernelRidge,
    LandmarkIsomap,
    LatentVariable,
    Nystrom,
    Reconstruction,
    SparseCode,
)
from manifast.graphs import connect_components, knn_graph
from manifast.kernels import knn, laplacian

N = 60

MODELS = [
    LaplacianEigenmaps(),
    LaplacianEigenmaps(affinity="full"),
    LaplacianEigenmaps(affinity="binary"),
    LaplacianEigenmaps(affinity="l1"),
    LocallyLinearEmbedding(),
    LTSA(),
    LocalRegressionEmbedding(),
    Isomap(),
    Isomap(n_landmarks=20),
    LPP(),
    LPP(kernel="rbf"),
    SpectralRegression(),
    SpectralRegression(kernel="rbf"),
    LDE(),
    LDE(kernel="rbf"),
    LFDA(),
    LFDA(kernel="rbf"),
    SDA(),
    SDACV(),
    SDE(),
    SDECV(),
    TCA(),
    TCACV(),
    LapRLSCV(),
    FMECV(),
    LGRM(),
    LGRM(kernel="rbf"),
    ElasticEmbedding(),
    ElasticEmbedding(kernel="rbf"),
    ElasticEmbeddingCV(lam=[1.0], mu=[1.0], gamma=[1.0, 10.0], cv=2, n_repeats=1),
    FisherEmbedding(),
    LabelEncoding(),
    SupervisedLaplacianEigenmaps(),
    SupervisedIsomap(),
    NSSE(),
    NSSECV(),
    OutOfSample(PCA(2)),
    OutOfSample(PCA(2), landmarks=30),
    RBFDiscriminant(),
    GFHF(),
    GFHF(graph="full"),
    LGC(),
    RMGT(),
    LapRLS(),
    LapRLS(kernel="rbf"),
    FME(),
    FME(kernel="rbf"),
    TPTSSR(),
    *(LaplacianEigenmaps(extension=name) for name in EXTENSIONS),
]
BY_ROWS = [
    LaplacianEigenmaps(),
    LPP(),
    SpectralRegression(),
    GFHF(),
    LGC(),
]


@pytest.fixture
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 4)) + (np.arange(N) % 3)[:, None]


@pytest.fixture
def labels() -> np.ndarray:
    return np.arange(N) % 3


def arrays_of(value: Any, seen: set[int] | None = None) -> Iterator[np.ndarray]:
    """All arrays that an object holds, also inside other objects; parameters are the caller's own."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_of(part, seen)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from arrays_of(part, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        given = value.get_params(deep=False) if hasattr(value, "get_params") else {}
        for name, part in vars(value).items():
            if name not in given:
                yield from arrays_of(part, seen)


def answer(model: Any, rows: Any) -> np.ndarray:
    """What the model says of new rows."""
    if is_classifier(model):
        return model.decision_function(rows)
    return model.transform(rows) if hasattr(model, "transform") else model.predict(rows)


def fitted(model: Any, *given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(*given)


def check_owns(model: Any, new: Any, given: list[np.ndarray]) -> None:
    """Nothing is shared with what was given, and overwriting that changes no answer."""
    shared = [array for array in arrays_of(model) for part in given if np.may_share_memory(array, part)]
    assert not shared
    before = answer(model, new)
    for part in given:
        part[...] = np.nan if part.dtype.kind == "f" else 0
    assert np.array_equal(answer(model, new), before)


def parts_of(matrix: sp.csr_array) -> list[np.ndarray]:
    return [matrix.data, matrix.indices, matrix.indptr]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_own_their_rows(model, dtype, rows, labels):
    X, y, new = rows.astype(dtype), labels.copy(), rows[:5].astype(dtype) + dtype(0.1)
    check_owns(fitted(model, X, y), new, [X, y])


@pytest.mark.parametrize("model", BY_ROWS, ids=str)
def test_estimators_own_their_sparse_rows(model, rows, labels):
    X = sp.csr_array(np.maximum(rows, 0))
    tags = model.__sklearn_tags__().input_tags
    assert tags.sparse
    check_owns(fitted(model, X, labels), X[:5].copy(), parts_of(X))


EXTENSION_MODELS = [
    *(made() for made in EXTENSIONS.values()),
    RBF(sigma="loo"),
    KernelRidge("linear"),
    LatentVariable(5),
    Nystrom(n_neighbors=5),
    Reconstruction(5),
    LandmarkIsomap(5),
    SparseCode(normalize=False),
    SparseCode(dictionary_size=20, dictionary_method="nearest"),
]


@pytest.mark.parametrize("model", EXTENSION_MODELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extensions_own_rows_and_embedding(model, dtype, rows):
    X = rows.astype(dtype)
    Y = fitted(LaplacianEigenmaps(affinity="full"), X).embedding_.copy()
    check_owns(fitted(model, X, Y), X[:5] + dtype(0.1), [X, Y])


@pytest.mark.parametrize("model", [LatentVariable(), Nystrom(n_neighbors=5), LandmarkIsomap(5)], ids=str)
def test_extensions_own_sparse_rows(model, rows):
    X, Y = sp.csr_array(np.maximum(rows, 0)), rows[:, :2].copy()
    check_owns(fitted(model, X, Y), X[:5].copy(), [*parts_of(X), Y])


@pytest.mark.parametrize("made", [GFHF, LGC, RMGT, LapRLS, FME, SDA, ElasticEmbedding])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.filterwarnings("ignore:all rows have labels")
def test_a_graph_that_was_given_is_not_shared(made, dense, rows, labels):
    W = connect_components(knn_graph(rows, 6), rows)
    W = W.toarray() if dense else W
    check_owns(made(graph=W).fit(rows, labels), rows[:5] + 0.1, [W] if dense else parts_of(W))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("made", [GFHF(graph="precomputed"), LaplacianEigenmaps(affinity="precomputed")], ids=str)
def test_precomputed_affinities_are_owned(made, dense, rows, labels):
    W = connect_components(knn_graph(rows, 6), rows)
    new = W[:5].toarray() if dense else W[:5].copy()
    W = W.toarray() if dense else W
    check_owns(fitted(made, W, labels), new, [W] if dense else parts_of(W))


def test_a_local_laplacian_and_neighbour_lists_are_not_shared(rows):
    L = laplacian(knn_graph(rows, 6))[0]
    check_owns(LGRM(local=L).fit(rows), rows[:5] + 0.1, parts_of(L))
    for made in (LaplacianEigenmaps, LocallyLinearEmbedding, LTSA, Isomap):
        lists = knn(rows, 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = made(n_neighbors=10, neighbors=lists).fit(rows)
        check_owns(model, rows[:5] + 0.1, list(lists))


def test_a_frame_is_owned(rows):
    pandas = pytest.importorskip("pandas")
    X = np.asfortranarray(rows).T.copy().T
    frame = pandas.DataFrame(X, copy=False)
    check_owns(fitted(LaplacianEigenmaps(), frame), rows[:5] + 0.1, [X])


def test_own_copies_only_what_is_shared(rows):
    assert own(as_matrix(rows, "X"), rows) is not rows
    for other in (rows.tolist(), rows.astype(np.float32), rows[::2], np.asfortranarray(rows), rows.astype(">f8")):
        checked = as_matrix(other, "X", dtype=np.float64)
        owned = own(checked, other)
        assert owned is checked
        assert not np.may_share_memory(owned, np.asarray(other))
    view = rows[10:20]
    assert not np.may_share_memory(own(as_matrix(view, "X"), view), rows)
    matrix = sp.csr_array(np.maximum(rows, 0))
    narrow = matrix.astype(np.float32)
    narrow.indices, narrow.indptr = matrix.indices, matrix.indptr
    owned = own(narrow, matrix)
    assert owned.data is narrow.data or np.may_share_memory(owned.data, narrow.data)
    assert not any(np.may_share_memory(a, b) for a, b in zip(parts_of(owned), parts_of(matrix), strict=True))


def test_a_read_only_memory_map_is_kept_and_another_copied(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    expected = fitted(LaplacianEigenmaps(), rows).transform(rows[:5])
    for mode, kept in (("r", True), ("r+", False), ("c", False)):
        X = np.load(tmp_path / "rows.npy", mmap_mode=mode)
        model = fitted(LaplacianEigenmaps(), X)
        assert any(np.may_share_memory(array, X) for array in arrays_of(model)) == kept
        assert np.array_equal(model.transform(rows[:5]), expected)


@pytest.mark.parametrize("extension", ["lvm", "reconstruction", "rbf"])
def test_the_rows_of_a_model_are_copied_once(extension, rows):
    X = rows.copy()
    model = fitted(LaplacianEigenmaps(extension=extension), X)
    size = [array for array in arrays_of(model) if array.shape == X.shape]
    assert len({array.__array_interface__["data"][0] for array in size}) == 1
