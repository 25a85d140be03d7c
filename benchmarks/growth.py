"""How time and memory of every estimator grow with the number of rows, with the slopes of log time over log rows.

    python benchmarks/growth.py [--only LTSA Isomap ...] [--sizes 1000 3000 ...] [--limit 20] [--memory 8]
    python benchmarks/growth.py --only "LaplacianEigenmaps" --data roll --sizes 1000000 --limit 120

Every size is fitted in a process of its own: time of `fit`, the shortest of five where it takes less than half a
second, time of `transform` (or `predict`) of 1000 new rows, the shortest of ten calls, and by how much the peak of the
memory grew over the data and the imports. Rows go to benchmarks/results/growth.json one by one, and a run goes on where
it was stopped (`--again` measures anew). A method ends where a size takes longer than `limit` seconds or needs more
than `memory` gigabytes; the row says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.results import FOLDER, keep, read

SIZES = (1000, 3000, 10_000, 30_000, 100_000)
NEW_ROWS = 1000

# Estimator, parameters and kind of data: a Swiss roll (3 features), or overlapping clusters of 50 features with all
# labels or with 100.
CASES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("LaplacianEigenmaps", {}, "roll"),
    ("DiffusionMaps", {"n_neighbors": 10}, "roll"),
    ("LocallyLinearEmbedding", {}, "roll"),
    ("LTSA", {}, "roll"),
    ("LocalRegressionEmbedding", {}, "roll"),
    ("Isomap", {}, "roll"),
    ("Isomap", {"n_landmarks": 500}, "roll"),
    ("ClassicalMDS", {}, "roll"),
    ("ClassicalMDS", {"n_landmarks": 500}, "roll"),
    ("LGRM", {}, "roll"),
    ("LPP", {}, "roll"),
    ("NPE", {}, "roll"),
    ("LLTSA", {}, "roll"),
    ("SpectralRegression", {}, "roll"),
    ("LaplacianEigenmaps", {}, "clusters"),
    ("LocallyLinearEmbedding", {}, "clusters"),
    ("LTSA", {}, "clusters"),
    ("SupervisedLaplacianEigenmaps", {}, "labels"),
    ("FisherEmbedding", {}, "labels"),
    ("LabelEncoding", {}, "labels"),
    ("NSSE", {}, "labels"),
    ("RBFDiscriminant", {}, "labels"),
    ("LDE", {}, "labels"),
    ("LFDA", {}, "labels"),
    ("SupervisedIsomap", {}, "labels"),
    ("TPTSSR", {}, "labels"),
    ("ElasticEmbedding", {}, "some labels"),
    ("SDA", {}, "some labels"),
    ("SDE", {}, "some labels"),
    ("TCA", {}, "some labels"),
    ("GFHF", {}, "some labels"),
    ("LGC", {}, "some labels"),
    ("RMGT", {}, "some labels"),
    ("LapRLS", {}, "some labels"),
    ("FME", {}, "some labels"),
)


def data(kind: str, n: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Rows, labels and new rows of one distribution."""
    from sklearn.datasets import make_blobs, make_swiss_roll

    if kind == "roll":
        X = make_swiss_roll(n + NEW_ROWS, random_state=0)[0]
        return X[:n], None, X[n:]
    X, y = make_blobs(n + NEW_ROWS, 50, centers=10, cluster_std=10.0, random_state=0)
    labels = {"clusters": None, "labels": y[:n], "some labels": np.where(np.arange(n) < 100, y[:n], -1)}[kind]
    return X[:n], labels, X[n:]


