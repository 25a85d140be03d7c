"""How far each kernel is from what the processor and its memory allow, measured in one run.

    python benchmarks/roofline.py [--threads 1 2] [--file FILE]

The peak of multiply-adds comes from a loop that keeps independent ones in registers, compiled here for this machine
(without a C compiler: the best product of matrices by the BLAS, which may be less); the bandwidth from copying arrays
far larger than the caches. For each kernel the operations and bytes are the ones that its result needs: a multiply-add
counts two, an exponential none, every input is read and every output written once. The bound is the larger of the two
times that follow from them, and the percentage is the bound over the time measured. The rows go to
benchmarks/results/roofline.json, and benchmarks/tables.py makes the table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL, c_double, c_int64
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.measure import limited
from benchmarks.results import FOLDER, best_blas, keep, read
from manifast.kernels import gaussian, knn, laplacian, neighbor_graph, rbf_apply, sq_distances

PEAK = r"""
#include <stdint.h>
#if defined(__AVX512F__)
enum { BYTES = 64, SUMS = 16 };
#elif defined(__AVX__)
enum { BYTES = 32, SUMS = 12 };
#else
enum { BYTES = 16, SUMS = 12 };
#endif
#define LOOP(NAME, REAL)                                                                      \
    double NAME(int64_t n)                                                                    \
    {                                                                                         \
        typedef REAL vector __attribute__((vector_size(BYTES)));                              \
        vector sum[SUMS], a = (REAL)0.5 + (vector){0}, b = (REAL)1e-3 + (vector){0};          \
        _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] = (REAL)i - (vector){0}; \
        for (int64_t k = 0; k < n; k++)                                                       \
            _Pragma("GCC unroll 16") for (int i = 0; i < SUMS; i++) sum[i] = sum[i] * a + b;  \
        for (int i = 1; i < SUMS; i++) sum[0] += sum[i];                                      \
        return sum[0][0];                                                                     \
    }                                                                                         \
    int64_t NAME##_flops(void) { return 2 * SUMS * (int64_t)(BYTES / sizeof(REAL)); }
