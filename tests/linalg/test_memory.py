"""Sizes that cannot work are refused before any work, in a sentence that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import manifast
from manifast import (
    LDE,
    LFDA,
    LGRM,
    LPP,
    NSSE,
    NSSECV,
    ElasticEmbedding,
    FisherEmbedding,
    Isomap,
    LabelEncoding,
    LaplacianEigenmaps,
    LapRLS,
    OutOfSample,
    RBFDiscriminant,
    SpectralRegression,
    SupervisedIsomap,
    extensions,
)
from manifast._linalg import memory as _memory
from manifast._linalg.memory import available_bytes, check_room
from manifast.graphs import full_graph

TOO_MANY = r"X must have at most (about )?\d+ rows for this method.*Got 100000 rows.*(n_landmarks|landmarks=|knn_graph)"


class Never(BaseEstimator):
    """An embedder that must not be reached."""

    def fit_transform(self, X, y=None):
        raise AssertionError("work began")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((100_000, 3)), rng.integers(0, 2, 100_000)


@pytest.fixture
def no_search(monkeypatch):
    """Fails as soon as neighbours are sought."""

    def search(*args, **kwargs):
        raise AssertionError("work began")

    for module in (manifast.graphs.distances, extensions.sparse_code):
        monkeypatch.setattr(module, "nearest", search)
    for module in (manifast.graphs.search, manifast.graphs.classes, manifast.graphs.bridges):
        monkeypatch.setattr(module, "knn", search)


MODELS = [
    Isomap(),
    LGRM(),
    LaplacianEigenmaps(affinity="full"),
    LaplacianEigenmaps(extension="rbf"),
    LaplacianEigenmaps(extension="kernel_ridge"),
    LaplacianEigenmaps(extension=extensions.Nystrom()),
    LaplacianEigenmaps(extension="landmark_isomap"),
    LPP(kernel="rbf"),
    LPP(kernel="linear"),
    SpectralRegression(kernel="rbf"),
    LDE(kernel="poly"),
    LFDA(kernel="rbf"),
    NSSE(),
    NSSECV(n_splits=2, validation_size=0.01),
    SupervisedIsomap(),
    ElasticEmbedding(kernel="rbf"),
    ElasticEmbedding(graph="full"),
    LapRLS(kernel="rbf"),
    RBFDiscriminant(),
    FisherEmbedding(),
    LabelEncoding(extension="rbf"),
    OutOfSample(Never(), extension="rbf"),
    OutOfSample(Never(), extension="kernel_ridge", landmarks=None),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_hundred_thousand_rows_are_refused_at_once(model, rows, no_search, monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 16e9)
    with pytest.raises(ValueError, match=TOO_MANY.replace("100000", r"\d+")):
        model.fit(*rows)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("name", ["rbf", "kernel_ridge", "nystrom", "landmark_isomap"])
def test_maps_and_graphs_refuse_too(name, rows, no_search, monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 16e9)
    with pytest.raises(ValueError, match=TOO_MANY):
        extensions.as_extension(name).fit(rows[0], rows[0][:, :2])
    with pytest.raises(ValueError, match=TOO_MANY):
        full_graph(rows[0])


def test_what_fits_is_not_refused(rows, monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 4e9)
    X, _ = rows
    OutOfSample(LaplacianEigenmaps(), extension=extensions.RBF(ridge=1e-3), landmarks=300).fit(X[:2000])
    Isomap(n_landmarks=50).fit(X[:2000])
    LGRM(kernel="linear").fit(X[:5000])


def test_the_bounds():
    check_room(4000, 1, "so", lapack=True)
    with pytest.raises(ValueError, match=r"at most 46340 rows .* Got 46341 rows: so\."):
        check_room(46_341, 1, "so")


def test_little_memory_is_said(monkeypatch):
    monkeypatch.setattr(_memory, "available_bytes", lambda: 2.0**30)
    check_room(8000, 2, "so")
    with pytest.raises(ValueError, match=r"at most about 8192 rows .* 2 dense n × n matrices, and 1\.0 GiB .*: so\."):
        check_room(8193, 2, "so")
    with pytest.raises(ValueError, match=r"at most about 1342177 rows .* n × 100 matrices"):
        check_room(2_000_000, 1, "so", columns=100, lapack=False)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


MEMINFO = {"proc/meminfo": "MemTotal: 4000 kB\nMemAvailable:    3000 kB\n"}
GROUP = {"proc/self/cgroup": "0::/a/b\n"}
OLD = {"proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/b\n"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (MEMINFO, 3000 * 1024),
        (MEMINFO | {"sys/fs/cgroup/memory.max": "max\n"}, 3000 * 1024),
        (
            MEMINFO
            | GROUP
            | {
                "sys/fs/cgroup/a/memory.max": "2000000\n",
                "sys/fs/cgroup/a/memory.current": "1500000\n",
                "sys/fs/cgroup/a/memory.stat": "anon 1000000\nactive_file 100000\ninactive_file 300000\n",
            },
            900_000,
        ),
        (
            MEMINFO
            | OLD
            | {
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2000000\n",
                "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "2500000\n",
                "sys/fs/cgroup/memory/a/memory.stat": "cache 5\ntotal_active_file 10\n",
            },
            0,
        ),
    ],
    ids=["plain", "no limit", "version 2", "version 1"],
)
def test_memory_that_can_be_had(tmp_path, files, expected):
    assert available_bytes(write(tmp_path, files)) == expected


def test_memory_of_this_machine():
    assert available_bytes() > 2**20
    assert available_bytes("/there is nothing here") >= available_bytes()
