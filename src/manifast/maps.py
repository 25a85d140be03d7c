"""Fitted maps: what carries new rows into an embedding. Estimators and extensions all end in one of these.

A map holds arrays and a few numbers, and nothing else: `arrays()` and `header()` give them, `restore(header, arrays)`
makes the same map again. Its rule for dtypes: coefficients are kept in the dtype of the training rows, or in float64
where rounding of float32 would show in the image (`settle`); products are taken in the wider of the coefficients' and
the new rows' dtype; the result has the dtype of the new rows. A row's image has the same bits in any batch and on any
number of threads.

Training rows are packed for the kernels when a map is first used, and stay so: see `manifast._prepared`, also for the
memory that takes. What is packed goes with the map and is no part of it: not of its arrays, its pickle or its copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from manifast._gram import Kernel, KernelSum, linear_map, settle
from manifast._kernels import affine_product, heat_mean, l1_codes, of_one_dtype
from manifast._local import _reconstruct
from manifast._paths import landmark_map
from manifast._prepared import PreparedAtoms, PreparedRows
from manifast._validation import Array, is_sparse
from manifast._widths import NEAREST, root_widths
from manifast.graphs import Distances, chunks, fitted_distances, unit_rows

_CHUNK = 1 << 21  # distances held at once


class Predictor(Protocol):
    """Anything that maps checked rows (m, p) to their images (m, d): a map, or a fitted extension."""

    def predict(self, X: Any) -> Array: ...


class Map(Predictor, Protocol):
    """A fitted map: what it holds can be written to a file; images have the dtype of the rows."""

    def arrays(self) -> dict[str, Array]:
        """What the map holds, by name."""
        ...

    def header(self) -> dict[str, Any]:
        """Its kind and its numbers, as JSON can write them."""
        ...


def restore(header: dict[str, Any], arrays: dict[str, Array]) -> Map:
    """The map whose `header()` and `arrays()` these are, to the same bits."""
    kind = header.get("map")
    if kind not in MAPS:
        raise ValueError(f"header must name a map, one of {', '.join(map(repr, MAPS))}. Got {kind!r} instead.")
    made: Map = MAPS[kind].restore(header, arrays)
    return made


@dataclass(frozen=True)
class LinearMap:
    """y = x·coef + intercept."""

    kind: ClassVar[str] = "linear"

    coef: Array  # (p, d)
    intercept: Array  # (d,)

    @classmethod
    def of(cls, X: Any, coef: Array, intercept: Array) -> LinearMap:
        """The map of training rows X, in their dtype where its image allows that."""
        if X.dtype == np.float64:
            return cls(np.ascontiguousarray(coef), np.asarray(intercept, dtype=np.float64))
        image = X[: min(X.shape[0], 1000)] @ coef + intercept
        coef = settle(coef, np.asarray(image), X.dtype, float(abs(X).max()))
        return cls(coef, np.asarray(intercept, dtype=coef.dtype))

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> LinearMap:
        return cls(arrays["coef"], arrays["intercept"])

    def header(self) -> dict[str, Any]:
        return {"map": self.kind}

    def arrays(self) -> dict[str, Array]:
        return {"coef": self.coef, "intercept": self.intercept}

    def predict(self, X: Any) -> Array:
        wide = X if is_sparse(X) else X.astype(np.result_type(X.dtype, self.coef.dtype), copy=False)
        return linear_map(wide, self.coef, self.intercept).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class KernelMap:
    """y = Σ_i dual_i K(x, x_i) + intercept; `rows` is None where x is a row of kernel values."""

    kind: ClassVar[str] = "kernel"

    kernel: Kernel
    rows: Array | None
    dual: Array  # (n, d)
    intercept: Array  # (d,)
    _sum: KernelSum = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sum", KernelSum(self.kernel, self.rows, self.dual, self.intercept))

    @classmethod
    def of(cls, kernel: Kernel, X: Array, dual: Array, intercept: Array, image: Array) -> KernelMap:
        """The map of training rows X whose image is known, in their dtype where the image allows that."""
        rows = None if kernel.name == "precomputed" else X
        dual = settle(dual, image, X.dtype, kernel.size(X))
        return cls(kernel, rows, dual, np.asarray(intercept, dtype=np.float64))

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> KernelMap:
        return cls(Kernel(**header["kernel"]), arrays.get("rows"), arrays["dual"], arrays["intercept"])

    def header(self) -> dict[str, Any]:
        return {"map": self.kind, "kernel": asdict(self.kernel)}

    def arrays(self) -> dict[str, Array]:
        rows = {} if self.rows is None else {"rows": self.rows}
        return {**rows, "dual": self.dual, "intercept": self.intercept}

    def predict(self, X: Array) -> Array:
        return self._sum(X).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class TwoKernelMap:
    """Two kernel maps, one of rows in another metric: y = Σ_i dual_i K(x, x_i) + turned_i K'(xT, x_iT) + intercept."""

    kind: ClassVar[str] = "two_kernels"

    plain: KernelMap
    before: LinearMap  # T, affine
    turned: KernelMap  # of the training rows of `plain` in that metric

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> TwoKernelMap:
        plain = KernelMap(Kernel(**header["kernel"]), arrays["rows"], arrays["dual"], arrays["intercept"])
        before = LinearMap(arrays["coef"], arrays["offset"])
        return cls.of(plain, before, Kernel(**header["turned_kernel"]), arrays["turned_dual"])

    @classmethod
    def of(cls, plain: KernelMap, before: LinearMap, kernel: Kernel, dual: Array) -> TwoKernelMap:
        turned = KernelMap(kernel, before.predict(plain.rows), dual, np.zeros(dual.shape[1]))
        return cls(plain, before, turned)

    @property
    def intercept(self) -> Array:
        return self.plain.intercept

    def header(self) -> dict[str, Any]:
        return {"map": self.kind, "kernel": asdict(self.plain.kernel), "turned_kernel": asdict(self.turned.kernel)}

    def arrays(self) -> dict[str, Array]:
        second = {"coef": self.before.coef, "offset": self.before.intercept, "turned_dual": self.turned.dual}
        return self.plain.arrays() | second

    def predict(self, X: Array) -> Array:
        return self.plain.predict(X) + self.turned.predict(self.before.predict(X))


