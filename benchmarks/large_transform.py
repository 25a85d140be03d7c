"""Rows past memory: `transform_to` from a memory map against `transform` of the same rows in memory.

    python -m benchmarks.large_transform --rows 20000000 --folder /somewhere/with/6/GB

makes rows of 64 float32 features on a noisy 5-dimensional manifold, fits a map to 2000 landmarks of a sample of 10,000,
and measures both in processes of their own: seconds, and for `transform_to` the largest resident memory. The bars are
1 GB and 1.15 times the seconds in memory. In memory the rows need 5 GB for 20,000,000.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import manifast
from manifast.scale import sample_rows, transform_to

FEATURES, BLOCK, LANDMARKS, SAMPLE = 64, 1 << 18, 2000, 10_000


def make_rows(path: Path, rows: int) -> None:
    """The file, written block by block, where it is not there yet."""
    if path.exists() and np.load(path, mmap_mode="r").shape == (rows, FEATURES):
        return
    axes = np.random.default_rng(0).standard_normal((2, 5, FEATURES)).astype(np.float32)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (rows, FEATURES))
    for begin in range(0, rows, BLOCK):
        rng = np.random.default_rng([1, begin])
        inner = rng.uniform(-1, 1, (min(BLOCK, rows - begin), 5)).astype(np.float32)
        noise = rng.standard_normal((len(inner), FEATURES), np.float32)
        out[begin : begin + len(inner)] = np.tanh(inner @ axes[0]) + inner @ axes[1] + 0.05 * noise
        out.flush()


def peak() -> int:
    """The largest resident memory of this process so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


def measure(what: str, folder: Path) -> None:
    """One of the two ways, in this process; prints seconds and megabytes."""
    model = manifast.load(folder / "model.manifast")
    begin = perf_counter()
    if what == "file":
        transform_to(model, folder / "rows.npy", folder / "images.npy")
    else:
        X = np.load(folder / "rows.npy")
        begin = perf_counter()
        images = model.transform(X)
        assert len(images) == len(X)
    print(f"{perf_counter() - begin:.2f} {peak()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--part", choices=("file", "memory"), help="measure one way in this process")
    options = parser.parse_args()
    if options.part:
        measure(options.part, options.folder)
        return
    rows = options.folder / "rows.npy"
    make_rows(rows, options.rows)
    begin = perf_counter()
    sample = sample_rows(rows, min(SAMPLE, options.rows))
    print(f"sample of {len(sample)} rows: {perf_counter() - begin:.1f} s")
    begin = perf_counter()
    model = manifast.OutOfSample(manifast.Isomap(5), landmarks=min(LANDMARKS, len(sample))).fit(sample)
    taken = perf_counter() - begin
    print(f"fit to {len(model.landmarks_)} landmarks: {taken:.1f} s, error {model.landmark_error_:.2f}")
    manifast.save(model, options.folder / "model.manifast")
    best = {}
    for _ in range(options.rounds):
        for part in ("file", "memory"):
            command = [sys.executable, "-m", "benchmarks.large_transform", "--part", part, "--folder", options.folder]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, megabytes = map(float, done.stdout.split())
            best[part] = min(best.get(part, (seconds, megabytes)), (seconds, megabytes))
            print(f"{part:>6}: {seconds:.1f} s, {megabytes:.0f} MB")
    images, X = (np.load(options.folder / name, mmap_mode="r") for name in ("images.npy", "rows.npy"))
    same = all(
        np.array_equal(images[at : at + 1000], model.transform(np.array(X[at : at + 1000])))
        for at in np.linspace(0, max(0, len(X) - 1000), 5).astype(int)
    )
    ratio = best["file"][0] / best["memory"][0]
    print(f"{options.rows} rows: {ratio:.2f} times the seconds in memory, {best['file'][1]:.0f} MB, same bits: {same}")


if __name__ == "__main__":
    main()
