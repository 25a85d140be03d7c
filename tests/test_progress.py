"""verbose: silent by default, 1 names the stages and their times, 2 also says what the solvers do; all on stderr."""

from __future__ import annotations

import logging
import threading
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from manifast import (
    GFHF,
    LGRM,
    LTSA,
    NSSE,
    ElasticEmbedding,
    ElasticEmbeddingCV,
    Isomap,
    LaplacianEigenmaps,
    OutOfSample,
    SupervisedIsomap,
    _progress,
)

X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200]
FEW = np.where(np.arange(200) < 60, y, -1)
MODELS = [
    LaplacianEigenmaps(),
    LaplacianEigenmaps(affinity="full"),
    LTSA(),
    Isomap(),
    LGRM(),
    NSSE(2),
    SupervisedIsomap(),
    ElasticEmbedding(2),
    GFHF(),
    OutOfSample(PCA(2)),
]


def lines_of(capsys, model, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, labels)
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_stages(capsys, model):
    labels = FEW if isinstance(model, ElasticEmbedding | GFHF) else y
    name = type(model).__name__
    assert lines_of(capsys, model.set_params(verbose=False), labels) == []
    stages = lines_of(capsys, model.set_params(verbose=True), labels)
    assert all(line.startswith(name) for line in stages)
    assert stages[0] == f"{name}: fit to 200 rows of 64 features ..."
    assert stages[-1].startswith(f"{name}: fit to 200 rows of 64 features: ")
    assert stages[-1].endswith(" s")
    assert not any("residual" in line or "smallest_eigenvectors" in line for line in stages)
    assert len(lines_of(capsys, model.set_params(verbose=2), labels)) >= len(stages)
    model.set_params(verbose=False)


def test_the_neighbour_search_is_named_before_the_solver_speaks(capsys):
    lines = lines_of(capsys, LaplacianEigenmaps(verbose=2), y)
    search = next(i for i, line in enumerate(lines) if "8 nearest neighbours of 200 rows ..." in line)
    solver = next(i for i, line in enumerate(lines) if "smallest_eigenvectors" in line)
    assert search < solver


def test_an_embedder_speaks_through_out_of_sample(capsys):
    lines = lines_of(capsys, OutOfSample(LaplacianEigenmaps(), landmarks=100, verbose=1), y)
    assert any("OutOfSample > LaplacianEigenmaps: 8 nearest neighbours of 100 rows" in line for line in lines)
    assert any("map of the other 100 rows" in line for line in lines)
    assert lines_of(capsys, OutOfSample(LaplacianEigenmaps(), landmarks=100), y) == []


def test_a_search_shows_how_far_it_is(capsys, monkeypatch):
    grid = {"lam": (1e-3, 1.0), "mu": (1e-3, 1.0), "gamma": 1.0, "sigma": (20.0, 40.0), "n_repeats": 1}
    search = ElasticEmbeddingCV(kernel="rbf", verbose=1, **grid)
    assert [line.split(": ")[2].split(",")[0] for line in lines_of(capsys, search, FEW) if "best" in line] == ["8 of 8"]
    monkeypatch.setattr(_progress, "_SECONDS", -1.0)
    done = [line for line in lines_of(capsys, search, FEW) if "best score" in line]
    assert [line.split(": ")[2].split(",")[0] for line in done] == ["2 of 8", "4 of 8", "6 of 8", "8 of 8"]
    assert all("s to go, best score" in line for line in done[:3])


def test_threads_and_failures_leave_nothing_behind(capsys):
    with pytest.raises(ValueError, match="n_components"):
        LaplacianEigenmaps(500, verbose=1).fit(X)
    capsys.readouterr()
    assert lines_of(capsys, LTSA(), y) == []
    with _progress.verbosity(2, "Some"):
        seen = []
        other = threading.Thread(target=lambda: seen.append(_progress.stages()))
        other.start()
        other.join()
    assert seen == [False]


def test_one_logger(capsys):
    got = []

    class Handler(logging.Handler):
        def emit(self, record):
            got.append(record.getMessage())

    handler = Handler()
    logging.getLogger("manifast").addHandler(handler)
    try:
        lines = lines_of(capsys, LTSA(verbose=1), y)
    finally:
        logging.getLogger("manifast").removeHandler(handler)
    assert got == lines


@pytest.mark.parametrize("verbose", [-1, "yes", None, 0.5])
def test_bad_verbose(verbose):
    with pytest.raises(ValueError, match="verbose must be"):
        LaplacianEigenmaps(verbose=verbose).fit(X)
