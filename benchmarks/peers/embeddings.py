"""Embeddings and their maps for new rows against scikit-learn, tapkee and plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.linear_model import LinearRegression
from sklearn.manifold import Isomap as SkIsomap
from sklearn.manifold import LocallyLinearEmbedding as SkLLE
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import kneighbors_graph

import manifast
from benchmarks.measure import Row, image_file, peer, race
from manifast.graphs import mean_sq_distance


def eigenmaps_rolls(threads: int) -> list[Row]:
    cases = [
        ("Swiss roll 5000", make_swiss_roll(5000, random_state=0)[0], 2, 2.0),
        ("Swiss roll 50,000", make_swiss_roll(50_000, random_state=0)[0], 2, 2.0),
    ]
    return _eigenmaps(cases, threads)


def eigenmaps_images(threads: int) -> list[Row]:
    cases = [("digits", load_digits().data, 10, 2.0)]
    file = image_file("mnist10k")
    if file is not None:
        cases.append(("mnist10k", np.load(file)["images"].reshape(10_000, -1) / 255.0, 2, 3.0))
    return _eigenmaps(cases, threads)


def _eigenmaps(cases: list[tuple[str, Any, int, float]], threads: int) -> list[Row]:
    rows = []
    for name, X, d, bar in cases:
        beta = mean_sq_distance(X)
        for solver in ("arpack", "amg"):
            theirs: Callable[[], Any] | None = None
            if solver == "arpack" or peer("pyamg") is not None:
                theirs = _sklearn_eigenmaps(X, d, solver, beta)
            rows.append(
                race(
                    f"LaplacianEigenmaps, {name}, k = 10, d = {d}",
                    threads,
                    lambda X=X, d=d, beta=beta: manifast.LaplacianEigenmaps(d, n_neighbors=10, beta=beta).fit(X),
                    f"scikit-learn kneighbors_graph + SpectralEmbedding, {solver}",
                    theirs,
                    bar=bar,
                    difference=_worse_quotients,
                    tolerance=1e-6,
                    repeats=(2, 7),
                )
            )
    return rows


def _sklearn_eigenmaps(X: Any, d: int, solver: str, beta: float) -> Callable[[], Any]:
    def fit() -> Any:
        graph = kneighbors_graph(X, 10, mode="distance")
        graph = graph.maximum(graph.T)
        graph.data = np.exp(-(graph.data**2) / beta)
        return SpectralEmbedding(d, affinity="precomputed", eigen_solver=solver, random_state=0).fit(graph)

    return fit


def _worse_quotients(ours: Any, theirs: Any) -> float:
    """How much larger our sum of Rayleigh quotients is than theirs, on the same graph: 0 where ours is as good."""
    W = ours.affinity_matrix_
    degrees = W.sum(axis=1)

    def quotients(Z: Any) -> Any:
        Z = Z.astype(np.float64)
        Z = Z - degrees @ Z / degrees.sum()
        return la.eigh(Z.T @ (degrees[:, None] * Z - W @ Z), Z.T @ (degrees[:, None] * Z), eigvals_only=True).sum()

    return max(0.0, float(quotients(ours.embedding_) / quotients(theirs.embedding_) - 1))


def local_methods(threads: int) -> list[Row]:
    """Sums over neighbourhoods. scikit-learn's Hessian method adds up the matrix of LTSA, so that it is near only."""
    X = make_swiss_roll(5000, random_state=0)[0]
    tapkee = peer("tapkee")
    rows = []
    for method, tapkee_method, tolerance in (
        ("standard", "lle", 1e-3),
        ("modified", None, 1e-3),
        ("hessian", "hlle", 0.1),
        ("ltsa", "ltsa", 1e-3),
    ):
        ours = manifast.LocallyLinearEmbedding(2, n_neighbors=10, method=method)
        theirs = SkLLE(n_components=2, n_neighbors=10, method=method, random_state=0)
        name = f"LocallyLinearEmbedding, {method}, Swiss roll 5000, k = 10"
        rows.append(
            race(
                name,
                threads,
                lambda ours=ours: ours.fit(X).embedding_,
                f"scikit-learn LocallyLinearEmbedding, {method}",
                lambda theirs=theirs: theirs.fit(X).embedding_,
                bar=4.0,
                difference=_angle,
                tolerance=tolerance,
                repeats=(1, 5),
            )
        )
        if tapkee_method is not None:
            rows.append(
                race(
                    name,
                    threads,
                    lambda ours=ours: ours.fit(X).embedding_,
                    f"tapkee {tapkee_method}",
                    _tapkee(tapkee, X, tapkee_method),
                    bar=2.0,
                    difference=_angle,
                    tolerance=1e-3,
                    repeats=(1, 5),
                )
            )
    return rows


def scaling_and_walks(threads: int) -> list[Row]:
    """The other methods that tapkee has; its eigenmaps sum the two directions of an edge, its walk has alpha = 1."""
    X = make_swiss_roll(5000, random_state=0)[0]
    few = X[:2000]
    tapkee = peer("tapkee")

    def eigenmaps_of_sums() -> Any:
        lists = kneighbors_graph(X, 10, mode="distance")
        lists.data = np.exp(-(lists.data**2) / 20.0)
        return manifast.LaplacianEigenmaps(2, affinity="precomputed").fit(lists + lists.T).embedding_

    cases: list[tuple[str, Callable[[], Any], str, Any, dict[str, Any]]] = [
        ("LaplacianEigenmaps, Swiss roll 5000, k = 10", eigenmaps_of_sums, "la", X, {"gaussian_kernel_width": 20.0}),
        (
            "DiffusionMaps, alpha = 1, Swiss roll 2000",
            lambda: manifast.DiffusionMaps(2, alpha=1.0, beta=40.0).fit(few).embedding_,
            "dm",
            few,
            {"gaussian_kernel_width": 40.0, "diffusion_map_timesteps": 1},
        ),
        ("ClassicalMDS, Swiss roll 2000", lambda: manifast.ClassicalMDS(2).fit(few).embedding_, "mds", few, {}),
    ]
    return [
        race(
            name,
            threads,
            ours,
            f"tapkee {method}",
            _tapkee(tapkee, data, method, **options),
            bar=2.0,
            difference=_angle,
            tolerance=1e-3,
            repeats=(1, 5),
        )
        for name, ours, method, data, options in cases
    ]