@dataclass(frozen=True)
class NeighborMean:
    """Mean of the images of the nearest training rows, weighted by exp(-distance²/beta), and `factors` times that.

    Weights are relative to the nearest row, so that not all underflow. With `others`, a training row at distance 0 has
    no part in it. With `weights`, row i also counts `weights[i]` times: y = Σ k_i weights_i y_i / Σ k_i weights_i.
    For metric="precomputed" there are no rows: new rows are their distances to the training rows.
    With `roots`, the roots of one width per training row, weights are exp(-distance²/√(β β_i)), where the width β of a
    new row follows from its own nearest, as in `manifast._widths`.
    """

    kind: ClassVar[str] = "neighbor_mean"

    rows: Any  # (n, p), dense or sparse, or None
    images: Array  # (n, d)
    n_neighbors: int | None  # None: all rows
    beta: float  # infinite: all weigh alike
    others: bool = False
    factors: Array | None = None  # (d,)
    weights: Array | None = None  # (n,), positive
    metric: str = "euclidean"
    roots: Array | None = None  # (n,), positive; beta is then 1
    _distances: Distances = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distances", fitted_distances(self.rows, self.metric, len(self.images)))

    @classmethod
    def of(cls, rows: Any, images: Array, n_neighbors: int | None, width: Any, **others: Any) -> NeighborMean:
        """The map of training rows with one width for all, or an array with the root of each row's."""
        rows = kept_rows(rows, others.get("metric", "euclidean"))
        if isinstance(width, np.ndarray):
            return cls(rows, images, n_neighbors, 1.0, roots=width, **others)
        return cls(rows, images, n_neighbors, width, **others)

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> NeighborMean:
        return cls(
            _read_rows(header, arrays),
            arrays["images"],
            header["n_neighbors"],
            np.inf if header["beta"] is None else header["beta"],
            header["others"],
            arrays.get("factors"),
            arrays.get("weights"),
            header.get("metric", "euclidean"),
            arrays.get("roots"),
        )

    def header(self) -> dict[str, Any]:
        beta = self.beta if np.isfinite(self.beta) else None
        parameters = {"n_neighbors": self.n_neighbors, "beta": beta, "others": self.others, "metric": self.metric}
        return {"map": self.kind, **parameters, **_shape_of_sparse(self.rows)}

    def arrays(self) -> dict[str, Array]:
        optional = {"factors": self.factors, "weights": self.weights, "roots": self.roots}
        given = {name: value for name, value in optional.items() if value is not None}
        return {**_parts_of_rows(self.rows), "images": self.images, **given}

    def predict(self, X: Any) -> Array:
        blocks = list(_blocks(X.shape[0], self.n_neighbors or len(self.images)))
        return self._image(X) if len(blocks) == 1 else np.concatenate([self._image(X[rows]) for rows in blocks])

    def _image(self, X: Any) -> Array:
        mean = self._mean(X)
        if self.factors is not None:
            mean *= self.factors
        return mean.astype(X.dtype, copy=False)

    def _mean(self, X: Any) -> Array:
        if self.n_neighbors is None:
            distances, neighbors = self._distances.to(X), None
        else:
            distances, neighbors = self._nearest(self.n_neighbors, X)
        if self.weights is None:
            return heat_mean(distances, neighbors, self.images, self.beta, others=self.others)
        # Means of weights · images and of the weights themselves have the same sum of k below them.
        images, weights = self.images, self.weights
        if neighbors is not None and neighbors.size < len(images):  # only the images that are asked for
            images, weights = images[neighbors.ravel()], weights[neighbors.ravel()]
            neighbors = np.arange(neighbors.size).reshape(neighbors.shape)
        weighted = np.column_stack([images * weights[:, None], weights]).astype(np.float64, copy=False)
        means = heat_mean(distances, neighbors, weighted, self.beta, others=self.others)
        return np.asarray(means[:, :-1] / means[:, -1:])

    def _nearest(self, k: int, X: Any) -> tuple[Array, Array]:
        """Distances and indices of the k nearest; with widths of the rows, distances relative to them."""
        if self.roots is None:
            return self._distances.nearest_to(X, k)
        # A training row finds itself first, so that it takes one more to see the same five others.
        distances, neighbors, shortest = self._distances.nearest_and_more(X, k, NEAREST + 1)
        own, near = root_widths(shortest), self.roots[neighbors]
        own = np.where(own > 0, own, near[:, 0])
        return distances.astype(np.float64) / (np.sqrt(own)[:, None] * np.sqrt(near)), neighbors


