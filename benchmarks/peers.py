"""Our kernels against named peers: same data, same threads, equal results checked, all in one run.

    python benchmarks/peers.py [--threads 1 2] [--only dense knn graph l1 embeddings extensions ...] [--markdown]
                               [--json FILE] [--strict]

Each part is a module peers_<part>.py with compare_<part>(threads) -> list of rows. A ratio is the peer's time over
ours. A peer that is not installed is named as missing, and so is its bar.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import platform
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import Row
from manifast._config import config

PARTS = (
    "dense", "knn", "graph", "l1", "embeddings", "extensions", "supervised", "semisupervised", "propagation",
    "metrics",
)  # fmt: skip
PEERS = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "spams-bin", "pyamg", "tapkee", "umap-learn")


def machine() -> dict[str, str]:
    """What the figures depend on."""
    ours = config()
    return {
        "processor": _processor(),
        "instruction set": ours["instruction set in use"],
        "threads of the process": str(ours["threads"]),
        "python": ours["python"],
        "manifast": f"{ours['manifast']} ({ours['compiler']}, OpenMP {ours['openmp']})",
        "blas": ", ".join(ours["blas"]),
        **{name: _version(name) for name in PEERS},
    }


def collect(parts: list[str], threads: list[int]) -> tuple[list[Row], list[str]]:
    """The rows of all parts that exist, and the parts that do not."""
    rows, absent = [], []
    for part in parts:
        name = f"benchmarks.peers_{part}"
        if importlib.util.find_spec(name) is None:
            absent.append(part)
            continue
        compare = getattr(importlib.import_module(name), f"compare_{part}")
        for count in threads:
            print(f"{part}, {count} thread(s) ...", file=sys.stderr, flush=True)
            rows += compare(count)
    return rows, absent


def cells(row: Row) -> list[str]:
    return [
        row.name,
        str(row.threads),
        _time(row.ours_seconds),
        row.peer_name,
        _time(row.peer_seconds),
        "" if row.ratio is None else f"{row.ratio:.2f}x",
        "" if row.bar is None else f"{row.bar:.2f}x",
        ("MISSED, " if row.missed else "") + row.note,
    ]


HEAD = ["work", "threads", "manifast", "peer", "peer's time", "ratio", "bar", "note"]


def table(rows: list[Row], *, markdown: bool) -> str:
    body = [cells(row) for row in rows]
    if markdown:
        lines = [HEAD, ["---", "--:", "--:", "---", "--:", "--:", "--:", "---"], *body]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    width = [max(len(line[column]) for line in [HEAD, *body]) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)) for line in [HEAD, *body])


def verdict(rows: list[Row], absent: list[str]) -> str:
    missed = [row for row in rows if row.missed]
    lines = [f"no benchmarks/peers_{part}.py: that part was not measured" for part in absent]
    for row in missed:
        if row.ratio is None:
            why = f"{row.peer_name} is not installed"
        elif not row.equal:
            why = f"results differ: {row.note}"
        else:
            why = f"{row.ratio:.2f}x of {row.bar:.2f}x"
        lines.append(f"missed: {row.name}, {row.threads} thread(s): {why}")
    barred = sum(row.bar is not None for row in rows)
    return "\n".join([*lines, f"{barred - len(missed)} of {barred} bars reached"])


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare manifast's kernels with named peers.")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", type=Path, help="also write rows and machine to this file")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed")
    options = parser.parse_args()
    rows, absent = collect(options.only, options.threads)
    about = machine()
    print("\n".join(f"{'* ' if options.markdown else ''}{key}: {value}" for key, value in about.items()))
    print(f"\n{table(rows, markdown=options.markdown)}\n\n{verdict(rows, absent)}")
    if options.json:
        found = [asdict(row) | {"ratio": row.ratio, "missed": row.missed} for row in rows]
        options.json.write_text(json.dumps({"machine": about, "absent": absent, "rows": found}, indent=1) + "\n")
    return 1 if options.strict and any(row.missed for row in rows) else 0


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "missing"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.{1 if seconds >= 0.01 else 2}f} ms"


if __name__ == "__main__":
    sys.exit(main())
