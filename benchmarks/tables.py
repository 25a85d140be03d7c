"""The tables of the documentation, in Markdown, from the JSON files in benchmarks/results.

    python benchmarks/tables.py            # docs/_tables/peers.md, roofline.md, growth.md, ...; README.md itself
    python benchmarks/tables.py --check    # exit with 1 where a table is not what the files give

Figures are never typed: measure again (benchmarks/peers, roofline.py, growth.py, defaults.py, study_graphs.py) and run
this.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.growth import slope
from benchmarks.results import FOLDER, read

TABLES = Path(__file__).resolve().parents[1] / "docs" / "_tables"
README_FILE = TABLES.parents[1] / "README.md"

PARTS = {
    "dense": "Distances, Gaussian kernels, affine products",
    "knn": "Exact neighbours by brute force",
    "graph": "Neighbours by kd-tree, graphs and Laplacians",
    "l1": "Sparse codes",
    "embeddings": "Embeddings",
    "extensions": "Maps for new rows",
    "supervised": "NSSE",
    "semisupervised": "Elastic embedding",
    "propagation": "Label propagation",
    "metrics": "Quality of embeddings",
    "threads": "Several threads against one",
}
# The ten rows of README: the beginning of the work's name and of the peer's.
README = (
    ("knn self float32 20,000 x 64", "faiss"),
    ("sq_distances(X, Y) float64 3000 x 3000, p = 64", "scikit-learn"),
    ("rbf_apply float64 (m, n, p, d) = (200000, 1000, 3, 2)", "scikit-learn"),
    ("trustworthiness 5000 x 50, k = 5, two of the features", "scikit-learn"),
    ("LaplacianEigenmaps, Swiss roll 50,000", "scikit-learn kneighbors_graph + SpectralEmbedding, amg"),
    ("LocallyLinearEmbedding, standard", "scikit-learn"),
    ("LocallyLinearEmbedding, ltsa", "scikit-learn"),
    ("Isomap, Swiss roll 5000, k = 10", "scikit-learn"),
    ("Isomap.transform, 1,000 rows, n = 4000", "scikit-learn"),
    ("NSSE, Extended Yale, N = 840", "literal"),
)


def markdown(head: list[str], align: str, rows: list[list[str]]) -> str:
    """A table; `align` has l or r for every column."""
    rule = ["---" if side == "l" else "--:" for side in align]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *rows])


def seconds(value: float | None) -> str:
    """Three digits in the unit that fits."""
    if value is None:
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1 or unit == "µs":
            return f"{value * factor:.{max(0, 2 - len(str(int(value * factor))) + 1)}f} {unit}"
    raise AssertionError


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×" if value < 20 else f"{value:.0f}×"


def about(machine: dict[str, str]) -> str:
    """A paragraph that says where the figures come from."""
    skipped = ("processor", "cores", "instruction set", "system")
    versions = ", ".join(f"{name} {value}" for name, value in machine.items() if name not in skipped)
    return (
        f"Measured on {machine['processor']}, {machine['cores']} cores, {machine['system']}, instruction set "
        f"{machine['instruction set']}. Versions: {versions}."
    )


def peers() -> str:
    """One table per part. A row that misses its bar or whose results differ says so."""
    content = read(FOLDER / "peers.json")
    blocks = [about(content["machine"])]
    for part, caption in PARTS.items():
        rows = [row for row in content["rows"] if row["comparison"].partition(".")[0] == part]
        if not rows:
            continue
        body = [
            [
                row["work"], str(row["threads"]), seconds(row["seconds"]), row["peer"], seconds(row["peer_seconds"]),
                times(row["ratio"]), times(row["bar"]), "yes" if row["agreed"] else "**no**",
                ("**missed** " if missed(row) else "") + row["note"],
            ]
            for row in sorted(rows, key=lambda row: row["threads"])
        ]  # fmt: skip
        head = ["work", "threads", "manifast", "peer", "peer's time", "ratio", "bar", "agreed", "note"]
        blocks.append(f"**{caption}**\n\n{markdown(head, 'lrrlrrrll', body)}")
    barred = [row for row in content["rows"] if row["bar"] is not None]
    reached = sum(not missed(row) for row in barred)
    blocks.append(f"{reached} of {len(barred)} bars are reached.")
    return "\n\n".join(blocks)


def missed(row: dict[str, Any]) -> bool:
    return row["bar"] is not None and (row["ratio"] is None or row["ratio"] < row["bar"] or not row["agreed"])


def readme() -> str:
    """Ten rows for README: one thread, and the ratio on two beside it."""
    rows = read(FOLDER / "peers.json")["rows"]
    body = []
    for work, peer in README:
        found = [row for row in rows if row["work"].startswith(work) and row["peer"].startswith(peer)]
        one, two = (next((row for row in found if row["threads"] == count), None) for count in (1, 2))
        if one is not None:
            both = [times(one["ratio"]), "" if two is None else times(two["ratio"])]
            body.append([one["work"], one["peer"], seconds(one["seconds"]), seconds(one["peer_seconds"]), *both])
    head = ["work", "peer", "manifast, 1 thread", "peer", "ratio", "ratio, 2 threads"]
    return markdown(head, "llrrrr", body)


def in_readme(text: str, tables: dict[str, str]) -> str:
    """README with its tables as they are made, between the marks `<!-- table: name -->` and `<!-- end -->`."""
    for name, table in tables.items():
        mark = f"<!-- table: {name.removesuffix('.md')} -->\n"
        before, found, rest = text.partition(mark)
        if found:
            text = before + mark + table + rest[rest.index("<!-- end -->") :]
    return text


def roofline() -> str:
    """What the machine allows, then each kernel's part of it."""
    content = read(FOLDER / "roofline.json")
    lines = [about(content["machine"]), ""]
    for peak in content.get("peaks", []):
        rates = ", ".join(f"{dtype} {rate / 1e9:.0f} GFlop/s" for dtype, rate in peak["flops per second"].items())
        moved = peak["bytes per second"] / 1e9
        lines.append(f"* {peak['threads']} thread(s): {rates} ({peak['found by']}), copies {moved:.1f} GB/s")
    body = [
        [
            row["name"], row["dtype"], str(row["threads"]), f"{row['flops'] / 1e9:.2f}", f"{row['bytes'] / 1e6:.1f}",
            seconds(row["seconds"]), f"{row['flops'] / row['seconds'] / 1e9:.1f}",
            f"{row['bytes'] / row['seconds'] / 1e9:.1f}", row["bound_by"], f"{row['percent']:.0f} %",
        ]
        for row in content["rows"]
    ]  # fmt: skip
    head = ["kernel", "dtype", "threads", "GFlop", "MB", "time", "GFlop/s", "GB/s", "bound by", "of the bound"]
    return "\n".join([*lines, "", markdown(head, "llrrrrrrlr", body)])