@dataclass(frozen=True)
class Barycenter:
    """The combination of nearest training rows that rebuilds x best, its weights summing to one, of their images."""

    kind: ClassVar[str] = "barycenter"

    rows: Array  # (n, p)
    images: Array  # (n, d)
    n_neighbors: int
    reg: float
    metric: str = "euclidean"  # by which the nearest are found
    _distances: Distances = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distances", fitted_distances(self.rows, self.metric, len(self.images)))

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> Barycenter:
        metric = header.get("metric", "euclidean")
        return cls(arrays["rows"], arrays["images"], header["n_neighbors"], header["reg"], metric)

    def header(self) -> dict[str, Any]:
        return {"map": self.kind, "n_neighbors": self.n_neighbors, "reg": self.reg, "metric": self.metric}

    def arrays(self) -> dict[str, Array]:
        return {"rows": self.rows, "images": self.images}

    def predict(self, X: Array) -> Array:
        _, neighbors = self._distances.nearest_to(X, self.n_neighbors)
        return _reconstruct(self.rows, self.images, X, neighbors, self.reg).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class LandmarkMap:
    """y = -½ (δ² - mean_sq)·projection, with the geodesics δ of x to landmarks, by way of the nearest training rows.

    These are `n_neighbors` rows, or with a `radius` all within it, at least one.
    """

    kind: ClassVar[str] = "landmark"

    rows: Any  # (n, p), dense or sparse, or None
    geodesics: Array  # (n, landmarks)
    mean_sq: Array  # (landmarks,)
    projection: Array  # (landmarks, d)
    n_neighbors: int | None
    radius: float | None = None
    metric: str = "euclidean"
    _distances: Distances = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distances", fitted_distances(self.rows, self.metric, len(self.geodesics)))

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> LandmarkMap:
        radius = header.get("radius")
        return cls(
            _read_rows(header, arrays),
            arrays["geodesics"],
            arrays["mean_sq"],
            arrays["projection"],
            header["n_neighbors"],
            np.inf if radius == "inf" else radius,
            header.get("metric", "euclidean"),
        )

    def header(self) -> dict[str, Any]:
        radius = "inf" if self.radius == np.inf else self.radius
        parameters = {"n_neighbors": self.n_neighbors, "radius": radius, "metric": self.metric}
        return {"map": self.kind, **parameters, **_shape_of_sparse(self.rows)}

    def arrays(self) -> dict[str, Array]:
        fixed = {"geodesics": self.geodesics, "mean_sq": self.mean_sq, "projection": self.projection}
        return {**_parts_of_rows(self.rows), **fixed}

    def place(self, geodesics: Array) -> Array:
        """Images of rows whose geodesics to the landmarks are known, (m, landmarks)."""
        return affine_product(-0.5 * (np.square(geodesics) - self.mean_sq), self.projection)

    def predict(self, X: Any) -> Array:
        if self.radius is None:
            return self._by_way_of(*self._distances.nearest_to(X, self.n_neighbors or 1), X.dtype)
        out = np.empty((X.shape[0], self.projection.shape[1]), dtype=X.dtype)
        for rows in _blocks(X.shape[0], len(self.geodesics)):
            out[rows] = self._by_way_of(*self._distances.reach(X[rows], self.radius), X.dtype)
        return out

    def _by_way_of(self, distances: Array, neighbors: Array, dtype: Any) -> Array:
        zero = np.zeros(self.projection.shape[1])
        wide = distances.astype(np.float64)
        out = landmark_map(wide, neighbors, self.geodesics, self.mean_sq, self.projection, zero)
        return out.astype(dtype, copy=False)