def _tapkee(tapkee: Any, X: Any, method: str, **options: Any) -> Callable[[], Any] | None:
    if tapkee is None:
        return None
    data = np.asfortranarray(X.T)
    arguments = {"num_neighbors": 10, "target_dimension": 2, **options}
    return lambda: np.asarray(tapkee.embed(data, method=method, **arguments))


def _angle(ours: Any, theirs: Any) -> float:
    centred = [Y - Y.mean(axis=0) for Y in (ours, theirs)]
    return float(la.subspace_angles(*centred)[0])


def isomaps(threads: int) -> list[Row]:
    X, t = make_swiss_roll(5000, random_state=0)
    truth = np.column_stack([0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t)), X[:, 1]])

    def worse(ours: Any, theirs: Any) -> float:
        scores = [LinearRegression().fit(Y, truth).score(Y, truth) for Y in (ours, theirs)]
        return float(scores[1] - scores[0])

    def ours(landmarks: int | None = None) -> Any:
        return manifast.Isomap(2, n_neighbors=10, n_landmarks=landmarks).fit(X).embedding_

    def theirs() -> Any:
        return SkIsomap(n_components=2, n_neighbors=10).fit(X).embedding_

    few = {"difference": _angle, "tolerance": 1e-3, "repeats": (1, 3)}
    name = "Isomap, Swiss roll 5000, k = 10"
    return [
        race(name, threads, ours, "scikit-learn Isomap", theirs, bar=4.0, **few),
        race(
            name,
            threads,
            ours,
            "tapkee isomap",
            _tapkee(peer("tapkee"), X, "isomap"),
            bar=2.0,
            difference=worse,  # its paths run from rows to their neighbours only, not back
            tolerance=0.01,
            repeats=(1, 3),
        ),
        race(
            f"{name}, 500 landmarks",
            threads,
            lambda: ours(500),
            "scikit-learn Isomap, exact",
            theirs,
            bar=20.0,
            difference=worse,
            tolerance=0.01,
            repeats=(1, 3),
        ),
    ]


def lgrm(threads: int) -> Row:
    X = make_swiss_roll(2000, random_state=0)[0]
    return race(
        "LGRM, Swiss roll 2000, k = 8",
        threads,
        lambda: manifast.LGRM(2, n_neighbors=8, sigma=10.0).fit(X).embedding_,
        "plain NumPy (inverse and eigh)",
        lambda: plain_lgrm(X, 8, 1e-3, 1e-4, 10.0, 2),
        bar=10.0,
        difference=_angle,
        tolerance=1e-4,
        repeats=(2, 5),
    )


def plain_lgrm(X: Any, k: int, mu: float, gamma: float, sigma: float, d: int) -> Any:
    """LGRM eqs. 10 to 19 as they read."""
    n = len(X)
    squares = np.sum(X**2, axis=1)[:, None] + np.sum(X**2, axis=1) - 2 * X @ X.T
    cliques = np.argsort(squares, axis=1)[:, :k]
    L = np.zeros((n, n))
    H_k = np.eye(k) - 1 / k
    for clique in cliques:
        U, _, _ = np.linalg.svd(H_k @ X[clique], full_matrices=False)
        L[np.ix_(clique, clique)] += H_k - U[:, :d] @ U[:, :d].T
    H = np.eye(n) - 1 / n
    K = np.exp(-squares / sigma**2)
    L_g = gamma * H @ np.linalg.inv(H @ K @ H + gamma * np.eye(n)) @ H
    return np.linalg.eigh(L + mu * L_g)[1][:, 1 : d + 1]


def transforms(threads: int) -> list[Row]:
    rows = []
    for name, n, new_rows, bar in (
        ("LocallyLinearEmbedding", 1000, 10_000, 8.0),
        ("Isomap", 1000, 10_000, 4.0),
        ("Isomap", 4000, 1000, 10.0),
    ):
        X, new = make_swiss_roll(n, random_state=0)[0], make_swiss_roll(new_rows, random_state=1)[0]
        ours = getattr(manifast, name)(2, n_neighbors=10).fit(X)
        theirs = {"Isomap": SkIsomap, "LocallyLinearEmbedding": SkLLE}[name](n_components=2, n_neighbors=10).fit(X)
        signs = np.sign(np.sum(ours.embedding_ * theirs.embedding_, axis=0))
        rows.append(
            race(
                f"{name}.transform, {new_rows:,} rows, n = {n}, k = 10",
                threads,
                lambda ours=ours, signs=signs, new=new: ours.transform(new) * signs,
                f"scikit-learn {name}.transform",
                lambda theirs=theirs, new=new: theirs.transform(new),
                bar=bar,
                tolerance=1e-4,
            )
        )
    return rows


COMPARISONS = (eigenmaps_rolls, eigenmaps_images, local_methods, scaling_and_walks, isomaps, lgrm, transforms)