LOOP(peak_float64, double)
LOOP(peak_float32, float)
"""


STEPS = 2_000_000  # of the loop, some milliseconds


@dataclass(frozen=True)
class Point:
    """One kernel: what it has to compute and to move, and how long it took."""

    name: str
    dtype: str
    threads: int
    flops: float
    bytes: float
    seconds: float
    bound_seconds: float
    bound_by: str

    @property
    def percent(self) -> float:
        return 100 * self.bound_seconds / self.seconds


def best(call: Callable[[], Any], budget: float = 1.5, least: int = 3) -> float:
    """The shortest of several calls, after one that warms up."""
    call()
    times: list[float] = []
    while len(times) < least or sum(times) < budget:
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def peaks(threads: int) -> tuple[dict[str, float], str]:
    """Operations per second by dtype, and how they were found."""
    compiler = which("cc") or which("gcc") or which("clang")
    if compiler is None:
        return {dtype: _gemm(dtype) for dtype in ("float64", "float32")}, "product of matrices by the BLAS"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "peak.c", Path(folder) / "peak.so"
        source.write_text(PEAK)
        flags = ["-O2", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
        core = CDLL(str(library))
    found = {}
    for dtype in ("float64", "float32"):
        loop, flops = getattr(core, f"peak_{dtype}"), getattr(core, f"peak_{dtype}_flops")
        loop.argtypes, loop.restype, flops.restype = [c_int64], c_double, c_int64
        with ThreadPoolExecutor(threads) as pool:
            seconds = best(lambda loop=loop, pool=pool: list(pool.map(loop, [STEPS] * threads)), 0.5)
        found[dtype] = threads * STEPS * flops() / seconds
    return found, "multiply-adds in registers"


def _gemm(dtype: str) -> float:
    A = np.random.default_rng(0).standard_normal((2000, 2000)).astype(dtype)
    out = np.empty_like(A)
    return 2 * 2000**3 / best(lambda: np.matmul(A, A, out=out))


def bandwidth(threads: int) -> float:
    """Bytes read and written per second by threads that copy parts of 256 MB."""
    source = np.ones(1 << 25)
    parts = list(zip(np.array_split(source, threads), np.array_split(np.empty_like(source), threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        seconds = best(lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)), 1.0)
    return 2 * source.nbytes / seconds


def _normal(seed: int, rows: int, p: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, p)).astype(dtype)


def kernels(threads: int) -> Iterator[tuple[str, str, float, float, Callable[[], Any]]]:
    """Name, dtype, operations, bytes and call of every kernel measured."""
    n = 3000
    for dtype in ("float64", "float32"):
        size = np.dtype(dtype).itemsize
        for p in (3, 64, 1024):
            X, Y, out = _normal(0, n, p, dtype), _normal(1, n, p, dtype), np.empty((n, n), dtype)
            moved = size * (2.0 * n * p + n * n)
            # A sum of squared differences takes a subtraction and a multiply-add per feature.
            flops = n * n * (3.0 if p <= 8 else 2.0) * p
            yield (
                f"sq_distances(X, Y, out=) {n} x {n}, p = {p}", dtype, flops, moved,
                lambda X=X, Y=Y, out=out: sq_distances(X, Y, out=out, n_threads=threads),
            )  # fmt: skip
    X, Y = _normal(0, n, 64), _normal(1, n, 64)
    yield (
        f"gaussian(X, Y) {n} x {n}, p = 64", "float64", 2.0 * n * n * 64, 8.0 * (2 * n * 64 + n * n),
        lambda: gaussian(X, Y, sigma=8.0, n_threads=threads),
    )  # fmt: skip
    for m, c, p, d in ((20_000, 2000, 64, 10), (200_000, 1000, 3, 2), (20_000, 2000, 1024, 20)):
        X, C, W = _normal(0, m, p), _normal(1, c, p), _normal(2, c, d)
        yield (
            f"rbf_apply (m, n, p, d) = ({m}, {c}, {p}, {d})", "float64",
            float(m) * c * ((3 if p <= 8 else 2) * p + 2 * d), 8.0 * (m * p + c * p + c * d + m * d),
            lambda X=X, C=C, W=W, p=p: rbf_apply(X, C, W, sigma=float(np.sqrt(2 * p)), n_threads=threads),
        )  # fmt: skip
    rows, k = 20_000, 10
    for p in (64, 784):
        X, Q = _normal(0, rows, p, "float32"), _normal(1, 5000, p, "float32")
        lists = 12.0 * k
        yield (
            f"knn self {rows} x {p}, k = {k}", "float32", float(rows) * rows * p, rows * (4 * p + lists),
            lambda X=X: knn(X, k, algorithm="brute", n_threads=threads),
        )  # fmt: skip
        yield (
            f"knn 5000 queries, {rows} x {p}, k = {k}", "float32", 2.0 * rows * 5000 * p,
            4.0 * p * (rows + 5000) + 5000 * lists,
            lambda X=X, Q=Q: knn(X, k, queries=Q, algorithm="brute", n_threads=threads),
        )  # fmt: skip
    distances, indices = knn(_normal(0, 200_000, 3), k, n_threads=threads)
    beta = float(np.mean(distances**2))
    W = neighbor_graph(distances, indices, beta=beta, n_threads=threads)
    stored = float(W.data.nbytes + W.indices.nbytes + W.indptr.nbytes)
    yield (
        f"neighbor_graph 200,000 x {k}", "float64", 0.0, distances.nbytes + indices.nbytes + stored,
        lambda: neighbor_graph(distances, indices, beta=beta, n_threads=threads),
    )  # fmt: skip
    yield (
        f"laplacian of it, {W.nnz} entries", "float64", 0.0, 2 * stored + 8.0 * W.shape[0],
        lambda: laplacian(W, n_threads=threads),
    )  # fmt: skip


def measure(threads: int) -> tuple[dict[str, Any], list[Point]]:
    """The peaks of that many threads, and a point for every kernel."""
    with limited(threads):
        flops, how = peaks(threads)
        moved = bandwidth(threads)
        points = []
        for name, dtype, operations, size, call in kernels(threads):
            arithmetic, memory = operations / flops[dtype], size / moved
            by = "arithmetic" if arithmetic > memory else "memory"
            points.append(Point(name, dtype, threads, operations, size, best(call), max(arithmetic, memory), by))
    about = {"threads": threads, "flops per second": flops, "found by": how, "bytes per second": moved}
    return about, points


def main() -> int:
    best_blas()
    parser = argparse.ArgumentParser(description="Measure how far each kernel is from what the machine allows.")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--file", type=Path, default=FOLDER / "roofline.json", help="where the rows go")
    options = parser.parse_args()
    for threads in options.threads:
        about, points = measure(threads)
        rows = [asdict(point) | {"percent": point.percent} for point in points]
        peaks_before = [known for known in read(options.file).get("peaks", []) if known["threads"] != threads]
        found = sorted([*peaks_before, about], key=lambda known: known["threads"])
        keep(options.file, ("name", "dtype", "threads"), rows, peaks=found)
        rates = ", ".join(f"{dtype} {rate / 1e9:.0f} GFlop/s" for dtype, rate in about["flops per second"].items())
        print(f"{threads} thread(s): {rates} ({about['found by']}), {about['bytes per second'] / 1e9:.1f} GB/s")
        for point in points:
            print(f"{point.name} {point.dtype}: {1e3 * point.seconds:.2f} ms, {point.percent:.0f} % ({point.bound_by})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
