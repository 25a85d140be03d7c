"""Fitted models in files that execute nothing: `save`, `load`, `describe`, and `to_onnx` for other runtimes.

A file has the layout of safetensors: the length of a header as 8 bytes (little endian), the header in JSON, raw arrays.
The header names the class, its parameters, the version of the format, and dtype, shape, offsets and SHA-256 of every
array; a digest covers the header itself.

What a file holds is what `transform` and `predict` need, and what says how the model was made:

=============================  =========================================================================================
model                          holds
=============================  =========================================================================================
all                            class, parameters, number and names of features, labels of the classes
LPP, LDE, LFDA, SDA, SDE, TCA, the coefficients of their linear map; with a kernel the training rows and dual
NPE, LLTSA, SpectralRegression coefficients
ElasticEmbedding, LGRM,        the same, linear or kernel
LapRLS, FME
NSSE, RBFDiscriminant,         training rows, coefficients, width
extensions RBF, KernelRidge
ClassicalMDS, Linear           the coefficients of a linear map
LaplacianEigenmaps, Diffusion- training rows (or none, where affinities are given), their embedding, eigenvalues
Maps, Nystrom, LatentVariable
LocallyLinearEmbedding, LTSA,  training rows and their embedding
LocalRegressionEmbedding,
Reconstruction
Isomap, LandmarkIsomap         training rows, their geodesics to the landmarks
SparseCode                     its atoms, which are training rows, scaled and projected, and their embedding
GFHF, LGC, RMGT                training rows and their scores (scores alone, where the graph is given)
TPTSSR                         training rows, their classes, and the matrix of the first code
ComposedEmbedding, OutOfSample the map of their smoother or extension, as above
=============================  =========================================================================================

`embedding_` of the training rows, graphs, histories and parameters that are large arrays are not in a file; such
parameters come back as `NotStored`, which says what they were. Where a file holds training rows, `describe` and the
header say so (`"training_rows": true`): whoever gets the file gets the rows.

`load` runs no code of the file and imports nothing that it names: classes come from a fixed list of this library's. It
reads no array before the size of the file and the checksums have confirmed it, and checks shapes, ranges and finiteness
of all that the core relies on. A damaged, forged or newer file is a ValueError. Checksums guard against accidents; they
say nothing about who wrote a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import manifast
from manifast import _model_file, classifiers, embeddings, extensions, objectives, smoothers
from manifast._map_checks import check_map, holds_rows
from manifast._onnx import to_onnx
from manifast._parts import NotStored, brief, kept_state
from manifast._validation import Array
from manifast.maps import MAPS, SparseCodeMap, restore

__all__ = ["NotStored", "describe", "load", "save", "to_onnx"]

# What a file may name. Parts are parameters of models, and hold no arrays of their own.
_PACKAGES = {"embeddings": embeddings, "classifiers": classifiers, "extensions": extensions}
_PARTS = {"objectives": objectives, "smoothers": smoothers}
_CLASSES: dict[str, type[Any]] = {
    f"{package}.{name}": kind
    for package, module in (_PACKAGES | _PARTS).items()
    for name in module.__all__
    if isinstance(kind := getattr(module, name), type) and issubclass(kind, BaseEstimator)
}
_NAMES = {kind: name for name, kind in _CLASSES.items()}
_DTYPES = {np.dtype(code).name: np.dtype(code) for code in "?bhilqBHILQefd"} | {"object": np.dtype(object)}
_TEXT = 1 << 20  # characters of labels that an array may have room for, however short they are
_INLINE = 512  # numbers of an array that the header may hold
_NEEDED = ("extension", "objective", "smoother")  # parameters that a model cannot do without


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that `load` reads; it takes the place of an older file at once.

    Parameters
    ----------
    estimator : fitted embedding, classifier or extension of this library
        With an extension, objective or smoother of somebody else's inside it is refused, as a file holds no code. The
        embedder of `OutOfSample` may be anybody's: it is not needed, and not saved.
    path : path of the file

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import manifast
    >>> X = np.random.default_rng(0).standard_normal((60, 4))
    >>> model = manifast.LPP().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "lpp.manifast")
    ...     manifast.save(model, path)
    ...     again = manifast.load(path)
    >>> np.array_equal(again.transform(X), model.transform(X))
    True
    """
    _model_file.write(_model_file.as_path(path), *_packed(estimator))