def growth() -> str:
    """Fit, transform of 1000 rows and memory over the number of rows, with slopes."""
    content = read(FOLDER / "growth.json")
    rows = content["rows"]
    sizes = sorted({row["n"] for row in rows})
    cases = list(dict.fromkeys((row["estimator"], row["data"]) for row in rows))
    blocks = [about(content["machine"])]

    def megabytes(value: float) -> str:
        return f"{value / 1e6:,.0f} MB"

    for caption, key, show in (
        ("Time of `fit`", "fit_seconds", seconds),
        ("Time of `transform` or `predict` of 1000 new rows", "transform_seconds", seconds),
        ("Growth of the peak memory in `fit`", "fit_bytes", megabytes),
    ):
        body = []
        for name, kind in cases:
            own = sorted((row for row in rows if (row["estimator"], row["data"]) == (name, kind)), key=lambda r: r["n"])
            by_size = {row["n"]: show(row[key]) if key in row else row["note"] for row in own}
            exponent = slope(own, key)
            cells = [by_size.get(n, "") for n in sizes]
            body.append([name, kind, *cells, "" if exponent is None else f"{exponent:.2f}"])
        head = ["estimator", "data", *(f"n = {n:,}" for n in sizes), "slope"]
        blocks.append(f"**{caption}**\n\n{markdown(head, 'll' + 'r' * (len(sizes) + 1), body)}")
    return "\n\n".join(blocks)


