"""Pictures of embeddings, spectra, comparisons and reports. The only module that imports matplotlib.

Every function draws into the axes it is given, or into a new figure that belongs to no window, and returns the axes:
``plot_embedding(...).figure.savefig("picture.png")`` works without a display; in notebooks `figure` shows itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

import numpy as np

from manifast._validation import Array, as_count, as_matrix, shown

__all__ = ["plot_comparison", "plot_embedding", "plot_objective", "plot_report", "plot_spectrum"]

# Okabe and Ito's colours, which people of all kinds of colour vision tell apart, with two more for ten classes; beyond
# those markers change.
COLORS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D1F", "#444444", "#6A3D9A", "#A6C800",
)  # fmt: skip
MARKERS = "osD^vP*X"
INK, FAINT = "#333333", "#D8D8D8"
GOOD, BAD = COLORS[0], COLORS[1]
_MAP = "viridis"  # for numbers


def plot_embedding(
    Y: Any,
    labels: Any = None,
    *,
    Y_new: Any = None,
    labels_new: Any = None,
    names: str = "auto",
    images: Any = None,
    n_images: int = 60,
    components: Any = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """An embedding as points: training rows, and new rows on top of them.

    Parameters
    ----------
    Y : array of shape (n, d), or fitted embedding
        The rows, or an estimator with `embedding_`. One column is drawn along the number of the row.
    labels : array of n labels or numbers, optional
        Classes get colours, markers and names; numbers that are not whole get a colour scale.
    Y_new, labels_new : optional
        New rows, and their labels. The training rows then step back.
    names : {"auto", "legend", "inside", "none"}
        Where the names of classes stand: in a legend, at the middle of their rows, or nowhere. "auto" is "inside" for
        more than 8 classes, else a legend.
    images : array of shape (n, height, width) or (n, height, width, 3), optional
        Pictures of the rows of Y (of Y_new where that is given), drawn at their places where there is room.
    n_images : int, default 60
        At most so many of them.
    components : tuple of 2 or 3 ints, optional
        Which columns to draw; by default the first two, or the first three on axes with three dimensions.
    title : str, optional
    ax : matplotlib axes, optional
        With ``projection="3d"`` three columns are drawn.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import LaplacianEigenmaps
    >>> from manifast.plotting import plot_embedding
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LaplacianEigenmaps(n_neighbors=20).fit(X[::2])
    >>> ax = plot_embedding(model, y[::2], Y_new=model.transform(X[1::2]), labels_new=y[1::2])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2', 'new rows']
    """
    rows = _rows(Y, "Y")
    new = None if Y_new is None else _rows(Y_new, "Y_new", columns=rows.shape[1])
    if names not in ("auto", "legend", "inside", "none"):
        raise ValueError(f"names must be 'auto', 'legend', 'inside' or 'none'. Got {names!r} instead.")
    solid = getattr(ax, "name", "") == "3d"
    chosen = _components(components, rows.shape[1], solid)
    if ax is None:
        ax = _new_axes((6.4, 5.2), "3d" if len(chosen) == 3 else None)
    elif (len(chosen) == 3) != solid:
        raise ValueError(f"ax must have projection '3d' for 3 components, and only then. Got {len(chosen)} components.")
    places = _columns(rows, chosen)
    new_places = None if new is None else _columns(new, chosen)
    groups = _Groups(labels, len(rows), labels_new, 0 if new is None else len(new))
    size = float(np.clip(6000 / max(len(rows), 1), 5, 30))
    groups.draw(ax, places, "train", back=new is not None, size=size)
    if new_places is not None:
        groups.draw(ax, new_places, "new", back=False, size=1.4 * size)
    if images is not None:
        _draw_images(ax, images, places if new_places is None else new_places, as_count(n_images, "n_images"))
    where = ("inside" if len(groups.classes) > 8 else "legend") if names == "auto" else names
    if where == "inside" and len(groups.classes):
        groups.write_names(ax, places, new_places)
    elif where == "legend":
        groups.write_legend(ax, new is not None)
    named = ["row", "component 1"] if rows.shape[1] == 1 else [f"component {c + 1}" for c in chosen]
    _finish(ax, title, *named[:2])
    if len(named) == 3:
        ax.set_zlabel(named[2], fontsize=9, color=INK)
    return ax


def plot_spectrum(values: Any, *, n_components: int | None = None, title: str | None = None, ax: Any = None) -> Any:
    """Eigenvalues, and the gaps between them: a wide gap after the d-th says that d dimensions belong together.

    Parameters
    ----------
    values : array of eigenvalues, or fitted embedding
        An estimator with `eigenvalues_`.
    n_components : int, optional
        Marks the gap after so many values; by default the widest.
    title : str, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from manifast.plotting import plot_spectrum
    >>> ax = plot_spectrum([0.01, 0.02, 0.3, 0.31, 0.33])
    >>> ax.get_title()
    'widest gap after 2 of 5'
    """
    try:
        numbers = np.ravel(np.asarray(getattr(values, "eigenvalues_", values), dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        raise ValueError(f"values must hold at least 2 finite eigenvalues. Got {len(numbers)}.")
    gaps = np.abs(np.diff(numbers))
    at = int(gaps.argmax()) + 1 if n_components is None else as_count(n_components, "n_components")
    if not 1 <= at < len(numbers):
        raise ValueError(f"n_components must be from 1 to {len(numbers) - 1}. Got {n_components!r} instead.")
    ax = _new_axes((6.4, 4.0)) if ax is None else ax
    place = np.arange(1, len(numbers) + 1)
    ax.bar(place[:-1] + 0.5, gaps, width=0.9, color=FAINT, label="gap to the next", zorder=1)
    ax.axvspan(at + 0.05, at + 0.95, color=COLORS[4], alpha=0.35, zorder=0)
    ax.plot(place, numbers, "o-", color=COLORS[0], markersize=6, linewidth=1.2, label="eigenvalue", zorder=3)
    ax.axhline(0, color=INK, linewidth=0.6)
    if len(place) <= 20:
        ax.set_xticks(place)
    ax.legend(frameon=False)
    which = "widest gap" if n_components is None else "gap"
    _finish(ax, f"{which} after {at} of {len(numbers)}" if title is None else title, "number", "eigenvalue", ticks=True)
    return ax


def plot_comparison(comparison: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """The table of `manifast.model_selection.compare`: errors with their standard errors, and times beside them.

    Parameters
    ----------
    comparison : Comparison, or iterable of rows
        An object with `results`, or the rows themselves: objects or dicts with "name" and "error" (mean, a share), and,
        where known, "standard_error", "fit_seconds" and "predict_seconds". A row whose error is None or NaN (a method
        that failed) gets a dash.
    title : str, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
        The best method is at the top.

    Examples
    --------
    >>> from manifast.plotting import plot_comparison
    >>> rows = [
    ...     {"name": "LFDA", "error": 0.05, "standard_error": 0.01, "fit_seconds": 0.02, "predict_seconds": 0.001},
    ...     {"name": "PCA", "error": 0.09, "standard_error": 0.01, "fit_seconds": 0.004, "predict_seconds": 0.001},
    ... ]
    >>> [text.get_text() for text in plot_comparison(rows).get_yticklabels()]
    ['LFDA', 'PCA']
    """
    rows = _table(comparison)
    known = [row for row in rows if row["error"] is not None]
    order = sorted(known, key=lambda row: float(row["error"])) + [row for row in rows if row["error"] is None]
    ax = _new_axes((7.5, 1.2 + 0.36 * len(order))) if ax is None else ax
    place = np.arange(len(order))
    best = order[0]
    reach = (best["error"] or 0.0) + (best["standard_error"] or 0.0)
    for at, row in zip(place, order, strict=True):
        if row["error"] is None:
            ax.text(0, at, " —", color=INK, va="center")
            continue
        near = row["error"] <= reach
        ax.barh(at, 100 * row["error"], height=0.62, color=COLORS[0] if near else "#9DB8CC", zorder=2)
        spread = 100 * (row["standard_error"] or 0.0)
        if spread:
            ax.errorbar(100 * row["error"], at, xerr=spread, color=INK, capsize=2.5, linewidth=1, zorder=3)
    longest = max([100 * (row["error"] or 0) + 100 * (row["standard_error"] or 0) for row in order] + [1e-9])
    for at, row in zip(place, order, strict=True):
        times = [_seconds(row[name]) for name in ("fit_seconds", "predict_seconds") if row[name] is not None]
        if times:
            ax.text(1.03 * longest, at, " + ".join(times), va="center", fontsize=8, color=INK)
    ax.set_yticks(place, [str(row["name"]) for row in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlim(0, 1.3 * longest)
    ax.grid(axis="x", color=FAINT, linewidth=0.6, zorder=0)
    timed = any(row["fit_seconds"] is not None for row in order)
    note = "error in %, with its standard error" + ("; right: time to fit + to map or predict" if timed else "")
    _finish(ax, title, note, "", ticks=True)
    return ax


def plot_report(report: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """What `manifast.theory.generalization_report` found: what each theorem's condition takes of half the margin.

    Bars to the left of the line at 1 meet their condition. Their labels say what follows; a bar far to the right says
    by which factor the map is too steep, or the classes too wide, for their margin.

    Parameters
    ----------
    report : GeneralizationReport
    title : str, optional
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import NSSE
    >>> from manifast.plotting import plot_report
    >>> from manifast.theory import generalization_report
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_report(generalization_report(NSSE(2).fit(X, y), X, y))
    >>> len(ax.patches)
    4
    """
    if not hasattr(report, "verdicts"):
        raise ValueError(f"report must be one of manifast.theory.generalization_report. Got {type(report).__name__}.")
    verdicts = list(report.verdicts)
    ax = _new_axes((8.2, 1.9 + 0.62 * max(len(verdicts), 1))) if ax is None else ax
    shares = [v.needed / (v.margin / 2) if v.margin > 0 else np.inf for v in verdicts]
    finite = [share for share in shares if np.isfinite(share) and share > 0]
    right, left = 3 * max([*finite, 3.0]), min([*finite, 1.0]) / 3
    for at, (verdict, share) in enumerate(zip(verdicts, shares, strict=True)):
        holds = bool(verdict.bound.condition_holds)
        length = share if np.isfinite(share) else right
        ax.barh(at, length - left, left=left, height=0.5, color=GOOD if holds else BAD, zorder=2)
        ax.text(1.15, at - 0.3, _verdict_words(verdict, share), fontsize=8, color=INK, va="bottom")
    ax.set_xscale("log")
    ax.set_xlim(left, right)
    ax.axvline(1, color=INK, linewidth=1.2, zorder=3)
    ax.set_yticks(range(len(verdicts)), [verdict.theorem.replace(", ", "\n", 1) for verdict in verdicts])
    ax.set_ylim(len(verdicts) - 0.5, -0.75)
    if not verdicts:
        ax.text(0.5, 0.5, report.map, transform=ax.transAxes, ha="center", color=INK)
    facts = [f"margin {report.distance_margin:.3g}"]
    if report.lipschitz is not None:
        facts.append(f"Lipschitz constant {report.lipschitz.tight:.3g}")
    if report.test_error is not None:
        facts.append(f"test error {report.test_error:.1%}")
    text = f"{report.estimator}: {', '.join(facts)}" if title is None else title
    _finish(ax, text, "what the condition takes, in halves of the margin (met up to 1)", "", ticks=True)
    return ax


def plot_objective(model: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """How a fitted `NSSE` got where it is: its objective and the width sigma, step by step.

    Parameters
    ----------
    model : fitted NSSE or NSSECV
    title : str, optional
    ax : matplotlib axes, optional
        The objective is drawn here, sigma on axes that share the steps with it.

    Returns
    -------
    matplotlib axes
        Those of the objective.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manifast import NSSE
    >>> from manifast.plotting import plot_objective
    >>> ax = plot_objective(NSSE(2).fit(*load_iris(return_X_y=True)))
    >>> ax.get_ylabel()
    'objective'
    """
    if not hasattr(model, "objective_history_") or not hasattr(model, "sigma_history_"):
        raise ValueError(
            f"model must be a fitted NSSE with objective_history_ and sigma_history_. Got {type(model).__name__}."
        )
    objective, sigma = list(model.objective_history_), list(model.sigma_history_)
    ax = _new_axes((6.4, 4.0)) if ax is None else ax
    (one,) = ax.plot(range(1, len(objective) + 1), objective, "o-", color=COLORS[0], label="objective")
    other = ax.twinx()
    (two,) = other.plot(range(1, len(sigma) + 1), sigma, "s--", color=COLORS[1], label="sigma", markersize=5)
    other.set_ylabel("sigma", color=COLORS[1])
    other.tick_params(axis="y", colors=COLORS[1], labelsize=9)
    other.spines[["top", "left"]].set_visible(False)
    ax.set_xticks(range(1, len(sigma) + 1))
    ax.legend(handles=[one, two], frameon=False)
    text = f"{type(model).__name__}: sigma {sigma[0]:.4g} to {sigma[-1]:.4g}" if title is None else title
    _finish(ax, text, "step", "objective", ticks=True)
    ax.yaxis.label.set_color(COLORS[0])
    return ax


class _Groups:
    """Rows by class or by number: their colours and markers, and the names that go with them."""

    def __init__(self, labels: Any, n: int, labels_new: Any, m: int) -> None:
        self.values = {"train": _labels(labels, n, "labels"), "new": _labels(labels_new, m, "labels_new")}
        given = [values for values in self.values.values() if values is not None]
        both = np.concatenate([values.astype(object) for values in given]) if len(given) > 1 else None
        self._scale: tuple[float, float] | None = None
        self.classes: list[Any] = []
        if given and all(values.dtype.kind == "f" and np.any(values % 1) for values in given):
            numbers = np.concatenate(given)
            self._scale = float(np.nanmin(numbers)), float(np.nanmax(numbers))
        elif given:
            found = set((given[0] if both is None else both).tolist())
            self.classes = sorted(found, key=lambda one: (str(type(one)), one))

    def draw(self, ax: Any, places: list[Array], which: str, *, back: bool, size: float) -> None:
        values = self.values[which]
        style: dict[str, Any] = {"s": size, "linewidths": 0}
        style |= {"zorder": 2, "alpha": 0.28 if len(places) == 3 else 0.35} if back else {"zorder": 3, "alpha": 0.9}
        if which == "new":
            style |= {"linewidths": 0.5, "edgecolors": "white"}
        if self._scale is not None and values is not None:
            drawn = ax.scatter(*places, c=values, cmap=_MAP, vmin=self._scale[0], vmax=self._scale[1], **style)
            if which == "train" or self.values["train"] is None:
                ax.figure.colorbar(drawn, ax=ax, shrink=0.8).solids.set_alpha(1)
            return
        if values is None:
            color = FAINT if back or (which == "train" and self.values["new"] is not None) else COLORS[0]
            if which == "new" and self.values["train"] is not None:
                color = INK
            ax.scatter(*places, color=color, **style)
            return
        for number, name in enumerate(self.classes):
            at = values == name
            if np.any(at):
                ax.scatter(*(column[at] for column in places), **self._look(number), **style)

    def write_names(self, ax: Any, places: list[Array], new_places: list[Array] | None) -> None:
        from matplotlib.patheffects import withStroke

        which = "train" if self.values["train"] is not None else "new"
        values = self.values[which]
        rows = places if which == "train" else new_places
        assert values is not None and rows is not None
        for number, name in enumerate(self.classes):
            at = values == name
            if not np.any(at):
                continue
            middle = [float(np.median(column[at])) for column in rows]
            glow = [withStroke(linewidth=3, foreground="white")]
            color = self._look(number)["color"]
            ax.text(*middle, str(name), weight="bold", size=12, ha="center", va="center", color=color,
                    path_effects=glow, zorder=5)  # fmt: skip

    def write_legend(self, ax: Any, new: bool) -> None:
        from matplotlib.lines import Line2D

        plain: dict[str, Any] = {"linestyle": "", "markersize": 6}
        handles = [
            Line2D([], [], color=look["color"], marker=look["marker"], label=str(name), **plain)
            for name, look in ((name, self._look(number)) for number, name in enumerate(self.classes))
        ]
        if new:
            handles.append(Line2D([], [], color=INK, marker="o", markeredgecolor="white", label="new rows", **plain))
        if not handles:
            return
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(handles) > 6 or len(ax.name) == 2 else {}
        ax.legend(handles=handles, frameon=False, fontsize=9, handletextpad=0.3, **beside)

    @staticmethod
    def _look(number: int) -> dict[str, Any]:
        return {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number // len(COLORS) % len(MARKERS)]}


def _draw_images(ax: Any, images: Any, places: list[Array], most: int) -> None:
    """Pictures at the places of rows that are not too close to one already drawn."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    pictures = np.asarray(images)
    if pictures.ndim not in (3, 4) or len(pictures) != len(places[0]):
        raise ValueError(f"images must have shape ({len(places[0])}, height, width). Got {pictures.shape} instead.")
    if len(places) != 2:
        raise ValueError("images can be drawn in 2 dimensions only. Got 3.")
    points = np.stack(places, axis=1)
    extent = np.ptp(points, axis=0)
    points = points / np.where(extent > 0, extent, 1)
    apart, shown = 0.075, np.empty((0, 2))
    zoom = 26.0 / max(pictures.shape[1:3])
    for i in range(len(points)):
        if len(shown) >= most:
            break
        if len(shown) and np.min(np.abs(shown - points[i]).max(axis=1)) < apart:
            continue
        shown = np.vstack([shown, points[i]])
        box = AnnotationBbox(
            OffsetImage(pictures[i], zoom=zoom, cmap="gray_r" if pictures.ndim == 3 else None),
            (places[0][i], places[1][i]), pad=0.1, bboxprops={"edgecolor": FAINT, "linewidth": 0.5},
        )  # fmt: skip
        box.set_zorder(4)
        ax.add_artist(box)