def load(path: str | os.PathLike[str], mmap: bool = False) -> Any:
    """The model of a file that `save` wrote; its `transform` and `predict` have the same bits.

    Parameters
    ----------
    path : path of the file
    mmap : bool, default False
        Map the arrays from the file instead of reading them, read-only: processes share them. All bytes are still
        looked at once, for their checksums. The file must not be changed in place meanwhile; `save` never does that.

    Returns
    -------
    The fitted model, without `embedding_` and what else new rows do not need.

    Examples
    --------
    See `save`.
    """
    if not isinstance(mmap, bool | np.bool_):
        raise ValueError(f"mmap must be True or False. Got {mmap!r} instead.")
    place = _model_file.as_path(path)
    text, arrays = _model_file.read(place, bool(mmap))
    try:
        reader = _Reader(arrays)
        model = reader.model(text.get("estimator"))
        if type(model) not in _NAMES or not hasattr(type(model), "_stored"):
            raise ValueError(f"the model must be an embedding, classifier or extension. Got {type(model).__name__}.")
        if reader.left:
            raise ValueError(f"all arrays must belong to the model. Got {sorted(reader.left)} beside it.")
        reader.check_fitted(model)
        if {name: text.get(name) for name in _SUMMARY} != _summary(model, reader.rows):
            raise ValueError("its first lines speak of another model than the one that it holds")
    except RecursionError:
        raise _model_file.damaged(place, "its header is nested too deeply") from None
    except ValueError as error:
        raise _model_file.damaged(place, str(error).rstrip(".")) from None
    return model


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a saved model is, from its header alone: class, version of manifast, and whether it holds training rows.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import manifast
    >>> from manifast.persistence import describe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "isomap.manifast")
    ...     manifast.save(manifast.Isomap().fit(np.random.default_rng(0).standard_normal((60, 4))), path)
    ...     describe(path)["class"], describe(path)["training_rows"]
    ('Isomap', True)
    """
    text = _model_file.read_text(_model_file.as_path(path))
    return {name: text.get(name) for name in ("manifast", *_SUMMARY)}


def model_digest(estimator: Any) -> str:
    """A digest of all that `save` would write: two models with the same one map rows alike."""
    return _model_file.digest_of(_packed(estimator)[0])


def _packed(estimator: Any) -> tuple[bytes, list[Array]]:
    kind = type(estimator)
    if kind not in _NAMES or not hasattr(kind, "_stored"):
        raise ValueError(
            "estimator must be a fitted embedding, classifier or extension of manifast. Got "
            f"{kind.__module__}.{kind.__qualname__}: of a pipeline or search, save the step that is ours."
        )
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError(f"estimator must be fitted. Got a {kind.__name__} that is not.")
    writer = _Writer()
    tree = writer.model(estimator, kind.__name__)
    text = {**_summary(estimator, writer.rows), "manifast": manifast.__version__, "estimator": tree}
    return _model_file.pack(text, writer.arrays)


_SUMMARY = ("class", "training_rows", "n_features_in")


def _summary(model: Any, rows: bool) -> dict[str, Any]:
    """What the header says of a model beside the model itself."""
    return dict(zip(_SUMMARY, (type(model).__name__, rows, int(model.n_features_in_)), strict=True))


class _Writer:
    """Models as JSON, and the arrays that it refers to."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.rows = False  # whether some of them are training rows

    def model(self, value: Any, where: str) -> dict[str, Any]:
        state = kept_state(value) if hasattr(type(value), "_stored") else {}
        held = {name: self.value(given, f"{where}.{name}") for name, given in state.items()}
        return {**self.unfitted(value, where), "state": held}

    def unfitted(self, value: Any, where: str) -> dict[str, Any]:
        """Class and parameters: all that a model needs of the parts it was given."""
        given = value.get_params(deep=False)
        parameters = {name: self.parameter(name, part, f"{where}.{name}") for name, part in given.items()}
        return {"$class": _NAMES[type(value)], "parameters": parameters, "state": {}}

    def parameter(self, name: str, value: Any, where: str) -> Any:
        value = brief(value)
        try:
            return self.unfitted(value, where) if type(value) in _NAMES else self.value(value, where)
        except ValueError:
            if name in _NEEDED:
                raise
            return self.value(NotStored(" ".join(repr(value).split())), where)

    def value(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.generic):
            return self.value(value.item(), where)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value) if np.isfinite(value) else {"$float": repr(float(value))}
        if isinstance(value, tuple | list):
            return {
                "$tuple" if isinstance(value, tuple) else "$list": [
                    self.value(item, f"{where}[{at}]") for at, item in enumerate(value)
                ]
            }
        if isinstance(value, NotStored):
            return {"$not_stored": value.what}
        if isinstance(value, np.ndarray):
            return self.array(value, where)
        if type(value) in MAPS.values():
            return self.map(value, where)
        if type(value) in _NAMES:
            return self.model(value, where)
        raise ValueError(
            f"{where} must be a number, a text or a part of manifast to be saved, as a file holds no code. Got "
            f"{type(value).__module__}.{type(value).__qualname__}: use a part of manifast for it, or pickle."
        )

    def array(self, value: Array, where: str) -> Any:
        if value.size > _INLINE and _model_file.storable(value):
            return {"$array": self.put(value, where)}
        name = f"str{value.dtype.itemsize // 4}" if value.dtype.kind == "U" else value.dtype.name
        if value.dtype.kind != "U" and name not in _DTYPES:
            raise ValueError(f"{where} must hold numbers or texts to be saved. Got an array of dtype {value.dtype}.")
        items = [self.value(item, where) for item in value.ravel().tolist()]
        if value.dtype.kind == "U" and not _paid_for(items, value.dtype.itemsize // 4):
            raise ValueError(f"{where} must not be far wider than its texts to be saved. Got {value.dtype}.")
        return {"$values": items, "dtype": name, "shape": list(value.shape)}

    def map(self, value: Any, where: str) -> Any:
        header, arrays = value.header(), value.arrays()
        self.rows = self.rows or holds_rows(arrays)
        numbers = {name: _plain(given) for name, given in header.items()}
        return {"$map": numbers, "arrays": {name: self.put(part, f"{where}.{name}") for name, part in arrays.items()}}

    def put(self, array: Array, name: str) -> str:
        self.arrays[name] = array
        return name


class _Reader:
    """Models from JSON: every value of a known form, every class from the list, every map checked."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays
        self.left = set(arrays)  # those that nothing has referred to yet
        self.rows = False  # whether some of them are training rows
        self._ends: dict[int, tuple[Any, tuple[range, int]]] = {}  # maps, their features and outputs

    def model(self, tree: Any) -> Any:
        if not isinstance(tree, dict) or set(tree) != {"$class", "parameters", "state"}:
            raise ValueError("a model must have a class, parameters and a state")
        kind = _CLASSES.get(tree["$class"]) if isinstance(tree["$class"], str) else None
        if kind is None:
            raise ValueError(f"it names the class {tree['$class']!r}, which this version of manifast does not know")
        parameters, state, stored = tree["parameters"], tree["state"], getattr(kind, "_stored", {})
        for found, known, what in ((parameters, kind._get_param_names(), "parameters"), (state, stored, "attributes")):
            if not isinstance(found, dict) or not set(found) <= set(known):
                raise ValueError(f"it gives {kind.__name__} {what} that this version of manifast does not know")
        given = {name: self.value(value) for name, value in parameters.items()}
        try:
            model = kind(**given)
        except TypeError:
            raise ValueError(f"it does not give {kind.__name__} all parameters that it needs") from None
        for name, value in state.items():
            made = self.value(value)
            if not _FORMS[stored[name]](made):
                raise ValueError(f"{name} of {kind.__name__} is not {stored[name]}")
            setattr(model, name, made)
        return model

    def value(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, bool | str | int | float):
            return tree
        if not isinstance(tree, dict):
            raise ValueError(f"it holds a value of an unknown form, {type(tree).__name__}")
        keys = set(tree)
        if keys == {"$float"} and tree["$float"] in ("nan", "inf", "-inf"):
            return float(tree["$float"])
        if keys in ({"$tuple"}, {"$list"}) and isinstance(next(iter(tree.values())), list):
            items = [self.value(item) for item in next(iter(tree.values()))]
            return tuple(items) if "$tuple" in keys else items
        if keys == {"$not_stored"} and isinstance(tree["$not_stored"], str):
            return NotStored(tree["$not_stored"])
        if keys == {"$array"}:
            return self._take(tree["$array"])
        if keys == {"$values", "dtype", "shape"}:
            return self._inline(tree["$values"], tree["dtype"], tree["shape"])
        if keys == {"$map", "arrays"} and isinstance(tree["arrays"], dict):
            arrays = {name: self._take(place) for name, place in tree["arrays"].items()}
            ends = check_map(tree["$map"], arrays)
            self.rows = self.rows or holds_rows(arrays)
            made = restore(tree["$map"], arrays)
            self._ends[id(made)] = made, ends
            return made
        if "$class" in keys:
            return self.model(tree)
        raise ValueError(f"it holds a value of an unknown form, {sorted(keys)}")

    def check_fitted(self, model: Any) -> tuple[range, int]:
        """Features and outputs of a model that was read, whose parts fit one another."""
        held = vars(model)
        maps = [part for part in (held.get("map_"), held.get("extension_")) if part is not None]
        if len(maps) != 1:
            raise ValueError(f"{type(model).__name__} must have one map. Got {len(maps)} instead")
        inputs, outputs = self._ends_of(maps[0])
        features = held.get("n_features_in_")
        other = held.get("embedding_map_")
        if other is not None and self._ends_of(other)[0] != inputs:
            raise ValueError("its maps take different numbers of features")
        before = held.get("_whitening")
        if before is not None:  # the map sees whitened rows
            taken, made = self._ends_of(before)
            if made not in inputs:
                raise ValueError(f"the map takes {inputs.start} features where the metric gives {made}")
            inputs = taken
        if features not in inputs:
            raise ValueError(f"the map takes {inputs.start} features where the model says {features}")
        names = held.get("feature_names_in_")
        if names is not None and len(names) != features:
            raise ValueError(f"there are {len(names)} names of {features} features")
        _check_kind(model, held, outputs)
        return inputs, outputs

    def _ends_of(self, part: Any) -> tuple[range, int]:
        """Features and outputs of a map, or of an extension that has one."""
        return self.check_fitted(part) if isinstance(part, extensions.Extension) else self._ends[id(part)][1]

    def _take(self, name: Any) -> Array:
        if not isinstance(name, str) or name not in self.left:
            raise ValueError(f"it refers to the array {name!r}, which is not there or belongs elsewhere")
        self.left.discard(name)
        return self._arrays[name]

    def _inline(self, items: Any, dtype: Any, shape: Any) -> Array:
        fits = isinstance(items, list) and isinstance(dtype, str) and isinstance(shape, list)
        if not fits or not all(type(size) is int and 0 <= size <= len(items) for size in shape):
            raise ValueError("it holds an array of an unknown form")
        values = [self.value(item) for item in items]
        width = dtype.removeprefix("str")
        try:
            if dtype.startswith("str") and width.isascii() and width.isdigit() and len(width) < 9:
                if not all(isinstance(value, str) for value in values) or not _paid_for(values, int(width)):
                    raise ValueError("it holds texts of another length than it says")
                return np.array(values, dtype=f"<U{width}").reshape(shape)
            if any(not isinstance(value, bool | int | float | str | None) for value in values):
                raise ValueError("it holds an array of an unknown form")
            made = np.empty(len(values), _DTYPES[dtype])
            made[:] = values
            return made.reshape(shape)
        except (KeyError, OverflowError, TypeError):
            raise ValueError(f"it holds an array of dtype {dtype!r} whose values do not fit") from None


def _paid_for(texts: list[str], width: int) -> bool:
    """Whether texts fit into an array of that width, which may be large only where they are."""
    lengths = [len(text) for text in texts]
    return max(lengths, default=0) <= width and width * len(texts) <= max(_TEXT, 64 * sum(lengths))


def _plain(value: Any) -> Any:
    """Numbers of NumPy in the header of a map as Python's own, which JSON can write."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**62


def _is_vector(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1


# The forms of fitted attributes, by the names that `_stored` of the classes has for them.
_FORMS: dict[str, Callable[[Any], bool]] = {
    "count": _is_count,
    "power": lambda value: type(value) is int and abs(value) < 5000,
    "names": lambda value: _is_vector(value) and all(isinstance(name, str) for name in value.tolist()),
    "labels": lambda value: _is_vector(value) and len(value) > 0,
    "numbers": lambda value: _is_vector(value) and value.dtype.kind == "f",
    "atoms": lambda value: _is_vector(value) and value.dtype == np.int64,
    "map": lambda value: value is None or type(value) in MAPS.values() or isinstance(value, extensions.Extension),
    "part": lambda value: value is None or isinstance(value, objectives.ObjectiveBuilder | smoothers.Smoother),
}


def _check_kind(model: Any, held: dict[str, Any], outputs: int) -> None:
    """What a family of models needs beside its map."""
    if _NAMES[type(model)].startswith("classifiers."):
        if len(held.get("classes_", ())) != outputs or "_exponent" not in held:
            raise ValueError(f"there are not as many classes as scores, {outputs}")
    elif _NAMES[type(model)].startswith("embeddings."):
        if held.get("_n_out") != outputs or "_exponent" not in held:
            raise ValueError(f"the map gives {outputs} numbers where the model says {held.get('_n_out')}")
        if not {"map_", "_power", "_values"} & set(type(model)._stored) <= set(held):
            raise ValueError(f"a part of {type(model).__name__} is missing")
    elif isinstance(model, extensions.SparseCode):
        atoms = held.get("_atoms")
        if not isinstance(model.map_, SparseCodeMap) or atoms is None or "_count" not in held:
            raise ValueError("a part of SparseCode is missing")
        if len(atoms) != len(model.map_.atoms):
            raise ValueError("there are not as many numbers of atoms as atoms")
        if not (atoms.min() >= 0 and atoms.max() < held["_count"]):
            raise ValueError(f"numbers of atoms must be from 0 to {held['_count'] - 1}")
