"""Weights chosen by validation: grids, labels that are hidden in turn, ties and edges. What the CV estimators share."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np

from manifast._labels import Labels
from manifast._progress import Progress, Steps, stage, stages
from manifast._validation import Array, as_count, as_positive
from manifast._warnings import warn

WEIGHTS = (1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6)  # what a weight is chosen from by default

Hidden = tuple[Array, Array]  # labelled rows, by their place among these, that stay known, and those that are hidden
Tried = Iterator[tuple[tuple[Any, ...], int]]  # weights, and what else was chosen; how many hidden labels they find


def check_grid(values: Any, name: str) -> list[float]:
    """Candidates of a positive parameter, one or several."""
    if np.ndim(values) == 0:
        return [as_positive(values, name)]
    if np.ndim(values) != 1 or not len(values):
        raise ValueError(f"{name} must be a positive number or a sequence of them. Got {values!r} instead.")
    return [as_positive(value, f"every entry of {name}") for value in values]


def hide_labels(labels: Labels, cv: Any, n_repeats: Any, random_state: Any) -> list[Hidden]:
    """The labelled rows split into parts that are hidden in turn, several times; none where no class has two."""
    from sklearn.model_selection import RepeatedStratifiedKFold

    parts, repeats = as_count(cv, "cv"), as_count(n_repeats, "n_repeats")
    if parts < 2:
        raise ValueError(f"cv must be at least 2. Got {parts} instead.")
    several = labels.sizes >= 2
    if not several.any():
        return []
    codes = labels.codes[labels.labelled]
    # Rows that are alone in their class cannot be hidden: they are always known.
    hideable, alone = np.flatnonzero(several[codes]), np.flatnonzero(~several[codes])
    splitter = RepeatedStratifiedKFold(
        n_splits=min(parts, int(labels.sizes[several].min())), n_repeats=repeats, random_state=random_state
    )
    return [
        (np.sort(np.append(hideable[known], alone)), hideable[hidden])
        for known, hidden in splitter.split(codes[hideable], codes[hideable])
    ]


def central_best(places: Array, scores: Array) -> int:
    """The choice of the best score; of several the one nearest to their middle, in steps of the grid."""
    best = np.flatnonzero(scores == scores.max())
    away = np.square(places[best] - places[best].mean(axis=0)).sum(axis=1)
    return int(best[np.argmin(away)])


def warn_of_edges(
    names: Sequence[str],
    candidates: dict[str, list[Any]],
    chosen: dict[str, Any],
    errors: dict[tuple[Any, ...], float],
) -> None:
    """Say which choice is the first or last of several candidates, and better than the next one."""
    for name in names:
        values = sorted(candidates[name])
        if len(values) < 3 or chosen[name] not in (values[0], values[-1]):
            continue
        inner = values[1] if chosen[name] == values[0] else values[-2]
        beside = errors.get(tuple((chosen | {name: inner}).values()))
        if beside is not None and errors[tuple(chosen.values())] < beside:
            warn(
                f"{name} = {chosen[name]:g} is the best of its candidates and at their edge. Others beyond it may be "
                f"better: give {name} candidates on both sides of it."
            )


def listed(given: Any, name: str) -> list[Any] | None:
    """The candidates of a parameter that takes one value or a sequence of them; None for one value."""
    if not isinstance(given, list | tuple | range | np.ndarray) or np.ndim(given) == 0:
        return None
    if not len(given):
        raise ValueError(f"{name} must hold at least one candidate. Got none.")
    for value in given:
        if value is not None and np.ndim(value) != 0:
            raise ValueError(f"{name} must be one value or a sequence of them. Got {given!r} instead.")
    return list(given)


def graph_choices(n_neighbors: Any, beta: Any) -> list[dict[str, Any]]:
    """The graphs to choose from, by those of their parameters that are sequences; one where none is."""
    found = {"n_neighbors": listed(n_neighbors, "n_neighbors"), "beta": listed(beta, "beta")}
    lists = {name: values for name, values in found.items() if values is not None}
    for count in lists.get("n_neighbors", ()):
        if count is not None:
            as_count(count, "n_neighbors")
    return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]


class WeightSearch:
    """Mixin of semi-supervised estimators that choose two of their weights by labels that are hidden in turn."""

    _defaults: ClassVar[dict[str, float]]  # of the two weights, where nothing can be validated
    n_neighbors: Any
    beta: Any
    cv: Any
    n_repeats: Any
    random_state: Any

    def _plan(self, labels: Labels) -> tuple[dict[str, list[float]], list[Hidden]]:
        """Candidates of the weights, and the labels to hide: all that can be refused before any work."""
        grids = {name: check_grid(getattr(self, name), name) for name in self._defaults}
        self._graphs()
        return grids, hide_labels(labels, self.cv, self.n_repeats, self.random_state)

    def _graphs(self) -> list[dict[str, Any]]:
        return graph_choices(self.n_neighbors, self.beta)

    def _choose(
        self, grids: dict[str, list[float]], hidden: list[Hidden], tried: Callable[[], Tried]
    ) -> dict[str, Any]:
        """The weights and graph that find the most hidden labels; the defaults where no label can be hidden.

        `tried` gives every pair of weights of the grids once for every graph, in any order.
        """
        graphs = self._graphs()
        if not hidden:
            given = {name: grid[0] for name, grid in grids.items() if len(grid) == 1}
            self.best_params_, self.best_score_, self.cv_results_ = self._defaults | given | graphs[0], np.nan, {}
            warn(
                "no class has two labelled rows, so that none can be hidden to validate on: the default weights "
                f"{self.best_params_} are taken. Label a second row of some classes to choose weights."
            )
            return self.best_params_
        whole = grids | {name: list(dict.fromkeys(graph[name] for graph in graphs)) for name in graphs[0]}
        total, count = int(np.prod([len(grid) for grid in whole.values()])), sum(len(part) for _, part in hidden)
        scores: dict[tuple[Any, ...], float] = {}
        report, steps = Progress("choices of weights", total), Steps("choices of weights", total)
        with warnings.catch_warnings(), stage(f"validation of {total} choices of weights"):
            warnings.simplefilter("ignore", UserWarning)  # about weights that are not chosen in the end
            for weights, found in tried():
                scores[weights] = found / count
                if stages():
                    report(len(scores), f", best score {max(scores.values()):.4f}")
                if steps.done():
                    break
        steps.close()
        pairs, found_shares = list(scores), np.array(list(scores.values()))
        places = np.array([[grid.index(w) for w, grid in zip(pair, whole.values(), strict=True)] for pair in pairs])
        best = pairs[central_best(places, found_shares)]
        self.best_params_ = dict(zip(whole, best, strict=True))
        self.best_score_ = scores[best]
        columns = (np.array(column) for column in zip(*pairs, strict=True))
        self.cv_results_ = dict(zip(whole, columns, strict=True)) | {"score": found_shares}
        warn_of_edges(list(grids), whole, self.best_params_, {pair: -score for pair, score in scores.items()})
        return self.best_params_


def defaults_of(kind: type[Any], *names: str) -> dict[str, Any]:
    """The defaults of parameters of a class."""
    parameters = inspect.signature(kind).parameters
    return {name: parameters[name].default for name in names}
