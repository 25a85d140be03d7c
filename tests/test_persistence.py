"""Saved models: the same bits after `load`, and nothing but a ValueError from files that are damaged or forged."""

from __future__ import annotations

import copy
import inspect
import io
import json
import os
import pickle
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import saved_models
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifast
from manifast import _map_checks, _model_file, classifiers, embeddings, extensions, maps, persistence
from manifast._parts import slim

MODELS = saved_models.models()


def equal(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.model"


def again(model, path, **options):
    manifast.save(model, path)
    return manifast.load(path, **options)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_after_load(name, dtype, mmap, path):
    model = MODELS[name]
    with np.errstate(over="ignore"):
        X = saved_models.new_rows(model, 40 if model.n_features_in_ == 4 else 20).astype(dtype)
    if not np.isfinite(X).all():
        pytest.skip("rows of 1e200 have no float32")
    loaded = again(model, path, mmap=mmap)
    assert type(loaded) is type(model)
    equal(saved_models.images(loaded, X), saved_models.images(model, X))
    equal(saved_models.images(slim(model), X), saved_models.images(model, X))
    if hasattr(model, "get_feature_names_out"):
        assert list(loaded.get_feature_names_out()) == list(model.get_feature_names_out())
    assert repr(clone(loaded)) == repr(clone(loaded))
    for kept in (loaded, model):
        file = io.BytesIO()
        joblib.dump(kept, file)
        file.seek(0)
        for other in (pickle.loads(pickle.dumps(kept)), copy.copy(kept), copy.deepcopy(kept), joblib.load(file)):
            equal(saved_models.images(other, X), saved_models.images(model, X))
    # A model that was loaded is saved to the same bytes.
    first = path.read_bytes()
    manifast.save(loaded, path)
    assert path.read_bytes() == first


def test_every_map_has_a_rule_and_a_model():
    assert set(_map_checks.RULES) == set(maps.MAPS)
    kinds = set()
    for model in MODELS.values():
        held = [getattr(model, name, None) for name in ("map_", "extension_")]
        kinds |= {getattr(part, "map_", part).kind for part in held if part is not None}
    assert kinds == set(maps.MAPS)


PUBLIC = [
    getattr(module, name)
    for module in (embeddings, classifiers, extensions)
    for name in module.__all__
    if isinstance(getattr(module, name), type) and getattr(module, name) is not extensions.Extension
]


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_public_estimator_can_be_saved(kind, path, digits):
    X = digits[:120]
    y = np.repeat([0, 1, 2], 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind is manifast.OutOfSample:
            model = kind(manifast.Isomap()).fit(X)
        elif issubclass(kind, extensions.Extension):
            model = kind().fit(X, X[:, :3])
        else:
            short = {"lam": (1.0,), "mu": (1.0,), "gamma": (1.0, 10.0)} if kind is manifast.ElasticEmbeddingCV else {}
            known = inspect.signature(kind).parameters
            searches = {name: 2 if name == "cv" else 1 for name in ("cv", "n_repeats", "n_splits", "n_rounds")}
            model = kind(**short, **{name: count for name, count in searches.items() if name in known}).fit(X, y)
    loaded = again(model, path)
    equal(saved_models.images(loaded, digits[120:150]), saved_models.images(model, digits[120:150]))
    assert loaded.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert repr(loaded) == repr(model)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(loaded.classes_, model.classes_)


def test_feature_names_and_eigenvalues_are_kept(path):
    pandas = pytest.importorskip("pandas", reason="data frames")
    X = pandas.DataFrame(saved_models.rows(), columns=list("abcd"))
    model = manifast.LPP(2, n_neighbors=6).fit(X)
    loaded = again(model, path)
    np.testing.assert_array_equal(loaded.feature_names_in_, ["a", "b", "c", "d"])
    np.testing.assert_array_equal(loaded.eigenvalues_, model.eigenvalues_)
    np.testing.assert_array_equal(loaded.components_, model.components_)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.transform(X.rename(columns={"a": "z"}))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 5], dtype=np.int16), np.array([True, False]), np.array([1.0, 2.0], np.float32),
        np.array(["a", "long"], dtype="<U9"), np.array(["a", 7], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)  # fmt: skip