@dataclass(frozen=True)
class Triangulation:
    """y = -½ (δ² - mean_sq)·projection, with the distances δ of x to landmarks.

    For metric="precomputed" there are no rows: x are the distances to all training rows, some of which are landmarks.
    """

    kind: ClassVar[str] = "triangulation"

    rows: Any  # (landmarks, p), or None
    landmarks: Array  # (landmarks,), numbers of training rows
    mean_sq: Array  # (landmarks,)
    projection: Array  # (landmarks, d)
    metric: str
    _distances: Distances = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distances", fitted_distances(self.rows, self.metric, len(self.landmarks)))

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> Triangulation:
        fixed = {name: arrays[name] for name in ("landmarks", "mean_sq", "projection")}
        return cls(_read_rows(header, arrays), metric=header["metric"], **fixed)

    def header(self) -> dict[str, Any]:
        return {"map": self.kind, "metric": self.metric}

    def arrays(self) -> dict[str, Array]:
        fixed = {"landmarks": self.landmarks, "mean_sq": self.mean_sq, "projection": self.projection}
        return {**_parts_of_rows(self.rows), **fixed}

    def predict(self, X: Any) -> Array:
        out = np.empty((X.shape[0], self.projection.shape[1]), dtype=X.dtype)
        for rows in _blocks(X.shape[0], len(self.landmarks)):
            lengths = self._distances.to(X[rows])
            lengths = lengths[:, self.landmarks] if self.rows is None else lengths
            out[rows] = affine_product(-0.5 * (np.square(lengths) - self.mean_sq), self.projection)
        return out


