"""Calls of what is fitted: estimators, extensions, objectives, smoothers; of files of models, and of many rows."""

from __future__ import annotations

import functools
import inspect
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from tests.fuzz.arrays import Draw, clean, graph, labels, matrix
from tests.fuzz.judge import Failure, check_finite, check_same
from tests.fuzz.parameters import parameters
from tests.fuzz.trial import Trial, exact_squares, plain

import manifast
from manifast import classifiers, embeddings, extensions, model_selection, objectives, persistence, scale, smoothers

EXTENSIONS = tuple(getattr(extensions, name) for name in (
    "RBF", "KernelRidge", "LandmarkIsomap", "LatentVariable", "Linear", "Nystrom", "Reconstruction", "SparseCode",
))  # fmt: skip
SOME_LABELS = ("SDA", "SDACV", "SDE", "SDECV", "TCA", "TCACV", "ElasticEmbedding", "ElasticEmbeddingCV",
               "ComposedEmbedding", "FME", "FMECV", "GFHF", "LGC", "RMGT", "LapRLS", "LapRLSCV")  # fmt: skip
LABELS = ("LDE", "LFDA", "NSSE", "NSSECV", "FisherEmbedding", "LabelEncoding", "SupervisedLaplacianEigenmaps",
          "SupervisedIsomap", "TPTSSR", "RBFDiscriminant", "RBFDiscriminantCV")  # fmt: skip


def estimator(cls: type, *, supervised: str = "") -> Callable[[Trial], None]:
    """A fit, then rows that it has never seen: the same bits in one batch and in two, from copies and from a file."""
    names = [name for name in inspect.signature(cls).parameters if name not in ("embedder", "verbose", "basis")]
    grids = cls.__name__.endswith("CV") and cls.__name__ != "RBFDiscriminantCV"
    if grids:
        names = [name for name in names if name != "graph"]

    def call(t: Trial) -> None:
        draw = t.draw
        draw.most_rows = 40
        X = matrix(draw, rows=draw.count(40) if draw.chance(0.1) else int(draw.rng.integers(8, 41)))
        options = parameters(draw, names, 0.2, illegal=0.02, grids=grids)
        options |= {"embedder": embeddings.ClassicalMDS()} if cls is embeddings.OutOfSample else {}
        given = options.get("metric") if isinstance(options.get("metric"), str) else None
        if given == "precomputed" and np.ndim(X) == 2 and draw.chance(0.9):
            draw.must_fail = draw.exotic = False
            x = clean(draw, draw.n, 3)
            X = np.sqrt(np.asarray(exact_squares(x, x), dtype=x.dtype))
        model = cls(**options)
        y = (labels(draw, draw.n, some=supervised == "some"),) if supervised else ()
        if cls in EXTENSIONS:
            y = (matrix(draw, rows=draw.n, columns=int(draw.pick(1, 2, 3)), legal=["vector"]),)
        if fitted(t, model, X, *y):
            _use(t, model, X)
            if draw.chance(0.1):
                _refit(t, model, X, *y)

    return call


def is_half(X: Any) -> bool:
    """Whether rows are float16, which estimators read as float64 and kernels as float32."""
    dtype = np.asarray(X).dtype
    return bool(dtype.kind == "f" and dtype.itemsize == 2)


def fitted(t: Trial, model: Any, *arguments: Any) -> bool:
    """Whether a fit went through; one that did not leaves nothing."""
    before = dict(model.__dict__)
    try:
        if t.run(model.fit, *arguments) is not None:
            return True
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if model.__dict__.keys() != before.keys():  # then it came after the end of the fit
            try:
                _map_of(model)(arguments[0])
            except Exception as error:
                left = sorted(model.__dict__.keys() - before.keys())
                raise Failure(f"a fit that was interrupted left {left}") from error
        raise
    if model.__dict__.keys() != before.keys():
        raise Failure(f"a fit that failed left {sorted(model.__dict__.keys() - before.keys())}")
    return False


def _refit(t: Trial, model: Any, X: Any, *y: Any) -> None:
    """A fit to a plain copy of the rows gives the same bits; one that fails leaves the fit before it as it was."""
    if is_half(X):
        return
    again = clone(model).fit(plain(X), *y)
    if hasattr(model, "embedding_"):
        check_same(again.embedding_, model.embedding_, "of a fit to a plain copy")
    before = dict(again.__dict__)
    if t.draw.chance(0.5):
        bad = plain(X).copy()
        bad[0, 0] = np.nan
        try:
            again.fit(bad, *y)
        except ValueError:
            changed = [name for name, value in again.__dict__.items() if before.get(name, before) is not value]
            if changed or before.keys() != again.__dict__.keys():
                raise Failure(f"a fit that failed changed {changed}") from None
        else:
            raise Failure("NaN was taken without a word")