def test_labels_of_any_kind(labels, path):
    X = saved_models.rows()
    if labels.dtype == object:
        model = manifast.TPTSSR().fit(X, saved_models.labels().astype(object))
    else:
        model = manifast.TPTSSR().fit(X, labels[np.arange(24) % 2])
    loaded = again(model, path)
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_parameters_that_are_large_say_what_they_were(path, rng):
    X = rng.standard_normal((300, 4))
    lists = manifast.kernels.knn(X, 8)
    model = manifast.LaplacianEigenmaps(neighbors=lists).fit(X)
    loaded = again(model, path)
    said = "float64 array of shape (300, 8) and int64 array of shape (300, 8)"
    assert loaded.neighbors == persistence.NotStored(said)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert again(MODELS["rmgt"], path).prior.tolist() == [0.4, 0.6]
    embedder = again(MODELS["out_of_sample"], path).embedder
    assert embedder.what.startswith("SpectralEmbedding(")
    with pytest.raises(ValueError, match="embedder must have fit_transform"):
        manifast.load(path).fit(X)


def test_a_file_holds_its_arrays_and_little_else(path, rng):
    for model in (
        manifast.LaplacianEigenmaps(4, extension="rbf").fit(rng.standard_normal((2000, 30))),
        manifast.Isomap(4, n_landmarks=100).fit(rng.standard_normal((2000, 30)).astype(np.float32)),
    ):
        manifast.save(model, path)
        _, arrays = _model_file.read(path, False)
        held = sum(array.nbytes for array in arrays.values())
        assert held < path.stat().st_size < 1.02 * held
        assert set(_model_file.read(path, True)[1]) == set(arrays)


def test_training_rows_are_declared(path):
    for name, expected in {"lpp": False, "mds": False, "gfhf_given": False, "nsse": True, "lvm_sparse": True,
                           "sparse_code": True, "tptssr": True, "lle": True}.items():  # fmt: skip
        manifast.save(MODELS[name], path)
        told = persistence.describe(path)
        assert told["training_rows"] is expected, name
        assert told["class"] == type(MODELS[name]).__name__
        assert told["manifast"] == manifast.__version__


def test_mapped_arrays_cannot_be_written(path):
    loaded = again(MODELS["nsse"], path, mmap=True)
    assert not loaded.map_.rows.flags.writeable and loaded.map_.rows.flags.aligned
    before = loaded.transform(saved_models.rows())
    manifast.save(MODELS["lpp"], path)  # the old file lives on under the map
    np.testing.assert_array_equal(loaded.transform(saved_models.rows()), before)
    assert again(MODELS["nsse"], path).map_.rows.flags.writeable


def test_readers_of_safetensors_open_the_arrays(path):
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    for name, model in MODELS.items():
        manifast.save(model, path)
        arrays = _model_file.read(path, False)[1]
        equal(numpy.load_file(path), arrays)
        assert arrays, name


@pytest.mark.parametrize("name", sorted(file.stem for file in saved_models.GOLDEN.glob("*.manifast")))
def test_files_of_this_version_load_for_ever(name):
    model = manifast.load(saved_models.GOLDEN / f"{name}.manifast")
    recorded = np.load(saved_models.GOLDEN / f"{name}.npz")
    for method, expected in saved_models.images(model, recorded["rows"]).items():
        if expected.dtype.kind in "UO":
            np.testing.assert_array_equal(expected, recorded[method])
        else:
            size = np.abs(recorded[method]).max()
            atol = max(1e-9 * size, rounding(model, recorded["rows"]))
            np.testing.assert_allclose(expected, recorded[method], rtol=1e-9, atol=atol)