@dataclass(frozen=True)
class SparseCodeMap:
    """Mean of the images of the atoms, weighted by the magnitudes of the sparse code of x (SPARSE eq. 9).

    Where the code is empty it is the image of the nearest atom.
    """

    kind: ClassVar[str] = "sparse_code"

    atoms: Array  # (atoms, p), prepared
    images: Array  # (atoms, d)
    lam: float
    errors: bool  # whether errors are coded in the identity
    basis: Array | None  # (m, p), prepared: what errors are coded in instead
    power: float
    weights: Callable[[Array], Any] | None  # of the code's entries, instead of |a|^power
    normalize: bool
    axes: Array | None  # (features, p): onto which rows are projected first
    top: int | None
    near: int | None  # atoms that each row is coded by, its nearest; None: all
    _dictionary: PreparedAtoms = field(init=False, repr=False, compare=False)
    _rows: PreparedRows = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        alone = self.basis is None or self.near is not None
        dictionary = self.atoms if alone else np.concatenate([self.atoms, self.basis])
        object.__setattr__(self, "_dictionary", PreparedAtoms(dictionary))
        object.__setattr__(self, "_rows", PreparedRows(self.atoms))

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> SparseCodeMap:
        numbers = {name: value for name, value in header.items() if name != "map"}
        given = {name: arrays.get(name) for name in ("atoms", "images", "basis", "axes")}
        return cls(weights=None, **{**given, **numbers})

    def header(self) -> dict[str, Any]:
        if self.weights is not None:
            raise ValueError(
                f"weights must be None in a map that is written to a file, which holds no functions. Got "
                f"{self.weights!r}: use power, or keep the map in memory."
            )
        names = ("lam", "errors", "power", "normalize", "top", "near")
        return {"map": self.kind, **{name: getattr(self, name) for name in names}}

    def arrays(self) -> dict[str, Array]:
        optional = {"basis": self.basis, "axes": self.axes}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"atoms": self.atoms, "images": self.images, **given}

    def codes(self, X: Array, *, verbose: bool = False) -> sp.csr_array:
        """Sparse codes of new rows, one column per atom."""
        return self._codes(prepared(X, self.axes, self.normalize), verbose)

    def predict(self, X: Array, *, verbose: bool = False) -> Array:
        rows = prepared(X, self.axes, self.normalize)
        codes = self._codes(rows, verbose)
        # Only the images that codes speak of are copied.
        used, columns = np.unique(codes.indices, return_inverse=True)
        weights = sp.csr_array((self._weigh(codes.data), columns, codes.indptr), shape=(len(rows), len(used)))
        images = np.column_stack([self.images[used], np.ones(len(used))]).astype(np.float64, copy=False)
        sums = np.asarray(weights @ images)
        empty = ~(sums[:, -1] > 0)
        if empty.any():
            _, neighbors = self._rows.nearest(rows[empty], 1)
            sums[empty, :-1], sums[empty, -1] = self.images[neighbors[:, 0]], 1.0
        return np.asarray(sums[:, :-1] / sums[:, -1:], dtype=X.dtype)

    def _weigh(self, entries: Array) -> Array:
        """Weights of the entries of codes."""
        if self.weights is None:
            return np.asarray(np.abs(entries).astype(np.float64) ** self.power)
        made = np.asarray(self.weights(entries.astype(np.float64)), dtype=np.float64)
        if made.shape != entries.shape or not (np.isfinite(made).all() and (made >= 0).all()):
            raise ValueError(
                f"weights must return one finite number of at least 0 for each of the {len(entries)} entries of codes. "
                f"Got shape {made.shape}, with values from {made.min(initial=0.0)} to {made.max(initial=0.0)}."
            )
        return made

    def _codes(self, rows: Array, verbose: bool) -> sp.csr_array:
        if not len(rows):
            return sp.csr_array((0, len(self.atoms)), dtype=np.result_type(rows, self.atoms))
        parts = [self._code(rows[part]) for part in chunks(len(rows), verbose, "sparse codes")]
        codes = parts[0] if len(parts) == 1 else sp.csr_array(sp.vstack(parts, format="csr"))
        return codes if self.top is None else largest_entries(codes, self.top)

    def _code(self, rows: Array) -> sp.csr_array:
        if self.near is None:
            codes = self._dictionary.codes(rows, errors=self.errors, lam=self.lam)
            return codes if self.basis is None else codes[:, : len(self.atoms)]
        _, neighbors = self._rows.nearest(rows, self.near)
        indptr, columns, values = [0], [], []
        for row, near in zip(rows, np.sort(neighbors, axis=1), strict=True):
            atoms = self.atoms[near]
            code = self._in(row[None], atoms if self.basis is None else np.concatenate([atoms, self.basis]))
            kept = code.indices < len(near)
            columns.append(near[code.indices[kept]])
            values.append(code.data[kept])
            indptr.append(indptr[-1] + int(kept.sum()))
        shape = (len(rows), len(self.atoms))
        return sp.csr_array((np.concatenate(values), np.concatenate(columns), np.array(indptr)), shape=shape)

    def _in(self, rows: Array, dictionary: Array) -> sp.csr_array:
        x, d = of_one_dtype(rows, dictionary)
        return l1_codes(x, d, errors=self.errors, lam=self.lam)[0]