RECOMMENDED = {"supervised": "RBFDiscriminantCV", "semisupervised": "RMGT"}


def defaults() -> str:
    """Errors of the recommended methods beside scikit-learn's, settings by methods, the best of a row in bold.

    Methods that were measured on other splits have a table of their own.
    """
    content = read(FOLDER / "defaults.json")["rows"]
    blocks = []
    splits = sorted({(list(RECOMMENDED).index(row["study"]), *row["seeds"]) for row in content})
    for at, first, last in splits:
        study = list(RECOMMENDED)[at]
        rows = [row for row in content if row["study"] == study and row["seeds"] == [first, last]]
        names = list(dict.fromkeys(row["method"] for row in rows))
        cells = {(row["set"], row["labels"], row["method"]): row for row in rows}
        settings = list(dict.fromkeys((row["set"], row["labels"]) for row in rows))
        body = []
        for setting in settings:
            found = [cells.get((*setting, name)) for name in names]
            best = min(row["error"] for row in found if row is not None)
            body.append([f"{setting[0]} {setting[1]}"] + ["" if row is None else error_of(row, best) for row in found])
        whole = [name for name in names if all((*setting, name) in cells for setting in settings)]
        sums = {name: sum(cells[(*setting, name)]["error"] for setting in settings) for name in whole}
        body.append(["mean"] + [f"{sums[name] / len(settings):.1f}" if name in sums else "" for name in names])
        said = f"Splits of seeds {first} to {last}, which chose nothing"
        if RECOMMENDED[study] in names:
            said += f"; recommended: `{RECOMMENDED[study]}`"
        pairs = [(cells.get((*s, "NSSECV")), cells.get((*s, "SUPLAP"))) for s in settings]
        level = [own["error"] <= other["error"] + own["standard error"] for own, other in pairs if own and other]
        if level:
            said += (
                "; `SUPLAP` is `SupervisedLaplacianEigenmaps`, and the error of `NSSECV` is above its error by at most "
                f"one standard error in {sum(level)} of {len(level)} rows"
            )
        blocks.append(f"{said}.\n\n{markdown(['set', *names], 'l' + 'r' * len(names), body)}")
    return "\n\n".join(blocks)


NAMES = {"coil20": "COIL-20", "orl": "ORL", "yaleb": "Extended Yale", "digits": "digits", "mnist10k": "MNIST"}
PEERS = {
    "supervised": ("LDA", "SVC", "1-NN"),
    "semisupervised": (
        "LabelSpreading",
        "SelfTraining(SVC)",
        "LabelSpreading, chosen",
        "SelfTraining(SVC), chosen",
    ),
}
COUNTED = {"supervised": "images per class", "semisupervised": "labels per class, the other rows unlabelled"}


def accuracy() -> str:
    """For README: the recommended methods and the best of scikit-learn's, a row per set."""
    content = read(FOLDER / "defaults.json")["rows"]
    body = []
    for study, ours in RECOMMENDED.items():
        rows = [row for row in content if row["study"] == study]
        for name in dict.fromkeys(row["set"] for row in rows):
            own = {row["labels"]: row["error"] for row in rows if (row["set"], row["method"]) == (name, ours)}
            peers = [row for row in rows if row["set"] == name and row["method"] in PEERS[study]]
            by_count = ([row for row in peers if row["labels"] == count] for count in own)
            best = [min((row["error"], row["method"]) for row in some) for some in by_count]
            body.append([
                f"{NAMES[name]}, {' / '.join(map(str, own))} {COUNTED[study]}",
                f"`{ours}` {' / '.join(f'{error:.1f}' for error in own.values())}",
                f"{' / '.join(f'{error:.1f} {peer}' for error, peer in best)}",
            ])  # fmt: skip
    peers = "the best of scikit-learn's LDA, SVC, 1-NN; LabelSpreading, SelfTraining, by default and chosen"
    return markdown(["data", "manifast, error in %", peers], "lll", body)