def rounding(model, X):
    """What two roundings of the values of a polynomial kernel, each by one unit in the last place, change in sums."""
    made = getattr(model, "map_", None)
    if not isinstance(made, maps.KernelMap) or made.kernel.name != "poly":
        return 0.0
    values = np.abs(X @ made.rows.T + made.kernel.coef0) ** made.kernel.degree
    return float(2 * np.finfo(float).eps * (values @ np.abs(made.dual)).max())


def test_there_is_a_file_of_every_family():
    assert {file.stem for file in saved_models.GOLDEN.glob("*.manifast")} >= set(MODELS)


class Doubler(BaseEstimator):
    """Somebody's own extension."""

    def fit(self, X, Y):
        self.columns = Y.shape[1]
        return self

    def predict(self, X):
        return 2 * X[:, : self.columns]


class OwnLPP(manifast.LPP):
    """Somebody's own estimator."""


def test_what_a_file_cannot_hold_is_refused(path):
    X = saved_models.rows()
    refused = {
        "LaplacianEigenmaps.extension_ must be": manifast.LaplacianEigenmaps(n_neighbors=6, extension=Doubler()).fit(X),
        "ComposedEmbedding.objective_.objective must be": manifast.ComposedEmbedding(
            lambda X, y: np.eye(len(X)) - 1 / len(X), "ridge", n_components=1
        ).fit(X),
        "weights must be None": extensions.SparseCode(weights=np.square).fit(X, X),
        "estimator must be fitted": manifast.LPP(),
        "estimator must be a fitted embedding.*Pipeline": make_pipeline(StandardScaler(), manifast.NPE()).fit(X),
        "estimator must be a fitted embedding.*OwnLPP": OwnLPP(n_neighbors=5).fit(X),
        "estimator must be a fitted embedding.*int": 3,
    }  # fmt: skip
    manifast.save(MODELS["lpp"], path)
    before = path.read_bytes()
    for sentence, model in refused.items():
        with pytest.raises(ValueError, match=sentence):
            manifast.save(model, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(ValueError, match="path must be the name of a file"):
        manifast.save(MODELS["lpp"], 3)
    with pytest.raises(ValueError, match="mmap must be"):
        manifast.load(path, mmap="r")
    with pytest.raises(FileNotFoundError):
        manifast.load(path.parent / "nothing")


def test_a_failed_save_leaves_the_old_file(path):
    manifast.save(MODELS["lpp"], path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="bytes-like"), _model_file.replacing(path) as file:
        file.write(b"half")
        file.write(None)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_truncated_at_every_byte(path):
    manifast.save(MODELS["lpp"], path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        for mmap in (False, True):
            with pytest.raises(ValueError, match="path must be a whole"):
                manifast.load(path, mmap=mmap)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="path must be a whole"):
        manifast.load(path)


def test_one_flipped_bit_anywhere(path):
    manifast.save(MODELS["laprls"], path)
    whole = bytearray(path.read_bytes())
    for at in range(len(whole)):
        for bit in range(8):
            whole[at] ^= 1 << bit
            put(path, whole)
            with pytest.raises(ValueError, match="path must be a"):
                manifast.load(path)
            whole[at] ^= 1 << bit


def parts(path):
    """Text of the model and arrays of a file."""
    return _model_file.read(path, False)


def put(path, content):
    """New content in a file that exists: faster than a new file."""
    with open(path, "r+b") as file:
        file.write(content)
        file.truncate()


def forge(path, text, arrays):
    """A file with right checksums, whatever it says."""
    packed, parts = _model_file.pack(text, arrays)
    put(path, packed + b"".join(part.tobytes() for part in parts))


def test_a_newer_version_and_other_formats(path):
    manifast.save(MODELS["lpp"], path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"version":"1"', b'"version":"2"'))
    with pytest.raises(ValueError, match=r"format version 1 or older\. Got version 2 .* newer manifast"):
        manifast.load(path)
    for wrong in (b"", b"PK\x03\x04", pickle.dumps(MODELS["lpp"]), b"\x40" + bytes(7) + b"{" * 64, b"\xff" * 100,
                  (10**5).to_bytes(8, "little") + b'{"__metadata__":{"digest":"' + b"[" * 10**5):  # fmt: skip
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="path must be a whole"):
            manifast.load(path)


def lies(text, arrays):
    """Forged models: (what the sentence says, text, arrays)."""

    def changed(*keys, to):
        tree = copy.deepcopy(text)
        inner = tree
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = to
        return tree

    def array(name, value):
        return {**arrays, name: value}

    state = ("estimator", "state")
    rows, dual = arrays["LGRM.map_.rows"], arrays["LGRM.map_.dual"]
    yield "does not know", changed("estimator", "$class", to="os.system"), arrays
    yield "does not know", changed("estimator", "$class", to="embeddings.expected_failed_checks"), arrays
    yield "does not know", changed("estimator", "$class", to=["embeddings.LPP"]), arrays
    yield "an embedding, classifier or extension", changed(
        "estimator", to={"$class": "objectives.LLE", "parameters": {}, "state": {}}
    ), {}
    yield "parameters that", changed("estimator", "$class", to="extensions.RBF"), arrays
    yield "attributes that", changed(*state, to={"embedding_": 3}), arrays
    yield "parameters that", changed("estimator", "parameters", to={"nothing": 3}), arrays
    yield "a class, parameters and a state", changed("estimator", to=None), arrays
    yield "unknown form", changed("estimator", "parameters", "mu", to=[1]), arrays
    yield "unknown form", changed("estimator", "parameters", "mu", to={"$code": "print(1)"}), arrays
    yield "is not count", changed(*state, "n_features_in_", to=-3), arrays
    yield "takes 4 features where the model says 5", changed(*state, "n_features_in_", to=5), arrays
    yield "gives 1 numbers where the model says 2", changed(*state, "_n_out", to=2), arrays
    yield "is not power", changed(*state, "_exponent", to=10**9), arrays
    yield "is not map", changed(*state, "map_", to=3), arrays
    yield "must have one map", changed(*state, "map_", to=None), {}
    yield "a map must be one of", changed(*state, "map_", "$map", "map", to="pickle"), arrays
    kernel = {"name": "rbf", "sigma": 1.0, "degree": 3, "coef0": 1.0}
    for wrong in ({"sigma": 0.0}, {"sigma": None}, {"degree": 0}, {"degree": 1.5}, {"name": "sigmoid"}, {"more": 1}):
        yield "kernel must be", changed(*state, "map_", "$map", "kernel", to=kernel | wrong), arrays
    yield "opposite", changed(*state, "map_", "$map", "kernel", to=kernel | {"name": "precomputed"}), arrays
    yield "not there or belongs elsewhere", changed(*state, "map_", "arrays", "rows", to="LGRM.map_.dual"), arrays
    yield "beside it", text, {**arrays, "more": np.zeros(3)}
    yield "must be finite", text, array("LGRM.map_.rows", np.where(rows == rows[3, 2], np.nan, rows))
    yield "must be finite", text, array("LGRM.map_.dual", np.where(dual == dual[3], np.inf, dual))
    yield "dual must have 24 entries", text, array("LGRM.map_.dual", dual[:-1])
    yield "takes 3 features", text, array("LGRM.map_.rows", np.ascontiguousarray(rows[:, :3]))
    yield "2 dimensions", text, array("LGRM.map_.rows", rows.ravel())
    yield "none of them 0", text, array("LGRM.map_.rows", rows[:0])
    yield "must hold float32 or float64", text, array("LGRM.map_.rows", rows.astype(np.int64))


def test_parts_in_the_place_of_maps(path):
    manifast.save(MODELS["nsse_within"], path)
    text, arrays = parts(path)
    for name in ("_whitening", "map_"):
        tree = copy.deepcopy(text)
        held = tree["estimator"]["state"]
        kept = {at: array for at, array in arrays.items() if at not in held[name]["arrays"].values()}
        held[name] = {"$class": "extensions.RBF", "parameters": {}, "state": {}}
        forge(path, tree, kept)
        with pytest.raises(ValueError, match="RBF must have one map"):
            manifast.load(path)


@pytest.mark.parametrize("change", [{"training_rows": False}, {"class": "LPP"}, {"n_features_in": 5}, {"class": None}])
def test_first_lines_that_lie(change, path):
    manifast.save(MODELS["nsse"], path)
    text, arrays = parts(path)
    forge(path, text | change, arrays)
    with pytest.raises(ValueError, match="speak of another model"):
        manifast.load(path)


def test_texts_are_paid_for(path):
    """A header of some bytes must not ask for gigabytes."""
    manifast.save(MODELS["tptssr"], path)
    text, arrays = parts(path)
    wide = {"$values": [""] * 1000, "dtype": "str65536", "shape": [1000]}
    text["estimator"]["state"]["classes_"] = wide
    forge(path, text, arrays)
    with pytest.raises(ValueError, match="texts of another length"):
        manifast.load(path)
    model = manifast.TPTSSR().fit(saved_models.rows(), saved_models.labels().astype("<U1000000"))
    with pytest.raises(ValueError, match="must not be far wider than its texts"):
        manifast.save(model, path)
    model = manifast.TPTSSR().fit(saved_models.rows(), np.char.add(saved_models.labels(), "é" * 70_000))
    np.testing.assert_array_equal(again(model, path).classes_, model.classes_)


def signed(header):
    """A header of any JSON with a right digest, and its length."""
    header += b" " * (-(8 + len(header)) % 64)
    return _model_file._signed(len(header).to_bytes(8, "little"), header)


ROWS = b'"LapRLS.map_.coef":'
ENTRY = b'{"dtype":"F64","shape":[4,2],"data_offsets":[0,64]}'


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[16,80]}', "does not lie where"),
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[-64,0]}', "has shape"),
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[0,65]}', "does not lie where"),
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[0.0,64.0]}', "has shape"),
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[false,64]}', "has shape"),
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[0]}', "has shape"),
        (b'{"dtype":"F64","shape":[-4,-2],"data_offsets":[0,64]}', "has shape"),
        (b'{"dtype":"F64","shape":[true,8],"data_offsets":[0,64]}', "has shape"),
        (b'{"dtype":"F64","shape":[2,2,2],"data_offsets":[0,64]}', "has shape"),
        (b'{"dtype":"F64","shape":[4611686018427387904,2],"data_offsets":[0,64]}', "has shape"),
        (b'{"dtype":"F64","shape":[2305843009213693952,8],"data_offsets":[0,64]}', "does not lie where"),
        (b'{"dtype":"F64","shape":[1000000000,1000000],"data_offsets":[0,8000000000000000]}', "does not lie where"),
        (b'{"dtype":"F64","shape":[9' + b"9" * 5000 + b',2],"data_offsets":[0,64]}', "no JSON"),
        (b'{"dtype":"F16","shape":[4,2],"data_offsets":[0,16]}', "that are known"),
        (b'{"dtype":"F64","shape":[4,2]}', "that are known"),
        (b'{"dtype":"F64","shape":[4,2],"data_offsets":[0,64],"data_offsets":[0,64]}', "no JSON"),
        (b'{"dtype":"F64","shape":[4,NaN],"data_offsets":[0,64]}', "no JSON"),
        (b'{"dtype":"F64","shape":[4,Infinity],"data_offsets":[0,64]}', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"a":' * 100_000, "no JSON"),
        (b"\xff", "no JSON"),
        (ENTRY + b"," + ROWS + ENTRY, "no JSON"),
    ],
    ids=lambda value: value.decode("latin1")[:60] if isinstance(value, bytes) else None,
)  # fmt: skip
def test_layouts_that_lie(entry, sentence, path):
    manifast.save(MODELS["laprls"], path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header, rest = whole[8 : 8 + length].rstrip(b" "), whole[8 + length :]
    assert header.count(ROWS + ENTRY) == 1
    put(path, signed(header) + rest)
    manifast.load(path)  # the same again
    put(path, signed(header.replace(ROWS + ENTRY, ROWS + entry)) + rest)
    for mmap in (False, True):
        with pytest.raises(ValueError, match=f"path must be a whole.*{sentence}"):
            manifast.load(path, mmap=mmap)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_and_links_are_kept(path):
    before = os.umask(0o022)
    try:
        manifast.save(MODELS["lpp"], path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)  # a model that holds rows may be nobody else's
    link = path.with_name("link")
    link.symlink_to(path.name)
    manifast.save(MODELS["nsse"], link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o600
    assert persistence.describe(path)["class"] == "NSSE"
    longest = path.with_name("n" * 255)
    manifast.save(MODELS["lpp"], longest)
    assert sorted(file.name for file in path.parent.iterdir()) == sorted([path.name, "link", longest.name])
    with pytest.raises(IsADirectoryError):
        manifast.save(MODELS["lpp"], path.parent)
    with pytest.raises(FileNotFoundError):
        manifast.save(MODELS["lpp"], path.parent / "nowhere" / "a")


def test_headers_that_lie(path):
    manifast.save(MODELS["lgrm"], path)
    for sentence, text, arrays in lies(*parts(path)):
        forge(path, text, arrays)
        with pytest.raises(ValueError, match=f"path must be a whole.*{sentence}"):
            manifast.load(path)


@pytest.mark.parametrize(
    ("name", "sentence", "number", "value"),
    [
        ("eigenmaps", "n_neighbors must be", "n_neighbors", 25),
        ("eigenmaps", "n_neighbors must be", "n_neighbors", 0),
        ("eigenmaps", "beta must be", "beta", -1.0),
        ("eigenmaps_sparse", "n_neighbors must be a number", "n_neighbors", None),
        ("lle", "reg must be", "reg", 0.0),
        ("lle", "metric must be", "metric", "manhattan"),
        ("lle", "opposite", "metric", "precomputed"),
        ("isomap", "radius must be", "radius", -1.0),
        ("isomap", "and the other None", "radius", 1.0),
        ("isomap_given", "opposite", "metric", "cosine"),
        ("isomap", "n_neighbors must be", "n_neighbors", 2**40),
        ("sparse_code", "near must be", "near", 11),
        ("sparse_code_basis", "one by one", "errors", True),
        ("tptssr", "kept must be", "kept", 25),
        ("tptssr", "codes must name classes", "count", 1),
        ("tptssr", "count must be", "count", 2**61),
        ("lle", "reg must be", "reg", 10**400),
        ("eigenmaps", "beta must be", "beta", 10**400),
        ("isomap_given", "radius must be", "radius", 10**400),
    ],
)
def test_numbers_out_of_range(name, sentence, number, value, path):
    manifast.save(MODELS[name], path)
    text, arrays = parts(path)

    def change(tree):
        if isinstance(tree, dict):
            for key, inner in tree.items():
                if key == "$map":
                    inner[number] = value
                else:
                    change(inner)

    change(text)
    forge(path, text, arrays)
    with pytest.raises(ValueError, match=sentence):
        manifast.load(path)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("indptr", lambda a: np.concatenate([[5], a[1:]])),
        ("indptr", lambda a: a[:-1]),
        ("indptr", lambda a: np.concatenate([a[:3], [10**6], a[4:]])),
        ("indptr", lambda a: np.concatenate([a[:-1], [a[-1] + 1]])),
        ("indices", lambda a: np.where(np.arange(len(a)) == 2, -1, a)),
        ("indices", lambda a: np.where(np.arange(len(a)) == 2, 4, a)),
        ("indices", lambda a: a[:-1]),
        ("data", lambda a: np.where(np.arange(len(a)) == 2, np.nan, a)),
    ],
)
def test_sparse_rows_out_of_range(part, change, path):
    manifast.save(MODELS["lvm_sparse"], path)
    text, arrays = parts(path)
    name = f"LatentVariable.map_.rows_{part}"
    forge(path, text, {**arrays, name: change(arrays[name]).astype(arrays[name].dtype)})
    with pytest.raises(ValueError, match="rows"):
        manifast.load(path)


