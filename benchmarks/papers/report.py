"""Finished cells as Markdown, JSON and PNG: means and standard errors beside what the papers print."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.papers.model import Cell, Experiment
from benchmarks.papers.runner import Options, Task, stored

Summary = dict[str, Any]  # "numbers": way, measure, row, column -> mean, standard error, splits; "curves" the same


def summarize(experiment: Experiment, options: Options) -> Summary:
    """Means over the splits that are finished."""
    cells: dict[tuple[bool, str, str], list[Cell]] = {}
    for task, cell in stored(experiment, options):
        cells.setdefault((task.paper, task.row, task.column), []).append(cell)
    numbers: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for (paper, row, column), runs in cells.items():
        way = "as in the paper" if paper else "chosen on training data"
        for measure in experiment.shows:
            values = [run[measure] for run in runs if measure in run][: 1 if measure in experiment.once else None]
            if not values:
                continue
            place = (way, measure, row, column)
            if isinstance(values[0], Mapping) and "candidates" in values[0]:
                _put(numbers, place, _best(values, measure in experiment.largest))
            elif isinstance(values[0], Mapping) and "x" in values[0]:
                _put(curves, place, _mean_curve(values))
            elif not isinstance(values[0], Mapping):
                _put(numbers, place, _mean(values))
        for measure, curve in experiment.best_of.items():
            values = [run[curve] for run in runs]
            _put(numbers, ("as in the paper", measure, row, column), _best_point(values, measure in experiment.largest))
    return {
        "name": experiment.name,
        "title": experiment.title,
        "quick": options.quick,
        "numbers": numbers,
        "curves": curves,
    }


def outside(experiment: Experiment, summary: Summary) -> list[str]:
    """Figures of the quick form that left their range, or are not there."""
    found = []
    numbers = summary["numbers"].get("chosen on training data", {})
    for measure, columns in experiment.ranges.items():
        for column, (low, high) in columns.items():
            for row in experiment.row_names(True):
                entry = numbers.get(measure, {}).get(row, {}).get(column)
                if entry is None:
                    found.append(f"{experiment.name}: {measure} of {column} on {row} is missing")
                elif not low <= entry["mean"] <= high:
                    found.append(
                        f"{experiment.name}: {measure} of {column} on {row} is {entry['mean']:.4g}, "
                        f"not from {low:g} to {high:g}"
                    )
    return found


def write_report(experiment: Experiment, options: Options) -> Summary:
    """NAME.md, NAME.json and, where there is something to draw and matplotlib is installed, NAME.png."""
    summary = summarize(experiment, options)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{experiment.name}.json").write_text(json.dumps(summary, indent=1) + "\n")
    drawn = _draw(experiment, options, summary)
    text = [f"# {experiment.title}", "", *_introduction(experiment, options)]
    for measures in summary["numbers"].values() if experiment.ranked else ():
        text += [*_ranking(experiment, measures, _choices(experiment, options)), ""]
    for way, measures in summary["numbers"].items():
        for measure, rows in measures.items():
            if experiment.ranked not in ("", measure):
                continue  # its means stand in the ranking
            text += [
                f"**{_capital(experiment.shows[measure])}** ({way}):",
                "",
                *_table(experiment, measure, rows, options),
                "",
            ]
    for way, measures in summary["curves"].items():
        for measure, rows in measures.items():
            text += [f"**{_capital(experiment.shows[measure])}** along the curves ({way}):", ""]
            text += [*_curve_table(rows, measure in experiment.largest), ""]
    if drawn:
        text += [f"![{experiment.title}]({experiment.name}.png)", ""]
    (options.output / f"{experiment.name}.md").write_text("\n".join(text))
    return summary


def markdown_table(head: list[str], lines: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---", *["--:"] * (len(head) - 1)], *lines)]


def _put(tree: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for name in place[:-1]:
        tree = tree.setdefault(name, {})
    tree[place[-1]] = value


def _mean(values: list[float]) -> dict[str, float]:
    """Eight digits: more do not repeat over thread counts."""
    spread = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return {
        "mean": float(f"{np.mean(values):.8g}"),
        "standard_error": float(f"{spread:.8g}"),
        "splits": len(values),
    }


def _best(values: list[Any], largest: bool) -> dict[str, Any]:
    """The candidate whose mean over the splits is best: what the papers call the best average rate."""
    common = [key for key in values[0]["candidates"] if all(key in run["candidates"] for run in values)]
    means = {key: _mean([run["candidates"][key] for run in values]) for key in common}
    key = (max if largest else min)(means, key=lambda name: means[name]["mean"])
    return means[key] | {"parameters": key}


def _best_point(values: list[Any], largest: bool) -> dict[str, Any]:
    """The point of the mean curve that is best: what the papers print of a curve."""
    common = [x for x in values[0]["x"] if all(x in run["x"] for run in values)]
    runs = [{"candidates": {f"{x:g}": run["y"][run["x"].index(x)] for x in common}} for run in values]
    return _best(runs, largest)


def _mean_curve(values: list[Any]) -> dict[str, Any]:
    """At the places that all splits have."""
    common = [x for x in values[0]["x"] if all(x in run["x"] for run in values)]
    at = [_mean([run["y"][run["x"].index(x)] for run in values]) for x in common]
    return {
        "x": common,
        "mean": [point["mean"] for point in at],
        "standard_error": [point["standard_error"] for point in at],
        "label": values[0].get("label", ""),
    }


def _introduction(experiment: Experiment, options: Options) -> list[str]:
    splits = min(options.splits, experiment.splits or options.splits)
    beside = "; in brackets what the paper prints" if experiment.printed else "; the paper prints no figures here"
    beside = "" if experiment.ranked else beside
    what = f"Mean ± standard error of {splits} splits" if splits > 1 else "One split"
    lines = [f"{what}{beside}."]
    if options.quick:
        lines.append("Quick form on digits or generated data: it checks that all of it runs, and shows nothing else.")
    return [" ".join([*lines, experiment.note]).strip(), ""]


def _table(experiment: Experiment, measure: str, rows: Mapping[str, Any], options: Options) -> list[str]:
    columns = [name for name in experiment.column_names() if any(name in cells for cells in rows.values())]
    printed = {} if options.quick else experiment.printed.get(measure, {})
    lines = []
    for row, cells in rows.items():
        best = (max if measure in experiment.largest else min)(cells.values(), key=lambda entry: entry["mean"])
        line = [row]
        for name in columns:
            entry = cells.get(name)
            text = "" if entry is None else _short(entry["mean"])
            if entry is not None and entry["splits"] > 1:
                text += f" ± {_short(entry['standard_error'])}"
            if entry is best and len(columns) > 1:
                text = f"**{text}**"
            if name in printed.get(row, {}):
                text += f" ({printed[row][name]:g})"
            line.append(text)
        lines.append(line)
    table = [["", *(experiment.names.get(name, name) for name in columns)], *lines]
    if experiment.ranked:  # methods are many: they go down the page
        table = [list(column) for column in zip(*table, strict=True)]
    return markdown_table(table[0], table[1:])


def _choices(experiment: Experiment, options: Options) -> dict[str, str]:
    """Names of the parameters that every column chose."""
    names: dict[str, list[str]] = {}
    for task, cell in stored(experiment, options):
        for part in ("chosen", "inside"):
            names.setdefault(task.column, []).extend(json.loads(cell[part]))
    return {column: ", ".join(dict.fromkeys(found)) or "none" for column, found in names.items()}


def _ranking(experiment: Experiment, measures: Mapping[str, Any], choices: Mapping[str, str]) -> list[str]:
    """Columns from best to worst mean rank over the rows, with the means of all measures."""
    rows = list(measures[experiment.ranked].values())
    names = [name for name in experiment.column_names() if all(name in cells for cells in rows)]
    scores = np.array([[cells[name]["mean"] for name in names] for cells in rows])
    ranks = np.mean(
        [(row[:, None] > row).sum(axis=1) + 1 + 0.5 * ((row[:, None] == row).sum(axis=1) - 1) for row in scores], axis=0
    )
    lines = [
        [
            experiment.names.get(names[at], names[at]),
            f"{ranks[at]:.1f}",
            *(
                _short(float(np.mean([cells[names[at]]["mean"] for cells in part.values()])))
                for part in measures.values()
            ),
            choices.get(names[at], "none"),
        ]
        for at in np.argsort(ranks, kind="stable")
    ]
    return [
        "**Mean rank and means over the rows:**",
        "",
        *markdown_table(["", "rank", *(experiment.shows[name] for name in measures), "chosen on training rows"], lines),
    ]


def _curve_table(rows: Mapping[str, Any], largest: bool) -> list[str]:
    lines = []
    for row, cells in rows.items():
        for column, curve in cells.items():
            best = int((np.argmax if largest else np.argmin)(curve["mean"]))
            ends = [_short(curve["mean"][at]) for at in (0, best, -1)]
            lines.append(
                [
                    row,
                    column,
                    f"{ends[0]} at {curve['x'][0]:.4g}",
                    f"{ends[1]} at {curve['x'][best]:.4g}",
                    f"{ends[2]} at {curve['x'][-1]:.4g}",
                ]
            )
    return markdown_table(["", "", "first", "best", "last"], lines)


def _short(value: float) -> str:
    return (
        f"{value:.1f}"
        if 10 <= abs(value) < 1e4
        else f"{value:.3g}"
        if abs(value) < 1 or abs(value) >= 1e4
        else f"{value:.2f}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _draw(experiment: Experiment, options: Options, summary: Summary) -> bool:
    points = list(_points(experiment, options))
    panels = [
        (way, measure, row, cells)
        for way, measures in summary["curves"].items()
        for measure, rows in measures.items()
        for row, cells in rows.items()
    ]
    if not panels and not points:
        return False
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return False
    count = len(panels) or len(points)
    across = min(3 if panels else 4, count)
    figure = pyplot.figure(figsize=((4.0 if panels else 2.6) * across, (3.0 if panels else 2.6) * -(-count // across)))
    for at, (way, measure, row, cells) in enumerate(panels, 1):
        axes = figure.add_subplot(-(-count // across), across, at)
        for column, curve in cells.items():
            axes.errorbar(
                curve["x"], curve["mean"], curve["standard_error"], label=column, linewidth=1, marker=".", markersize=3
            )
        axes.set_title(
            f"{row}: {experiment.shows[measure]}" + (", " + way if len(summary["curves"]) > 1 else ""), fontsize=7
        )
        axes.set_xlabel(next(iter(cells.values()))["label"], fontsize=7)
        axes.tick_params(labelsize=6)
        if experiment.logarithmic:
            axes.set_xscale("log")
        axes.legend(fontsize=6)
    for at, (title, value) in enumerate([] if panels else points, 1):
        places = np.array(value["points"])
        solid = places.shape[1] == 3
        axes = figure.add_subplot(-(-count // across), across, at, **({"projection": "3d"} if solid else {}))
        if places.shape[1] == 1:
            places = np.column_stack([places[:, 0], np.asarray(value["classes"])])
        axes.scatter(
            *places.T, c=value["classes"], s=3, cmap="coolwarm" if len(set(value["classes"])) == 2 else "nipy_spectral"
        )
        axes.set_title(title, fontsize=7)
        axes.tick_params(labelsize=5)
    figure.tight_layout()
    figure.savefig(
        options.output / f"{experiment.name}.png",
        dpi=(70 if count <= 3 else 45) if panels else 30,
        metadata={"Software": None},
    )
    pyplot.close(figure)
    return True


def _points(experiment: Experiment, options: Options) -> Iterator[tuple[str, Any]]:
    """Scatter plots of the first split."""
    task: Task
    for task, cell in stored(experiment, options):
        for measure in experiment.shows:
            value = cell.get(measure)
            if task.split == 0 and not task.paper and isinstance(value, Mapping) and "points" in value:
                yield f"{task.row}, {task.column}: {experiment.shows[measure]}", value