def prepared(X: Array, axes: Array | None, normalize: bool) -> Array:
    """Rows as sparse codes take them: projected, and of unit norm."""
    if axes is not None:
        X = affine_product(X.astype(axes.dtype, copy=False), axes)
    return unit_rows(X) if normalize else X


def largest_entries(codes: sp.csr_array, top: int) -> sp.csr_array:
    """Each row with its `top` entries of largest magnitude, the first of equal ones."""
    rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    order = np.lexsort((codes.indices, -np.abs(codes.data), rows))
    rank = np.arange(len(order)) - codes.indptr[rows]
    kept = np.sort(order[rank < top])
    indptr = np.append(0, np.cumsum(np.bincount(rows[kept], minlength=codes.shape[0])))
    return sp.csr_array((codes.data[kept], codes.indices[kept], indptr), shape=codes.shape)


@dataclass(frozen=True)
class AffinityMean:
    """Mean of the images of the training rows, weighted by the affinities x to them, and `factors` times that."""

    kind: ClassVar[str] = "affinity_mean"

    images: Array  # (n, d)
    factors: Array | None = None  # (d,)

    @classmethod
    def restore(cls, header: dict[str, Any], arrays: dict[str, Array]) -> AffinityMean:
        return cls(arrays["images"], arrays.get("factors"))

    def header(self) -> dict[str, Any]:
        return {"map": self.kind}

    def arrays(self) -> dict[str, Array]:
        return {"images": self.images} | ({} if self.factors is None else {"factors": self.factors})

    def predict(self, X: Any) -> Array:
        columns = np.column_stack([self.images, np.ones(len(self.images), self.images.dtype)])
        sums = X @ columns if is_sparse(X) else affine_product(X, columns.astype(X.dtype, copy=False))
        if not (sums[:, -1] > 0).all():
            raise ValueError("X must link every new row to a training row. Got a row of affinities that sum to 0.")
        means = sums[:, :-1] / sums[:, -1:]
        return np.asarray(means if self.factors is None else means * self.factors, dtype=X.dtype)


MAPS: dict[str, Any] = {
    made.kind: made
    for made in (
        LinearMap,
        KernelMap,
        TwoKernelMap,
        NeighborMean,
        Barycenter,
        LandmarkMap,
        Triangulation,
        SparseCodeMap,
        AffinityMean,
    )
}


def kept_rows(X: Any, metric: str) -> Any:
    """What a map keeps of its training rows: nothing of a matrix of distances."""
    return None if metric == "precomputed" else X


def _parts_of_rows(rows: Any) -> dict[str, Array]:
    if not is_sparse(rows):
        return {} if rows is None else {"rows": rows}
    return {f"rows_{name}": getattr(rows, name) for name in ("data", "indices", "indptr")}


def _shape_of_sparse(rows: Any) -> dict[str, Any]:
    return {"shape": list(rows.shape)} if is_sparse(rows) else {}


def _read_rows(header: dict[str, Any], arrays: dict[str, Array]) -> Any:
    if "shape" not in header:
        return arrays.get("rows")
    parts = tuple(arrays[f"rows_{name}"] for name in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=tuple(header["shape"]))


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(1, int(width)))  # a count may be of a narrow dtype
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
