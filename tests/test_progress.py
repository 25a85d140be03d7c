"""verbose: silent by default, 1 names the stages and their times, 2 also says what the solvers do; all on stderr."""

from __future__ import annotations

import io
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
    NSSECV,
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
    solvers = "residual", "smallest_eigenvectors", "objective"
    assert not any(word in line for line in stages for word in solvers)
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


class Watcher:
    """A callback of scikit-learn's that writes down what it is told, and may end the loop."""

    def __init__(self, stop_after=None):
        self.stop_after, self.seen, self.steps = stop_after, [], 0

    def setup(self, estimator, context):
        self.seen.append("setup")

    def teardown(self, estimator, context):
        self.seen.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.seen.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        self.seen.append(("end", context.task_name))
        self.steps += context.task_name == "step"
        return self.stop_after is not None and self.steps >= self.stop_after


GRID = {"relative": False, "sigma_grid": np.geomspace(2, 200, 40), "sigma_init": 3.0, "mu3": 1e-3}


def followed(model, labels, stop_after=None):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    watcher = Watcher(stop_after)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = type(model)(**model.get_params()).fit(X, labels)
        model.set_callbacks(watcher).fit(X, labels)
    seen = watcher.seen
    assert seen[0] == "setup" and seen[-1] == "teardown"
    assert seen[1] == ("begin", "fit", None) and seen[-2] == ("end", "fit")
    begun = sorted(one[1] for one in seen[1:-1] if one[0] == "begin")
    assert begun == sorted(one[1] for one in seen[1:-1] if one[0] == "end")
    assert not any(name.startswith("_callback") for name in vars(model))
    return watcher, plain


def test_callbacks_follow_nsse():
    watcher, plain = followed(NSSE(2, **GRID), y)
    assert ("begin", "steps of the width", 21) in watcher.seen
    assert watcher.steps >= len(plain.sigma_history_)
    assert len(plain.sigma_history_) > 1
    model = NSSE(2, **GRID)
    watcher, _ = followed(model, y, stop_after=1)
    assert len(model.sigma_history_) == 1 and model.transform(X[:3]).shape == (3, 2)


def test_callbacks_follow_the_searches():
    search = NSSECV(n_components=[2, 3], mu1=1.0, mu2=[0.1, 1.0], mu3=10.0, n_splits=1, n_rounds=1)
    watcher, plain = followed(search, y)
    assert ("begin", "choices of weights", 4) in watcher.seen
    assert search.best_params_ == plain.best_params_
    stopped = NSSECV(n_components=[2, 3], mu2=[0.1, 1.0], mu3=10.0, n_splits=1, n_rounds=1)
    followed(stopped, y, stop_after=1)
    assert len(stopped.cv_results_["params"]) == 1 and stopped.transform(X[:3]).shape[0] == 3
    grid = {"lam": (1e-3, 1.0), "mu": (1e-3, 1.0), "gamma": 1.0, "n_repeats": 1}
    watcher, plain = followed(ElasticEmbeddingCV(**grid), FEW)
    assert ("begin", "choices of weights", 4) in watcher.seen and watcher.steps == 4
    stopped = ElasticEmbeddingCV(**grid)
    watcher, plain = followed(stopped, FEW, stop_after=1)
    assert len(stopped.cv_results_["lam"]) < len(plain.cv_results_["lam"])


def test_progress_bar_of_scikit_learn(capsys):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    pytest.importorskip("rich", reason="draws scikit-learn's bars")
    model = NSSE(2, **GRID).set_callbacks(callback.ProgressBar())
    model.fit(X, y)
    assert "NSSE - steps of the width" in capsys.readouterr().out


def test_a_failed_fit_ends_what_it_began():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")
    watcher = Watcher()
    model = NSSE(2, mu2=-1.0).set_callbacks(watcher)
    with pytest.raises(ValueError, match="mu2"):
        model.fit(X, y)
    assert watcher.seen[-1] == "teardown" and not any(name.startswith("_callback") for name in vars(model))


def test_a_bar_on_a_terminal(monkeypatch):
    """Where tqdm is installed and stderr is a terminal; lines elsewhere."""
    pytest.importorskip("tqdm", reason="draws the bar")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, bar in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stderr", stream)
        with _progress.verbosity(1, "Some"):
            report = _progress.Progress("parts", 3)
            for done in (1, 2, 3):
                report(done, ", all well")
        assert ("Some: parts:" in stream.getvalue() and "%|" in stream.getvalue()) == bar
        assert "Some: parts: 3 of 3" in stream.getvalue()