def error_of(row: dict[str, Any], best: float) -> str:
    text = f"{row['error']:.1f} ± {row['standard error']:.1f}"
    return f"**{text}**" if row["error"] == best else text


def graphs() -> str:
    """What width and number of neighbours do: two measures over the sets, then one table per set."""
    content = read(FOLDER / "graphs.json")["rows"]
    sets = list(dict.fromkeys(row["set"] for row in content))
    rules = list(dict.fromkeys(row["rule"] for row in content))
    choices = sorted({(row["rule"], row["n_neighbors"]) for row in content}, key=lambda c: (rules.index(c[0]), c[1]))
    value = {(row["set"], row["rule"], row["n_neighbors"], row["measure"]): row["value"] for row in content}
    blocks = []
    for measure in ("RMGT, 3 labels", "1-NN, Nyström"):
        shown = [name for name in sets if (name, *choices[0], measure) in value]
        found = {choice: [value[name, *choice, measure] for name in shown] for choice in choices}
        best = [min(column) for column in zip(*found.values(), strict=True)]
        body = []
        for (rule, k), errors in found.items():
            cells = [f"**{e:.1f}**" if e == least else f"{e:.1f}" for e, least in zip(errors, best, strict=True)]
            body.append([rule, str(k), *cells, f"{sum(errors) / len(errors):.1f}"])
        head = ["width", "neighbours", *shown, "mean"]
        blocks.append(f"**{measure}**: errors in %\n\n{markdown(head, 'l' + 'r' * (len(head) - 1), body)}")
    for name in sets:
        rows = [row for row in content if row["set"] == name]
        measures = [found for found in dict.fromkeys(row["measure"] for row in rows) if found != "components"]
        measures.append("components")
        body = [
            [rule, str(k), *(f"{value[name, rule, k, measure]:.3g}" for measure in measures)]
            for rule, k in dict.fromkeys((row["rule"], row["n_neighbors"]) for row in rows)
        ]
        head = ["width", "neighbours", *measures]
        splits = max(row["splits"] for row in rows)
        caption = f"**{name}**, means of {splits} splits"
        blocks.append(f"{caption}\n\n{markdown(head, 'l' + 'r' * (len(head) - 1), body)}")
    return "\n\n".join(blocks)


MAKERS: dict[str, tuple[str, Callable[[], str]]] = {
    "peers.md": ("peers.json", peers),
    "readme.md": ("peers.json", readme),
    "roofline.md": ("roofline.json", roofline),
    "growth.md": ("growth.json", growth),
    "defaults.md": ("defaults.json", defaults),
    "accuracy.md": ("defaults.json", accuracy),
    "graphs.md": ("graphs.json", graphs),
}


def made() -> dict[str, str]:
    """The text of every table whose results are there."""
    return {name: maker() + "\n" for name, (file, maker) in MAKERS.items() if (FOLDER / file).exists()}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of the documentation from the measured results.")
    parser.add_argument("--check", action="store_true", help="only tell whether they are up to date")
    options = parser.parse_args()
    stale = []
    for name, text in made().items():
        file = TABLES / name
        if file.exists() and file.read_text() == text:
            continue
        stale.append(name)
        if not options.check:
            TABLES.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    text = in_readme(README_FILE.read_text(), made())
    if text != README_FILE.read_text():
        stale.append(README_FILE.name)
        if not options.check:
            README_FILE.write_text(text)
    print(f"{'out of date' if options.check else 'written'}: {', '.join(stale) or 'nothing'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