VALUES = (None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1e308, -0.5, 1e-320, "", "rbf", "precomputed", "within", [], {},
          [1], {"$float": "nan"}, {"$list": []}, {"$tuple": [{"$list": [1]}]}, {"$not_stored": "x"}, {"$array": "x"},
          {"$values": [10**400], "dtype": "int64", "shape": [1]}, {"$values": [[1]], "dtype": "object", "shape": [1]},
          {"$values": ["a"], "dtype": "str99999999", "shape": [1]},
          {"$class": "extensions.RBF", "parameters": {}, "state": {}})  # fmt: skip


def leaves(tree, keys=()):
    """Where the values of a JSON tree are."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*keys, key)
        if isinstance(value, dict | list):
            yield from leaves(value, (*keys, key))


def forged(text, arrays, rng):
    """A model with one thing changed, and arrays likewise."""
    tree, held = copy.deepcopy(text), dict(arrays)
    if rng.random() < 0.5 or not held:
        places = list(leaves(tree["estimator"]))
        place = places[rng.integers(len(places))]
        inner = tree["estimator"]
        for key in place[:-1]:
            inner = inner[key]
        if rng.random() < 0.2:
            del inner[place[-1]]
        else:
            inner[place[-1]] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        return tree, held
    name = list(held)[rng.integers(len(held))]
    array = held[name].copy()
    kind = rng.integers(6)
    if kind == 0:
        array = array[: rng.integers(len(array) + 1)]
    elif kind == 1:
        array = np.concatenate([array, array])
    elif kind == 2:
        array = array.astype([np.float32, np.float64, np.int32, np.int64, bool][rng.integers(5)])
    elif kind == 3:
        array = array.T
    elif kind == 4 and array.size:
        array = array.copy()
        flat = array.reshape(-1)
        flat[rng.integers(flat.size)] = rng.choice([np.nan, np.inf, -1, 0, 1e300]) if array.dtype.kind == "f" else 99
    else:
        del held[name]
        return tree, held
    held[name] = np.ascontiguousarray(array)
    return tree, held


@pytest.mark.filterwarnings("ignore")  # models that were changed may warn, as they may give other images
@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_mutations(part, path, rng):
    """2000 damaged files and 500 forged ones with right checksums in each of four parts."""
    rng = np.random.default_rng(part)
    names = sorted(MODELS)
    files = {}
    for name in names:
        manifast.save(MODELS[name], path)
        files[name] = path.read_bytes(), parts(path)
    for _ in range(2000):
        whole = bytearray(files[names[rng.integers(len(names))]][0])
        kind, at = rng.integers(4), int(rng.integers(len(whole)))
        before = bytes(whole)
        if kind == 0:
            whole[at] = rng.integers(256)
        elif kind == 1:
            del whole[at : at + int(rng.integers(1, 20))]
        elif kind == 2:
            whole[at:at] = rng.bytes(int(rng.integers(1, 20)))
        else:
            other = int(rng.integers(len(whole)))
            whole[at : at + 8] = whole[other : other + 8]
        if bytes(whole) == before:
            continue
        put(path, whole)
        with pytest.raises(ValueError, match="path must be a"):
            manifast.load(path, mmap=bool(rng.integers(2)))
    with np.errstate(all="ignore"):
        for _ in range(500):
            name = names[rng.integers(len(names))]
            forge(path, *forged(*files[name][1], rng))
            try:
                model = manifast.load(path, mmap=bool(rng.integers(2)))
                images = saved_models.images(model, saved_models.new_rows(MODELS[name]))
            except ValueError:
                continue
            assert all(len(value) == 7 for value in images.values())


def test_the_format_is_written_down():
    """The first bytes of a file, as the module describes them."""
    golden = sorted(Path(saved_models.GOLDEN).glob("*.manifast"))[0].read_bytes()
    length = int.from_bytes(golden[:8], "little")
    header = json.loads(golden[8 : 8 + length])
    assert header["__metadata__"]["format"] == "manifast" and header["__metadata__"]["version"] == "1"
    assert (8 + length) % 64 == 0