def _use(t: Trial, model: Any, X: Any) -> None:
    draw = t.draw
    apply = next(getattr(model, name) for name in ("transform", "predict") if hasattr(model, name))
    if hasattr(model, "embedding_") and not draw.exotic:
        check_finite(model.embedding_)
    new = matrix(draw, rows=draw.count(12), columns=np.shape(X)[1] if np.ndim(X) == 2 else None)
    image = t.run(apply, new)
    if image is None:
        return
    if not draw.exotic:
        check_finite(image)
    rows = plain(new)
    if is_half(new):
        return
    check_same(apply(rows), image, "for a plain copy")
    if len(rows) > 1:
        check_same(np.concatenate([apply(rows[:1]), apply(rows[1:])]), image, "in two batches")
    if draw.chance(0.05):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            if t.run(manifast.save, model, path) is None and not path.exists():
                return
            loaded = manifast.load(path)
            check_same(getattr(loaded, apply.__name__)(rows), image, "from a file")
    if draw.chance(0.03):
        clone(model)




# Parts of estimators


def part(cls: type, parameter: str) -> Callable[[Trial], None]:
    """An objective or a smoother with parameters of its own, inside `ComposedEmbedding`."""
    names = [name for name in inspect.signature(cls).parameters if name not in ("objective", "name")]

    def call(t: Trial) -> None:
        draw = t.draw
        draw.most_rows = 40
        draw.n = int(draw.rng.integers(8, 41))
        made = cls(**parameters(draw, names, 0.3, illegal=0.02))  # checked by the fit
        draw.must_fail = False  # a graph that the objective does not read may hold anything
        X = matrix(draw, rows=draw.n)
        options = {parameter: made} | parameters(draw, ["n_components", "extension"], 0.3)
        options |= parameters(draw, ["smoother"]) if parameter == "objective" else parameters(draw, ["objective"], 0.8)
        model = embeddings.ComposedEmbedding(**({"objective": "laplacian"} | options))
        if fitted(t, model, X, labels(draw, draw.n, some=draw.chance(0.5))):
            _use(t, model, X)

    return call


def given_matrices(wrapped: bool) -> Callable[[Trial], None]:
    """An objective of matrices that may lie."""

    def call(t: Trial) -> None:
        draw = t.draw
        draw.most_rows = 40
        X = clean(draw, int(draw.rng.integers(8, 30)), 3)
        draw.n = len(X)
        kind = draw.rng.random()
        weights = np.abs(draw.rng.standard_normal(draw.n)) + 0.1
        B = graph(draw, draw.n) if kind < 0.2 else weights if kind < 0.5 else None
        made = objectives.Objective(graph(draw, draw.n), B, drop_constant=draw.chance(0.5))  # checked by the fit
        options = parameters(draw, ["smoother"])
        model = embeddings.ComposedEmbedding(objectives.Given(made) if wrapped else made, **options)
        if fitted(t, model, X):
            _use(t, model, X)

    return call


# Files of models, many rows