def peak() -> float:
    """Bytes that this process held at most."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024.0 * int(line.split()[1])


def measure(name: str, parameters: dict[str, Any], kind: str, n: int) -> dict[str, float]:
    """Fit and map, the shorter the more often; a small fit before it loads what is loaded late."""
    import manifast

    warnings.simplefilter("ignore")
    model = getattr(manifast, name)(**parameters)
    X, y, new = data(kind, 600)
    model.fit(X, y)
    X, y, new = data(kind, n)
    before, start = peak(), perf_counter()
    model.fit(X, y)
    found = {"fit_seconds": perf_counter() - start, "fit_bytes": peak() - before}
    for _ in range(4 if found["fit_seconds"] < 0.5 else 0):  # so short that a busy moment would count
        start = perf_counter()
        model.fit(X, y)
        found["fit_seconds"] = min(found["fit_seconds"], perf_counter() - start)
    call = model.transform if hasattr(model, "transform") else model.predict
    times = []
    for _ in range(10):
        start = perf_counter()
        call(new)
        times.append(perf_counter() - start)
    return {**found, "transform_seconds": min(times)}


def measured_alone(case: tuple[str, dict[str, Any], str], n: int, limit: float, memory: float) -> dict[str, Any]:
    """`measure` in a process of its own, and a note where it did not come to an end."""
    code = (
        f"import json, resource, sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({int(memory * 2**30)},) * 2)\n"
        "from benchmarks.growth import measure\n"
        f"print(json.dumps(measure(*json.loads(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", code, json.dumps([*case, n])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit + 10)
    except subprocess.TimeoutExpired:
        return {"note": f"longer than {limit:g} s"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
        return {"note": f"more than {memory:g} GB" if "Memory" in last else last}
    found = json.loads(done.stdout)
    return {**found, "note": ""}


def title(name: str, parameters: dict[str, Any]) -> str:
    return name + "".join(f", {key} = {value}" for key, value in parameters.items())


def slope(rows: list[dict[str, Any]], what: str) -> float | None:
    """Log over log by least squares, over the last three sizes that are long enough to be measured."""
    points = [(row["n"], row[what]) for row in rows if row.get(what) and (what == "fit_bytes" or row[what] > 2e-4)][-3:]
    if len(points) < 2:
        return None
    logs = np.log(np.array(points, dtype=float))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description="Time and memory of every estimator over the number of rows.")
    parser.add_argument("--only", nargs="+", help="names of estimators")
    parser.add_argument("--data", nargs="+", help="kinds of data")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that one size may take")
    parser.add_argument("--memory", type=float, default=8.0, help="gigabytes that one process may address")
    parser.add_argument("--again", action="store_true", help="measure also what the file already has")
    parser.add_argument("--budget", type=float, default=1e9, help="begin nothing after this many seconds")
    parser.add_argument("--file", type=Path, default=FOLDER / "growth.json")
    options = parser.parse_args()
    begun = perf_counter()
    for case in CASES:
        name, parameters, kind = case
        if (options.only and name not in options.only) or (options.data and kind not in options.data):
            continue
        for n in sorted(options.sizes):
            known = [
                row for row in read(options.file)["rows"]
                if (row["estimator"], row["data"]) == (title(name, parameters), kind)
            ]  # fmt: skip
            if any(row["note"] and row["n"] <= n for row in known):
                break
            if any(row["n"] == n for row in known) and not options.again:
                continue
            if perf_counter() - begun > options.budget:
                return 0
            found = measured_alone(case, n, options.limit, options.memory)
            row = {"estimator": title(name, parameters), "data": kind, "n": n, **found}
            keep(options.file, ("estimator", "data", "n"), [row])
            print(json.dumps(row), flush=True)
            if found["note"] or found["fit_seconds"] > options.limit:
                break
    rows = read(options.file)["rows"]
    for name, parameters, kind in CASES:
        own = sorted(
            (row for row in rows if (row["estimator"], row["data"]) == (title(name, parameters), kind)),
            key=lambda row: row["n"],
        )
        slopes = ", ".join(
            f"{what} {value:.2f}" for what, key in
            (("fit", "fit_seconds"), ("transform", "transform_seconds"), ("memory", "fit_bytes"))
            if (value := slope(own, key)) is not None
        )  # fmt: skip
        print(f"{title(name, parameters)} ({kind}): slopes {slopes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