def _new_axes(size: tuple[float, float], projection: str | None = None) -> Any:
    """Axes of a figure of their own, which needs no display and is freed with its last reference."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure.add_subplot(projection=projection)


def _finish(ax: Any, title: str | None, x: str, y: str, *, ticks: bool = False) -> None:
    ax.set_facecolor("white")
    if title:
        ax.set_title(title, fontsize=11, color=INK)
    ax.set_xlabel(x, fontsize=9, color=INK)
    ax.set_ylabel(y, fontsize=9, color=INK)
    ax.tick_params(colors=INK, labelsize=9)
    if not ticks:
        ax.set_xticks([])
        ax.set_yticks([])
        if ax.name == "3d":
            ax.set_zticks([])
    if ax.name != "3d":
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color("#888888")


def _rows(value: Any, name: str, columns: int | None = None) -> Array:
    return as_matrix(getattr(value, "embedding_", value), name, min_rows=1, columns=columns)


def _components(given: Any, d: int, solid: bool) -> list[int]:
    try:
        chosen = list(range(min(3 if solid else 2, d))) if given is None else [index(c) for c in given]
    except TypeError:
        chosen = []
    if d == 1 and given is None and not solid:
        return [0]
    if len(chosen) not in (2, 3) or not all(0 <= c < d for c in chosen):
        raise ValueError(f"components must be 2 or 3 numbers from 0 to {d - 1}. Got {shown(given)} instead.")
    return chosen


def _columns(rows: Array, chosen: list[int]) -> list[Array]:
    if len(chosen) == 1:
        return [np.arange(len(rows), dtype=np.float64), rows[:, 0]]
    return [rows[:, c] for c in chosen]


def _labels(values: Any, n: int, name: str) -> Array | None:
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n,):
        raise ValueError(f"{name} must hold one label per row, {n}. Got shape {found.shape} instead.")
    return found


_KEYS = ("error", "standard_error", "fit_seconds", "predict_seconds")


def _table(comparison: Any) -> list[dict[str, Any]]:
    """Rows with all keys; None where a value is not known."""
    given = getattr(comparison, "results", comparison)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ValueError(f"comparison must be rows with a name and an error each. Got {type(given).__name__} instead.")
    rows = []
    for row in given:
        held = row if isinstance(row, Mapping) else {key: getattr(row, key, None) for key in ("name", *_KEYS)}
        if held.get("name") is None:
            raise ValueError(f"comparison must be rows with a name and an error each. Got {row!r}.")
        values = {key: held.get(key) for key in _KEYS}
        rows.append(
            {"name": held["name"]}
            | {key: _known(value, key) for key, value in values.items()}
        )
    if not rows:
        raise ValueError("comparison must have at least 1 row. Got none.")
    return rows


def _known(value: Any, key: str) -> float | None:
    """A number of a table, None where there is none."""
    try:
        number = float("nan") if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if number < 0:
        raise ValueError(f"{key} must be a number of at least 0, or None. Got {shown(value)}.")
    return number if np.isfinite(number) else None


def _verdict_words(verdict: Any, share: float) -> str:
    if not verdict.bound.condition_holds:
        return f"not met, by a factor of {share:.3g}" if np.isfinite(share) else "not met: the margin is 0"
    if verdict.bound.probability <= 0:
        return "met, but the probability it gives is 0"
    return f"met: right with probability at least {verdict.bound.probability:.4g}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.0f} µs"
