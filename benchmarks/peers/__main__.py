"""Ours against named peers: same data, same threads, equal results checked, all in one run.

    python benchmarks/peers [--threads 1 2] [--only dense knn.flat_index ...] [--missing] [--file FILE] [--strict]

Each part is a module of this folder, and its COMPARISONS are functions of a number of threads that return rows. A ratio
is the peer's time over ours. Rows go to benchmarks/results/peers.json after every comparison, in place of older ones,
so that a run can be cut into pieces (`--only`) or go on where it was stopped (`--missing`); benchmarks/tables.py makes
the tables. A peer that is not installed is named as missing, and so is its bar.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.measure import Row
from benchmarks.results import FOLDER, best_blas, keep, read

PARTS = (
    "dense", "knn", "graph", "l1", "embeddings", "extensions", "supervised", "semisupervised", "propagation",
    "metrics", "threads",
)  # fmt: skip


def comparisons() -> dict[str, Callable[[int], Row | list[Row]]]:
    """All comparisons by part and name."""
    found = {}
    for part in PARTS:
        for compare in importlib.import_module(f"benchmarks.peers.{part}").COMPARISONS:
            found[f"{part}.{compare.__name__}"] = compare
    return found


def record(name: str, row: Row) -> dict[str, Any]:
    return {
        "comparison": name,
        "work": row.name,
        "threads": row.threads,
        "seconds": row.ours_seconds,
        "peer": row.peer_name,
        "peer_seconds": row.peer_seconds,
        "ratio": row.ratio,
        "bar": row.bar,
        "agreed": row.equal,
        "note": row.note,
    }


def line(row: Row) -> str:
    ratio = "no peer" if row.ratio is None else f"{row.ratio:.2f}x"
    bar = "" if row.bar is None else f" of {row.bar:.2f}x{', MISSED' if row.missed else ''}"
    ours = f"{row.name}, {row.threads} thread(s): {1e3 * row.ours_seconds:.3g} ms"
    return f"{ours}, {ratio} {row.peer_name}{bar} ({row.note})"


def main() -> int:
    best_blas()
    parser = argparse.ArgumentParser(description="Compare manifast with named peers.")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", default=list(PARTS), help="parts, or comparisons as part.name")
    parser.add_argument("--missing", action="store_true", help="leave out comparisons that the file already has")
    parser.add_argument("--file", type=Path, default=FOLDER / "peers.json", help="where the rows go")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed")
    options = parser.parse_args()
    known = comparisons()
    chosen = [name for name in known if name in options.only or name.partition(".")[0] in options.only]
    unknown = {name for name in options.only if name not in PARTS and name not in known}
    if unknown:
        parser.error(f"no comparison {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for threads in options.threads:
        done = {row["comparison"] for row in read(options.file)["rows"] if row["threads"] == threads}
        for name in chosen:
            if options.missing and name in done:
                continue
            found = known[name](threads)
            found = found if isinstance(found, list) else [found]
            keep(options.file, ("work", "threads", "peer"), [record(name, row) for row in found])
            rows += found
            print("\n".join(line(row) for row in found), flush=True)
    barred = [row for row in rows if row.bar is not None]
    missed = [row for row in barred if row.missed]
    print(f"{len(barred) - len(missed)} of {len(barred)} bars reached")
    return 1 if options.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
