"""Maps for new rows: single rows, fits and large batches, against plain NumPy, LAPACK and umap-learn."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.datasets import make_blobs

import manifast
from benchmarks.measure import Row, image_file, limited, peer, race
from manifast._gram import median_distance
from manifast.extensions import RBF, KernelRidge, LatentVariable, Linear, Nystrom, Reconstruction, SparseCode
from manifast.kernels import gaussian, rbf_apply


def single_rows(threads: int) -> list[Row]:
    """Median over 1000 calls; the bar of a time is its limit over it."""
    rng = np.random.default_rng(0)
    X, Y, new = rng.standard_normal((1000, 64)), rng.uniform(1, 2, (1000, 10)), rng.standard_normal((1000, 64))
    rows = []
    umap = peer("umap")
    theirs = None
    if umap is not None:
        import numba

        numba.set_num_threads(threads)
        model = umap.UMAP(n_components=10, random_state=0).fit(X)
        with limited(threads):
            _median(model.transform, new[:10])  # compiles
            theirs = _median(model.transform, new[:100])
    with limited(threads):
        for extension, limit in (
            (Linear(), 0.02e-3),
            (RBF(), 0.02e-3),
            (KernelRidge(), 0.02e-3),
            (Nystrom(), 0.02e-3),
            (LatentVariable(), 0.02e-3),
            (Reconstruction(), 0.02e-3),
        ):
            name = f"{type(extension).__name__}.predict of one row, n = 1000, p = 64, d = 10"
            ours = _median(extension.fit(X, Y).predict, new)
            rows.append(Row(name, threads, ours, f"a limit of {1e3 * limit} ms", limit, 1.0, "median of 1000 calls"))
            note = "" if theirs is not None else "peer not installed"
            rows.append(Row(name, threads, ours, "umap-learn transform of one row", theirs, 100.0, note))
    return rows


def _median(call: Any, rows: Any) -> float:
    times = []
    for i in range(len(rows)):
        start = perf_counter()
        call(rows[i : i + 1])
        times.append(perf_counter() - start)
    return float(np.median(times))


def rbf_fits(threads: int) -> list[Row]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((5000, 64)), rng.standard_normal((5000, 10))
    K = gaussian(X, sigma=median_distance(X))

    def cholesky() -> Any:
        return la.cholesky(np.array(K, order="F"), lower=True, overwrite_a=True, check_finite=False)

    def accuracy(model: Any, _: Any) -> float:
        return float(np.abs(model.predict(X[:200]) - Y[:200]).max())

    grid = np.geomspace(0.3, 6.0, 20)
    common: dict[str, Any] = {"difference": accuracy, "tolerance": 1e-6}
    return [
        race("RBF fit 5000 x 64", threads, lambda: RBF().fit(X, Y), "one Cholesky", cholesky, bar=1 / 1.3, **common),
        race(
            "RBF fit 5000 x 64, 20 widths by leave-one-out",
            threads,
            lambda: RBF("loo", sigma_grid=grid).fit(X, Y),
            "one Cholesky",
            cholesky,
            bar=1 / 60,
            repeats=(1, 1),
            **common,
        ),
    ]


def sparse_codes(threads: int) -> list[Row]:
    """SPARSE, Table 4: N = 1241 faces projected to 200 dimensions, embedded in 1200."""
    file = image_file("yaleb")
    if file is None:
        return []
    data = np.load(file)
    kept = (data["labels"] >= 10) & (data["labels"] <= 37)
    X = data["images"][kept].reshape(kept.sum(), -1) / 255.0
    rng = np.random.default_rng(0)
    X = X @ la.qr(rng.standard_normal((X.shape[1], 200)), mode="economic")[0]
    order = rng.permutation(len(X))
    train, new = X[order[:1241]], X[order[1241:1341]]
    Y = rng.standard_normal((1241, 1200))
    full = SparseCode().fit(train, Y)
    few = SparseCode(dictionary_size=300, dictionary_method="nearest").fit(train, Y)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (train, new)]

    def homotopy() -> Any:
        codes = [plain_homotopy(x, np.vstack([unit[0], np.eye(200)])) for x in unit[1][:3]]
        return np.array(codes)[:, :1241]

    def objective(ours: Any, theirs: Any) -> float:
        rest = [np.abs(unit[1][:3] - codes @ unit[0]).sum() + np.abs(codes).sum() for codes in (ours, theirs)]
        return float(abs(rest[0] - rest[1]) / rest[1])

    rows = [
        race(
            "SparseCode.predict of 100 faces one by one, N = 1241, D = 200, d = 1200",
            threads,
            lambda: np.concatenate([full.predict(new[i : i + 1]) for i in range(len(new))]),
            "ours, all 100 at once",
            lambda: full.predict(new),
            bar=1 / 1.3 if threads == 1 else None,  # one face keeps one thread busy
            tolerance=0.0,
            repeats=(3, 10),
        ),
        race(
            "SparseCode, Extended Yale, N = 1241, D = 200, 3 samples",
            threads,
            lambda: full.codes(new[:3]).toarray(),
            "plain NumPy homotopy",
            homotopy,
            bar=15.0,
            difference=objective,
            tolerance=1e-6,
            repeats=(2, 5),
        ),
        race(
            "SparseCode.predict, 100 faces to 1200 dimensions, 300 nearest atoms",
            threads,
            lambda: few.predict(new),
            "ours with all 1241 atoms",
            lambda: full.predict(new),
            difference=lambda *_: 0.0,
            repeats=(1, 3),
        ),
    ]
    return rows


def plain_homotopy(x: Any, D: Any, tolerance: float = 1e-10) -> Any:
    """min |a|_1 with x = a D, by following the lasso path from lam_max down to 0."""
    a = np.zeros(len(D))
    correlation = D @ x
    active = [int(np.argmax(np.abs(correlation)))]
    signs = [np.sign(correlation[active[0]])]
    lam = float(np.abs(correlation).max())
    for _ in range(20 * D.shape[1]):
        G = D[active] @ D[active].T
        direction = np.linalg.solve(G, np.array(signs))
        moved = D @ (direction @ D[active])
        correlation = D @ (x - a @ D)
        outside = np.ones(len(D), bool)
        outside[active] = False
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.minimum(
                np.where((up := (lam - correlation) / (1 - moved)) > tolerance, up, np.inf),
                np.where((down := (lam + correlation) / (1 + moved)) > tolerance, down, np.inf),
            )
            drops = -a[active] / direction
        steps[~outside] = np.inf
        drops[drops <= tolerance] = np.inf
        step = min(lam, float(steps.min()), float(drops.min()))
        a[active] += step * direction
        lam -= step
        if lam <= tolerance:
            break
        if drops.min() <= steps.min():
            gone = int(np.argmin(drops))
            a[active[gone]] = 0.0
            del active[gone], signs[gone]
        else:
            new = int(np.argmin(steps))
            active.append(new)
            signs.append(np.sign((D @ (x - a @ D))[new]))
    return a


def million_rows(threads: int) -> Row:
    """1,000,000 rows through 2000 landmarks, against the landmarks' fit and the bare kernel on the same data."""
    X = make_blobs(1_000_000, 50, centers=30, random_state=0)[0].astype(np.float32)
    made = manifast.LaplacianEigenmaps(5, n_neighbors=10)
    whole = manifast.OutOfSample(made, RBF(), landmarks=2000)

    def parts() -> Any:
        chosen = np.sort(np.random.default_rng(0).choice(len(X), 2000, replace=False))
        rows = X[chosen]
        model = RBF().fit(rows, made.fit_transform(rows))
        return rbf_apply(X, model.X_, model.coef_, sigma=model.sigma_)

    return race(
        "OutOfSample, 1,000,000 x 50 float32, 2000 landmarks, Laplacian eigenmaps + RBF",
        threads,
        lambda: whole.fit(X).embedding_,
        "landmark fit + rbf_apply alone",
        parts,
        bar=1 / 1.5,
        difference=lambda ours, theirs: float(np.median(np.abs(ours - theirs))),
        tolerance=1e-5,
        repeats=(1, 2),
    )


COMPARISONS = (single_rows, rbf_fits, sparse_codes, million_rows)
