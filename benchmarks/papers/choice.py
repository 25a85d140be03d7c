"""Methods with grids, and the choice of their parameters: on training rows only, or as the papers do, on test rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.papers.data import held_out
from benchmarks.papers.model import Cell
from manifast.kernels import knn

LADDER = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 300, 400, 500, 700, 1000)


@dataclass(frozen=True)
class Method:
    """A column: an estimator from training rows, labels and parameters, and the candidates for these.

    Where `nested`, the columns of an embedding do not depend on how many there are: one fit serves every dimension.
    `paper` are candidates of the paper's way where they differ, and `paper_make` its estimator. `inside` names what the
    estimator chooses itself without saying so in `best_params_`.
    """

    make: Callable[..., Any]
    grid: Sequence[dict[str, Any]] = ({},)
    nested: bool = False
    paper: Sequence[dict[str, Any]] | None = None
    paper_make: Callable[..., Any] | None = None
    inside: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What changes the results, for the cache."""
        return f"Method({self.grid!r}, {self.nested}, {self.paper!r})"


def product(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations, the first value of the last name first."""
    found: list[dict[str, Any]] = [{}]
    for name, choices in values.items():
        found = [point | {name: value} for point in found for value in choices]
    return found


def ladder(most: int, *more: int) -> list[int]:
    """Dimensions that are tried, up to the largest there is."""
    return sorted({d for d in (*LADDER, *more) if d <= most})


def nearest(gallery: Any, labels: Any, queries: Any) -> Any:
    """Labels of the nearest rows."""
    found = knn(np.ascontiguousarray(gallery), 1, queries=np.ascontiguousarray(queries, dtype=gallery.dtype))[1][:, 0]
    return labels[found]


def nearest_errors(gallery: Any, labels: Any, queries: Any, truth: Any, dimensions: Sequence[int]) -> list[float]:
    """Errors in % of the nearest neighbour in the first d columns, for several d."""
    return [error(nearest(gallery[:, :d], labels, queries[:, :d]), truth) for d in dimensions]


def error(found: Any, truth: Any) -> float:
    return 100 * float(np.mean(np.asarray(found) != truth))


def candidate_errors(method: Method, X: Any, y: Any, new: Any, truth: Any, paper: bool = False) -> dict[str, float]:
    """Error of every candidate on other rows, by its parameters as JSON; with d where one fit serves all dimensions.

    Candidates that cannot be fitted to so few rows are left out.
    """
    found: dict[str, float] = {}
    grid = method.paper if paper and method.paper is not None else method.grid
    make = method.paper_make if paper and method.paper_make is not None else method.make
    for parameters in grid:
        try:
            model = make(X, y, **parameters).fit(X, y)
        except ValueError:
            continue
        if method.nested:
            Y, Z = embedded(model, X), model.transform(new)
            dimensions = ladder(Y.shape[1], len(np.unique(y)) - 1)
            for d, value in zip(dimensions, nearest_errors(Y, y, Z, truth, dimensions), strict=True):
                found[json.dumps(parameters | {"d": d})] = value
        else:
            found[json.dumps(parameters)] = error(predicted(model, X, y, new), truth)
    return found


def embedded(model: Any, X: Any) -> Any:
    return model.embedding_ if hasattr(model, "embedding_") else model.transform(X)


def predicted(model: Any, X: Any, y: Any, new: Any) -> Any:
    return model.predict(new) if hasattr(model, "predict") else nearest(embedded(model, X), y, model.transform(new))


def ranked(method: Method, X: Any, y: Any) -> list[dict[str, Any]]:
    """The candidates from smallest to largest mean error on held-out rows, equals as they stand in the grid.

    As they stand there, too, where none fits a part of the rows.
    """
    if len(method.grid) == 1 and not method.nested:
        return [dict(method.grid[0])]
    runs = [candidate_errors(method, X[train], y[train], X[held], y[held]) for train, held in held_out(y)]
    common = [key for key in runs[0] if all(key in run for run in runs)]
    if not common:
        return [dict(point) for point in method.grid]
    return [json.loads(key) for key in sorted(common, key=lambda key: float(np.mean([run[key] for run in runs])))]


def validated(method: Method, X: Any, y: Any, new: Any, truth: Any) -> Cell:
    """Parameters chosen on training rows, then one fit: error in %, seconds to fit, microseconds a new row.

    Where the best candidate cannot be fitted to all rows the next one is taken.
    """
    problem: ValueError | None = None
    failed: list[dict[str, Any]] = []
    for parameters in ranked(method, X, y):
        made = {name: value for name, value in parameters.items() if not (method.nested and name == "d")}
        if made in failed:
            continue
        try:
            model, found, times = _fitted(method, X, y, new, parameters)
        except ValueError as why:
            problem = why
            failed.append(made)
            continue
        inside = list(method.inside) or list(getattr(model, "best_params_", {}))
        return {"error": error(found, truth), "chosen": json.dumps(parameters), "inside": json.dumps(inside)} | times
    assert problem is not None
    raise problem


def timed(method: Method, X: Any, y: Any, new: Any, parameters: dict[str, Any]) -> Cell:
    """Seconds to fit and microseconds a new row."""
    return best_time(lambda: _fitted(method, X, y, new, parameters)[2])


def best_time(measured: Callable[[], Cell]) -> Cell:
    """The best of three where that is quick: what is slow says enough the first time."""
    begin = time.perf_counter()
    first = measured()
    if time.perf_counter() - begin > 1:
        return first
    runs = [first, measured(), measured()]
    return {name: min(run[name] for run in runs) for name in first}


def _fitted(method: Method, X: Any, y: Any, new: Any, parameters: dict[str, Any]) -> tuple[Any, Any, Cell]:
    """Model, labels of the new rows, and what both took."""
    d = parameters.get("d") if method.nested else None
    given = {name: value for name, value in parameters.items() if not (method.nested and name == "d")}
    begin = time.perf_counter()
    model = method.make(X, y, **given).fit(X, y)
    fitted = time.perf_counter()
    if method.nested:
        found = nearest(embedded(model, X)[:, :d], y, model.transform(new)[:, :d])
    else:
        found = predicted(model, X, y, new)
    mapped = time.perf_counter()
    return model, found, {"fit_s": fitted - begin, "row_us": 1e6 * (mapped - fitted) / len(new)}