@functools.cache
def models() -> list[tuple[Any, bytes]]:
    """Small models of every kind of map, with their files."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 3)), np.arange(24) % 3
    made = [
        embeddings.LPP().fit(X), embeddings.LGRM(kernel="rbf").fit(X.astype(np.float32)), embeddings.NSSE().fit(X, y),
        embeddings.Isomap(n_neighbors=5).fit(X), embeddings.LaplacianEigenmaps(extension="sparse").fit(X),
        embeddings.LocallyLinearEmbedding(n_neighbors=6).fit(X), embeddings.LDE().fit(X, y),
        classifiers.RBFDiscriminant().fit(X, y), classifiers.GFHF().fit(X, np.where(y > 1, -1, y)),
        classifiers.TPTSSR().fit(X, np.array(["a", "b", "c"])[y]), extensions.KernelRidge().fit(X, X[:, :2]),
    ]  # fmt: skip
    held = []
    with tempfile.TemporaryDirectory() as folder:
        for model in made:
            manifast.save(model, Path(folder) / "model")
            held.append((model, (Path(folder) / "model").read_bytes()))
    return held


def _map_of(model: Any) -> Callable[..., Any]:
    return getattr(model, "transform", None) or model.predict  # type: ignore[no-any-return]


def damaged_bytes(draw: Draw, whole: bytes) -> bytes:
    """A file with other bytes, fewer, or more; the header is a JSON text after 8 bytes of its length."""
    rng, made = draw.rng, bytearray(whole)
    header = 8 + int.from_bytes(whole[:8], "little")
    kind = rng.integers(8)
    if kind == 0:
        return whole[: rng.integers(len(whole))]
    if kind == 1:
        return whole + rng.bytes(int(rng.integers(1, 100)))
    if kind == 2:
        made[:8] = int(draw.pick(0, 1, header, header - 9, 2**31, 2**63 - 1, 2**64 - 1)).to_bytes(8, "little")
    elif kind == 3:
        return rng.bytes(int(rng.integers(0, 300)))
    elif kind == 4:  # a number of the header, of the same length
        digits = [i for i in range(8, header) if chr(whole[i]).isdigit()]
        for i in rng.choice(digits, min(3, len(digits)), replace=False):
            made[i] = ord(str(rng.integers(10)))
    elif kind == 5:
        text = whole[8:header].replace(*draw.pick(
            (b'"F64"', b'"F32"'), (b"[", b"[["), (b":", b": -"), (b"true", b"null"), (b"LPP", b"NSSE"), (b'"', b""),
            (b"0", b"1e999"), (b"3", b"NaN"), (b"24", b"999999999"), (b"embeddings", b"os"), (b"1", b'{"a": 1}'),
        ))  # fmt: skip
        return len(text).to_bytes(8, "little") + text + whole[header:]
    else:
        for at in rng.integers(0, header if kind == 6 else len(whole), int(rng.integers(1, 4))):
            made[at] = rng.integers(256)
    return bytes(made)


def load(t: Trial) -> None:
    """A damaged file is refused, or it is whole after all: the same bits."""
    model, whole = t.draw.pick(*models())
    given = whole if t.draw.chance(0.1) else damaged_bytes(t.draw, whole)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(given)
        t.shown = {"file": given}
        options = parameters(t.draw, ["mmap"])
        loaded = t.run(manifast.load, path, **options)
        if loaded is None:
            if given == whole and isinstance(options.get("mmap", True), bool):
                raise Failure("a whole file was refused")
            return
        X = np.random.default_rng(1).standard_normal((7, 3))
        if given == whole:
            check_same(_map_of(loaded)(X), _map_of(model)(X), "from a file")
        else:
            t.run(_map_of(loaded), X)


def describe(t: Trial) -> None:
    _, whole = t.draw.pick(*models())
    given = whole if t.draw.chance(0.1) else damaged_bytes(t.draw, whole)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(given)
        t.shown = {"file": given}
        t.run(persistence.describe, path)


def save(t: Trial) -> None:
    """What is no fitted model of ours is refused, and no file is left; a model is read back with the same bits."""
    draw = t.draw
    model = draw.pick(*models())[0] if draw.chance(0.5) else draw.pick(None, 3, embeddings.LPP(), "model", object(), [])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        t.run(manifast.save, model, draw.pick(None, 3.5, [], {}) if draw.chance(0.1) else path)
        left = list(Path(folder).iterdir())
        if t.draw.must_fail or (left and left != [path]):
            raise Failure(f"a file was left: {left}")
        if left:
            X = np.random.default_rng(2).standard_normal((5, 3))
            check_same(_map_of(manifast.load(path))(X), _map_of(model)(X), "from a file")


def _source(draw: Draw, X: Any) -> Any:
    """The same rows as an array or as blocks of any size."""
    if not isinstance(X, np.ndarray) or draw.chance(0.4):
        return X
    cuts = np.sort(draw.rng.integers(0, len(X) + 1, int(draw.rng.integers(0, 4))))
    return iter(np.split(X, cuts)) if X.ndim else X


def sample_rows(t: Trial) -> None:
    draw = t.draw
    draw.thousands = True
    X = matrix(draw)
    count = int(draw.rng.integers(0, max(draw.n, 1) + draw.pick(0, 0, 0, 3)))
    options = parameters(draw, ["random_state"])
    draw.must_fail = False  # rows are handed on, whatever is in them
    asked = draw.pick(-1, 1.5, None, "3") if draw.chance(0.05) else count
    found = t.run(scale.sample_rows, _source(draw, X), asked, **options)
    if found is None or not isinstance(X, np.ndarray) or np.ma.isMaskedArray(X):
        return
    rows = np.asarray(X)
    native = rows.astype(rows.dtype.newbyteorder("="))
    check_same(found.astype(native.dtype), scale.sample_rows(native, count, **options), "for a plain copy")
    if len(found) != count:
        raise Failure(f"{len(found)} rows instead of {count}")


def transform_to(t: Trial) -> None:
    draw = t.draw
    model = draw.pick(*models())[0]
    X = matrix(draw, columns=3 if draw.chance(0.95) else None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.npy"
        options = {"batch_rows": int(draw.rng.integers(1, 40))} if draw.chance(0.5) else {}
        options |= {"batch_rows": draw.pick(0, -1, 1.5, "3", 10**30)} if draw.chance(0.05) else {}
        t.run(scale.transform_to, model, _source(draw, X), path, **options)
        # A call that failed leaves what it has done, to go on from there.
        if t.returned and not is_half(X):
            check_same(np.load(path, allow_pickle=True), np.asarray(_map_of(model)(plain(X))), "through a file")


def mapper(t: Trial) -> None:
    draw = t.draw
    model, whole = draw.pick(*models())
    X = matrix(draw, columns=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_bytes(whole)
        method = draw.pick(None, None, None, "transform", "predict", "decision_function", "predict_proba", "fit", 3, "")
        made = t.run(lambda: scale.Mapper(path, method)) if not draw.must_fail else scale.Mapper(path)
        if made is None:
            return
        draw.must_fail &= np.size(X) > 0  # no rows give no images, whatever their shape
        images = t.run(made, X)
        if images is not None and len(plain(X)) and made.method is None and not is_half(X):
            check_same(images, np.asarray(_map_of(model)(plain(X))), "from a mapper")


def to_onnx(t: Trial) -> None:
    model = t.draw.pick(*models())[0]
    try:
        t.run(persistence.to_onnx, model, **({"dtype": t.draw.pick(np.float64, np.float32, int, "x", None)}))
    except Failure as failure:
        if "ImportError" not in str(failure) and "ModuleNotFoundError" not in str(failure):
            raise


# Choice of models


def compare(t: Trial) -> None:
    draw = t.draw
    X = matrix(draw, rows=int(draw.rng.integers(8, 30)))
    y = None if draw.chance(0.2) else labels(draw, draw.n)
    methods: Any = {"lpp": embeddings.LPP(), "tptssr": classifiers.TPTSSR()}
    methods = methods if draw.chance(0.9) else draw.pick({}, [], "lpp", {"a": 3})
    options = parameters(draw, ["cv", "n_components", "random_state"])
    made = t.run(model_selection.compare, X, y, methods, **options)
    if made is not None and not str(made):
        raise Failure("a comparison without a word")


def labeled_split(t: Trial) -> None:
    """Every labelled row is tested once, and no row is on both sides."""
    draw = t.draw
    n = draw.n = draw.count()
    y = labels(draw, n, some=True)
    split = model_selection.LabeledSplit(draw.pick(2, 3, 5, 1, 0, -1, None, "x", 1.5))
    folds = t.run(lambda: list(split.split(np.zeros((n, 2)), y)))
    if folds is None:
        return
    tested = np.concatenate([test for _, test in folds])
    both = [set(train.tolist()) & set(test.tolist()) for train, test in folds]
    if len(set(tested.tolist())) < len(tested) or any(both):
        raise Failure("a row is tested twice, or trained and tested")


def labeled_rows(t: Trial) -> None:
    draw = t.draw
    draw.n = int(draw.rng.integers(8, 40))
    X = draw.pick(np.float64(1.0), None, object()) if draw.chance(0.03) else clean(draw, draw.n, 3)
    model = model_selection.LabeledRows(draw.pick(classifiers.RBFDiscriminant(), classifiers.TPTSSR()))
    if fitted(t, model, X, labels(draw, draw.n, some=True)):
        scorer = t.run(model_selection.labeled_scorer, *draw.pick((), ("accuracy",), ("nonsense",), (3,)))
        if scorer is not None:
            t.run(scorer, model, X, labels(draw, draw.n, some=True))


# name: (weight, call)
MODELS: dict[str, tuple[float, Callable[[Trial], None]]] = {
    **{f"extensions.{cls.__name__}": (0.6, estimator(cls)) for cls in EXTENSIONS},
    **{
        f"{module.__name__.rpartition('.')[2]}.{name}": (
            0.05 if name.endswith("CV") else 0.3,
            estimator(getattr(module, name), supervised="some" if name in SOME_LABELS else "all" if name in LABELS else ""),  # noqa: E501
        )
        for module in (embeddings, classifiers)
        for name in module.__all__
        if isinstance(getattr(module, name), type)
    },
    **{
        f"{parameter}s.{name}": (0.15, part(getattr(module, name), parameter))
        for module, parameter, base in ((objectives, "objective", objectives.ObjectiveBuilder),
                                        (smoothers, "smoother", smoothers.Smoother))
        for name in module.__all__
        if isinstance(kind := getattr(module, name), type)
        and issubclass(kind, base)
        and kind not in (base, objectives.Given)
    },
    "objectives.Objective": (0.3, given_matrices(False)),
    "objectives.Given": (0.3, given_matrices(True)),
    "persistence.load": (2, load),
    "persistence.save": (1, save),
    "persistence.describe": (1, describe),
    "persistence.to_onnx": (0.1, to_onnx),
    "scale.sample_rows": (1, sample_rows),
    "scale.transform_to": (0.5, transform_to),
    "scale.Mapper": (0.5, mapper),
    "model_selection.compare": (0.03, compare),
    "model_selection.LabeledSplit": (0.5, labeled_split),
    "model_selection.LabeledRows": (0.2, labeled_rows),
}  # fmt: skip
