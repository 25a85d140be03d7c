"""Rows past memory: samples that depend on row numbers alone, maps from file to file, and models in other engines."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import warnings
from itertools import pairwise

import joblib
import numpy as np
import pytest

import manifast
from manifast import scale
from manifast.extensions import RBF
from manifast.scale import Mapper, sample_rows, transform_to


@pytest.fixture
def X(rng):
    return rng.standard_normal((5000, 3)).astype(np.float32)


@pytest.fixture
def model(X):
    return manifast.OutOfSample(manifast.ClassicalMDS(2), "lvm").fit(X[:200])


def plain_hash(number, seed):
    """splitmix64 of a counter, in Python's own integers."""

    def mixed(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    return mixed((mixed((seed + golden) % 2**64) + number * golden) % 2**64)


@pytest.mark.parametrize("seed", [0, 7, 2**63 + 11])
def test_the_rows_with_the_smallest_hashes(X, seed):
    order = sorted(range(len(X)), key=lambda row: (plain_hash(row, seed), row))
    expected = X[sorted(order[:100])]
    np.testing.assert_array_equal(sample_rows(X, 100, random_state=seed), expected)
    assert len(sample_rows(X, len(X))) == len(X)


def test_the_same_rows_from_anywhere(X, tmp_path):
    expected = sample_rows(X, 300, random_state=3)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    sources = [mapped, str(tmp_path / "rows.npy"), tmp_path / "rows.npy", X.tolist(), np.asfortranarray(X)]
    cuts = [0, 1, 1, 17, 300, 2048, 4999, 5000]
    sources.append(iter([X[a:b] for a, b in pairwise(cuts)]))
    sources.append(row[None] for row in X)
    for source in sources:
        np.testing.assert_array_equal(sample_rows(source, 300, random_state=3), expected)
    labels = np.arange(len(X))
    np.testing.assert_array_equal(X[sample_rows(labels, 300, random_state=3)], expected)
    assert sample_rows(iter([X]), 5).dtype == np.float32


def test_the_same_rows_from_dask_arrays(X):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    expected = sample_rows(X, 300, random_state=3)
    for chunks in ((700, 3), (5000, 1), ((1, 2000, 0, 2999), (2, 1))):
        np.testing.assert_array_equal(sample_rows(da.from_array(X, chunks=chunks), 300, random_state=3), expected)
    some = da.from_array(X, chunks=(700, 3))
    unknown = some[some[:, 0] > 0]
    assert np.isnan(unknown.shape[0])
    np.testing.assert_array_equal(sample_rows(unknown, 300), sample_rows(X[X[:, 0] > 0], 300))


def test_the_same_rows_from_parquet(X, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    expected = sample_rows(X, 300, random_state=3)

    def write(rows, path, **options):
        parquet.write_table(pa.table({f"x{i}": column for i, column in enumerate(rows.T)}), path, **options)

    write(X, tmp_path / "rows.parquet", row_group_size=611)
    (tmp_path / "rows").mkdir()
    for number, part in enumerate(np.array_split(X, 7)):
        write(part, tmp_path / "rows" / f"part-{number}.parquet")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    parquet.write_table(pa.table({"x": lists}), tmp_path / "lists.parquet", row_group_size=800)
    for name in ("rows.parquet", "rows", "lists.parquet"):
        np.testing.assert_array_equal(sample_rows(tmp_path / name, 300, random_state=3), expected)
    parquet.write_table(pa.table({"x": ["a"]}), tmp_path / "texts.parquet")
    with pytest.raises(ValueError, match=r"X must hold numbers in all columns\. Got string in column 'x'"):
        sample_rows(tmp_path / "texts.parquet", 1)


def test_a_sample_is_uniform():
    counts = np.zeros(40)
    for seed in range(2000):
        counts[sample_rows(np.arange(40), 10, random_state=seed)] += 1
    # A sum of squares of 40 nearly independent normal counts, of variance 2000 · ¼ · ¾ · 40/39.
    statistic = np.sum((counts - 500) ** 2) / (2000 * 0.25 * 0.75 * 40 / 39)
    assert 15 < statistic < 75


def test_bad_input_of_a_sample(X):
    for call, sentence in {
        lambda: sample_rows(X, 5001): "n_rows must be at most the number of rows, 5000",
        lambda: sample_rows(iter([X]), 5001): "n_rows must be at most the number of rows, 5000",
        lambda: sample_rows(X, 0): "n_rows must be",
        lambda: sample_rows(X, 3, random_state=-1): "random_state must be",
        lambda: sample_rows(X, 3, random_state=np.random.default_rng()): "random_state must be",
        lambda: sample_rows(3, 3): "X must be an array",
        lambda: sample_rows("nothing.parquet", 3): "X must be a .npy or Parquet file",
        lambda: sample_rows(iter([X, X[:, :2]]), 3): "X must give blocks of one width",
        lambda: sample_rows(iter([np.zeros((2, 2, 2))]), 1): "X must give blocks of one or two dimensions",
        lambda: sample_rows(np.zeros((2, 2, 2)), 1): "X must have rows",
    }.items():
        with pytest.raises(ValueError, match=sentence):
            call()


def sources(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    yield X
    yield mapped
    yield tmp_path / "X.npy"
    yield iter(np.array_split(X, 13))
    yield np.asfortranarray(X)


@pytest.mark.parametrize("batch_rows", [None, 1, 999, 5000, 10**6])
def test_files_of_images(X, model, tmp_path, batch_rows):
    expected = model.transform(X)
    np.save(tmp_path / "expected.npy", expected)
    first = None
    for source in sources(X if batch_rows != 1 else X[:300], tmp_path):
        path = tmp_path / "images.npy"
        transform_to(model, source, path, batch_rows=batch_rows)
        made = np.load(path)
        np.testing.assert_array_equal(made, expected[: len(made)])
        assert made.dtype == np.float32 and not (tmp_path / "images.npy.journal").exists()
        first = first or path.read_bytes()
        assert path.read_bytes() == first


def test_parts_of_memory_maps_and_other_layouts(X, model, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    copied = np.load(tmp_path / "X.npy", mmap_mode="c")
    copied[:10] = 7.0
    raw = np.memmap(tmp_path / "raw", dtype=np.float32, mode="w+", shape=(5000, 3), offset=20)
    raw[:] = X
    for part in (mapped[100:777], mapped[::3], mapped[5:][7:], copied, raw, raw[3:], mapped[:, ::-1]):
        transform_to(model, part, tmp_path / "images.npy", batch_rows=100)
        np.testing.assert_array_equal(np.load(tmp_path / "images.npy"), model.transform(np.array(part, order="C")))


def test_classifiers_and_extensions_and_saved_models(X, tmp_path):
    path = tmp_path / "images.npy"
    classifier = manifast.TPTSSR(0.1).fit(X[:60].astype(float), np.where(X[:60, 0] > 0, "right", "left"))
    transform_to(classifier, X[:200].astype(float), path)
    np.testing.assert_array_equal(np.load(path), classifier.predict(X[:200].astype(float)))
    extension = RBF().fit(X[:100], X[:100, :2])
    manifast.save(extension, tmp_path / "model")
    transform_to(tmp_path / "model", X, path)
    np.testing.assert_array_equal(np.load(path), extension.predict(X))


def test_dask_arrays_and_parquet_to_files(X, model, tmp_path):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    path = tmp_path / "images.npy"
    array = da.from_array(X, chunks=(800, 2))
    transform_to(model, array, path, batch_rows=333)
    np.testing.assert_array_equal(np.load(path), model.transform(X))
    transform_to(model, array[array[:, 0] > 0], path, batch_rows=333)
    np.testing.assert_array_equal(np.load(path), model.transform(X[X[:, 0] > 0]))
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    parquet.write_table(pa.table({f"x{i}": column for i, column in enumerate(X.T)}), tmp_path / "rows.parquet")
    transform_to(model, tmp_path / "rows.parquet", path, batch_rows=333)
    np.testing.assert_array_equal(np.load(path), model.transform(X))


def test_bad_input_of_a_file(X, model, tmp_path):
    path = tmp_path / "images.npy"
    for call, sentence in {
        lambda: transform_to(model, X[:, :2], path): "X must have 3 features",
        lambda: transform_to(model, X[:0], path): "X must have at least one row",
        lambda: transform_to(model, iter([]), path): "X must have at least one row",
        lambda: transform_to(model, X, path, batch_rows=0): "batch_rows must be",
        lambda: transform_to(manifast.LPP(), X, path): "estimator must be fitted",
        lambda: transform_to(model, iter([X, X.astype(float)]), path): "X must have rows of one dtype",
        lambda: transform_to(model, np.where(X > 3, np.nan, X), path): "NaN",
        lambda: transform_to(model, X, tmp_path / "images.CSV"): r"path must end in \.npy",
    }.items():
        with pytest.raises(ValueError, match=sentence):
            call()


def test_rows_that_cannot_be_mapped_far_behind(X, model, tmp_path):
    path, journal = tmp_path / "images.npy", tmp_path / "images.npy.journal"
    expected = model.transform(X)
    for rows in (lambda X: X, lambda X: iter(np.array_split(X, 7))):
        wrong = X.copy()
        wrong[4321, 1] = np.nan
        with pytest.raises(ValueError, match=r"Got NaN or infinity in row 4321\..* goes on after the 4000 that"):
            transform_to(model, rows(wrong), path, batch_rows=1000)
        np.testing.assert_array_equal(np.load(path), expected[:4000])  # whole, as far as it goes
        assert journal.exists()
        calls = []
        counted = copy.copy(model)
        counted.transform = lambda rows, calls=calls: calls.append(len(rows)) or model.transform(rows)
        transform_to(counted, rows(X), path, batch_rows=1000)
        assert sum(calls) == 1 + 1000  # one row for the shape
        np.testing.assert_array_equal(np.load(path), expected)
        assert not journal.exists()
        path.unlink()
        wrong[5] = np.inf
        with pytest.raises(ValueError, match=r"Got NaN or infinity in row 5\."):
            transform_to(model, rows(wrong), path)
        assert not path.exists() and not journal.exists()


def stopped(model, X, path, after=3, *, anew=True):
    """A run that ends after some batches, as it would by a signal."""
    if anew:
        path.with_name(path.name + ".journal").unlink(missing_ok=True)

    class Stop(Exception):
        pass

    def transform(rows, calls=[]):  # noqa: B006
        calls.append(len(rows))
        if len(calls) > after + 1:
            raise Stop
        return model.transform(rows)

    other = copy.copy(model)
    other.transform = transform
    with pytest.raises(Stop):
        transform_to(other, X, path, batch_rows=1000)
    return path.read_bytes()


def test_any_change_between_two_runs_is_noticed(X, model, tmp_path):
    path, expected = tmp_path / "images.npy", model.transform(X)
    assert len(stopped(model, X, path)) == 128 + 3000 * 8
    changed = X.copy()
    changed[1234] += 1.0  # one row of those that are mapped
    transform_to(model, changed, path)
    np.testing.assert_array_equal(np.load(path), model.transform(changed))
    stopped(model, iter([X]), path)
    with pytest.raises(ValueError, match=r"X must be the rows that the run began with, or .*journal.* must be deleted"):
        transform_to(model, iter(np.array_split(changed, 9)), path)
    stopped(model, X, path)
    changed = X.copy()
    changed[4321] += 1.0  # one of those that are not
    transform_to(model, changed, path)
    np.testing.assert_array_equal(np.load(path), model.transform(changed))
    whole = bytearray(stopped(model, X, path))
    whole[5000] ^= 1
    path.write_bytes(whole)
    transform_to(model, X, path)
    np.testing.assert_array_equal(np.load(path), expected)
    whole = bytearray(stopped(model, X, path))
    whole[5000] ^= 1
    path.write_bytes(whole)
    stopped(model, X, path, anew=False)  # begins anew and is stopped once more
    journal = json.loads(path.with_name(path.name + ".journal").read_text())
    assert journal["images_sha256"] == hashlib.sha256(path.read_bytes()[128:]).hexdigest()
    for wrong in (b"", bytes(5000), b"x" * 10**6):
        stopped(model, iter([X]), path)
        path.write_bytes(wrong)
        transform_to(model, iter(np.array_split(X, 3)), path)
        np.testing.assert_array_equal(np.load(path), expected)
    stopped(model, X, path)
    path.unlink()
    transform_to(model, X, path)
    np.testing.assert_array_equal(np.load(path), expected)


def test_a_file_is_not_written_over_its_own_rows(X, model, tmp_path):
    np.save(tmp_path / "X.npy", X)
    manifast.save(model, tmp_path / "model")
    (tmp_path / "link.npy").symlink_to(tmp_path / "X.npy")
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for rows in (tmp_path / "X.npy", mapped, mapped[::2], mapped[:, ::-1].T.T):
        for path in (tmp_path / "X.npy", tmp_path / "link.npy"):
            with pytest.raises(ValueError, match="path must be another file than those of X and the model"):
                transform_to(model, rows, path)
    with pytest.raises(ValueError, match="path must be another file"):
        transform_to(tmp_path / "model", X, tmp_path / "model")
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), X)
    manifast.load(tmp_path / "model")
    with pytest.raises(ValueError, match="path must be the name of a file"):
        transform_to(model, X, 3)
    with pytest.raises(ValueError, match="path must be the name of a file"):
        Mapper(3)


def test_blocks_may_be_overwritten_by_their_maker(X, model, tmp_path):
    def blocks():
        buffer = np.empty((500, 3), np.float32)
        for begin in range(0, len(X), 500):
            buffer[:] = X[begin : begin + 500]
            yield buffer
            buffer[:] = np.nan

    for step in (None, 200, 800):
        transform_to(model, blocks(), tmp_path / "images.npy", batch_rows=step)
        np.testing.assert_array_equal(np.load(tmp_path / "images.npy"), model.transform(X))
    np.testing.assert_array_equal(sample_rows(blocks(), 100), sample_rows(X, 100))


def test_names_of_columns(X, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = manifast.LPP().fit(frame[:200])
    path = tmp_path / "images.npy"
    expected = model.transform(frame)
    turned = frame[["b", "a", "c"]]

    def halves(first, second):
        return iter([first[:2500], second[2500:]])

    for rows in (frame, halves(frame, frame)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            transform_to(model, rows, path, batch_rows=700)
        np.testing.assert_array_equal(np.load(path), expected)
    for rows, sentence in ((turned, "the columns that the model was fitted to"), (halves(turned, turned), "fitted to"),
                           (halves(frame, turned), "the same columns")):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            transform_to(model, rows, path)
    with pytest.warns(UserWarning, match="valid feature names"):
        transform_to(model, X, path)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    text = tmp_path / "rows.csv"
    for call in (lambda: transform_to(model, text, path), lambda: sample_rows(text, 3)):
        with pytest.raises(ValueError, match=r"rows.csv', which is neither: give .* pandas.read_csv\(path, chunksize"):
            call()
    transform_to(model, pandas.read_csv(text, chunksize=999, dtype=np.float32), path)
    np.testing.assert_array_equal(np.load(path), expected)
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "parts").mkdir()
    frame[:3000].to_parquet(tmp_path / "parts" / "0.parquet")
    frame[3000:].to_parquet(tmp_path / "parts" / "1.parquet")
    transform_to(model, tmp_path / "parts", path)
    np.testing.assert_array_equal(np.load(path), expected)
    turned[3000:].to_parquet(tmp_path / "parts" / "1.parquet")
    with pytest.raises(ValueError, match="X must have the same columns in all files"):
        transform_to(model, tmp_path / "parts", path)
    turned.to_parquet(tmp_path / "turned.parquet")
    with pytest.raises(ValueError, match="the columns that the model was fitted to"):
        transform_to(model, tmp_path / "turned.parquet", path)


def test_progress_is_shown(X, model, tmp_path, capsys):
    transform_to(model, X, tmp_path / "images.npy", verbose=True)
    assert "5000 of 5000" in capsys.readouterr().err


KILLED = """
import os, sys, time
import numpy as np
from manifast import load, scale

scale._SYNC_SECONDS = 0.0
calls = 0

def slow(X):
    global calls
    calls += 1
    if calls == {stop}:
        print("now", flush=True)
        time.sleep(60)
    return transform(X)

model = load("model")
transform = model.transform
object.__setattr__(model, "transform", slow)
X = {source}
scale.transform_to(model, X, "images.npy", batch_rows=400)
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
@pytest.mark.parametrize("source", ["np.load('X.npy', mmap_mode='r')", "iter(np.array_split(np.load('X.npy'), 11))"])
def test_killed_and_started_again(X, model, tmp_path, source):
    manifast.save(model, tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    path = tmp_path / "images.npy"
    noted = []
    for stop in (4, 5):
        code = KILLED.format(stop=stop, source=source)
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as child:
            try:
                assert child.stdout.readline() == "now\n"
            finally:
                child.kill()
        noted.append(json.loads((tmp_path / "images.npy.journal").read_text())["rows_on_disk"])
        with open(path, "ab") as file:  # rows beyond the journal, as they may be after a crash
            file.write(b"\\xff" * 100)
    assert noted[0] == 800 and noted[1] == 800 + 3 * 400  # one call is for the first row alone
    source_again = np.load(tmp_path / "X.npy", mmap_mode="r") if "mmap" in source else iter(np.array_split(X, 11))
    transform_to(model, source_again, path, batch_rows=400)
    interrupted = path.read_bytes()
    transform_to(model, X, path)
    assert interrupted == path.read_bytes()


def test_a_journal_of_another_run_is_not_believed(X, model, tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "_SYNC_SECONDS", 0.0)
    path, journal = tmp_path / "images.npy", tmp_path / "images.npy.journal"
    other = manifast.OutOfSample(manifast.ClassicalMDS(2), "lvm").fit(X[100:300])

    class Stop(Exception):
        pass

    def blocks(rows, stop):
        for number, block in enumerate(np.array_split(rows, 10)):
            if number == stop:
                raise Stop
            yield block

    for begin in (
        lambda: transform_to(other, blocks(X, 5), path, batch_rows=100),
        lambda: transform_to(model, blocks(X[::-1], 5), path, batch_rows=100),
        lambda: transform_to(model, blocks(X[:, :3].astype(float), 5), path, batch_rows=100),
    ):
        with pytest.raises(Stop):
            begin()
        assert journal.exists()
        transform_to(model, blocks(X, 99), path)
        np.testing.assert_array_equal(np.load(path), model.transform(X))
    for content in (b"", b"[]", b"{}", b'{"rows_on_disk": 3}', b"\\xff"):
        journal.write_bytes(content)
        transform_to(model, X, path)
        np.testing.assert_array_equal(np.load(path), model.transform(X))


@pytest.mark.process
def test_memory_does_not_grow_with_the_rows(grown_memory, tmp_path):
    name = str(tmp_path / "X.npy")
    X = np.lib.format.open_memmap(name, "w+", np.float32, (1_000_000, 64))
    for begin in range(0, len(X), 50_000):
        X[begin : begin + 50_000] = np.random.default_rng(begin).standard_normal((50_000, 64), np.float32)
    del X
    prepare = f"""
import numpy as np
from manifast import OutOfSample, ClassicalMDS
from manifast.scale import transform_to
X = np.load({name!r}, mmap_mode="r")
model = OutOfSample(ClassicalMDS(2), "linear").fit(np.array(X[:500]))
transform_to(model, X[:200_000], {str(tmp_path / "Y.npy")!r})
"""
    # 256 MB of rows pass by, where 51 have passed before.
    assert grown_memory(prepare, f"transform_to(model, X, {str(tmp_path / 'Y.npy')!r})") < 40


def test_mappers_are_small_and_lazy(X, model, tmp_path):
    path = tmp_path / "model"
    mapper = Mapper(path)
    manifast.save(model, path)
    expected = model.transform(X)
    np.testing.assert_array_equal(mapper(X), expected)
    packed = pickle.dumps(mapper)
    assert len(packed) < 1000
    np.testing.assert_array_equal(pickle.loads(packed)(X), expected)
    none = mapper(X[:0])
    assert none.shape == (0, 2) and none.dtype == np.float32
    assert repr(mapper) == f"Mapper({str(path)!r})"
    with pytest.raises(ValueError, match="method must be one that the model has"):
        Mapper(path, "predict_proba")(X)
    with pytest.raises(ValueError, match="method must be one of"):
        Mapper(path, "fit")


@pytest.mark.process
def test_joblib(X, model, tmp_path):
    manifast.save(model, tmp_path / "model")
    mapper = Mapper(tmp_path / "model")
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(mapper)(block) for block in np.array_split(X, 4))
    np.testing.assert_array_equal(np.concatenate(parts), model.transform(X))


def test_polars(X, model, tmp_path):
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    manifast.save(model, tmp_path / "model")
    mapper = Mapper(tmp_path / "model")
    frame = polars.DataFrame(X, schema=["a", "b", "c"])
    names = ["y0", "y1"]
    made = polars.DataFrame(mapper(frame.to_numpy()), schema=names)
    np.testing.assert_array_equal(made.to_numpy(), model.transform(X))
    schema = dict.fromkeys(names, polars.Float32)
    lazy = frame.lazy().map_batches(lambda part: polars.DataFrame(mapper(part.to_numpy()), schema=names), schema=schema)
    np.testing.assert_array_equal(lazy.collect().to_numpy(), model.transform(X))


def test_pandas_blocks(X, model, tmp_path):
    """What Spark's mapInPandas does with a function of frames."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    manifast.save(model, tmp_path / "model")
    mapper = Mapper(tmp_path / "model")
    frames = (pandas.DataFrame(block) for block in np.array_split(X, 3))
    made = pandas.concat(pandas.DataFrame(mapper(frame), columns=["y0", "y1"]) for frame in frames)
    np.testing.assert_array_equal(made.to_numpy(), model.transform(X))


@pytest.mark.process
def test_ray(X, model, tmp_path):
    """Real workers of Ray, each of which opens the model."""
    pytest.importorskip("ray", reason="Ray is not installed")
    manifast.save(model, tmp_path / "model")
    code = """
import sys
import numpy as np
import ray
from manifast.scale import Mapper

folder, mapper = sys.argv[1], Mapper(sys.argv[1] + "/model")
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
rows = np.load(folder + "/rows.npy")
parts = ray.data.from_items([{"at": at, "x": row} for at, row in enumerate(rows)], override_num_blocks=4)
made = parts.map_batches(lambda batch: {"at": batch["at"], "y": mapper(batch["x"])}, batch_size=50).take_all()
np.save(folder + "/images.npy", np.array([row["y"] for row in sorted(made, key=lambda row: row["at"])]))
"""
    np.save(tmp_path / "rows.npy", X)
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "images.npy"), model.transform(X))


@pytest.mark.process
def test_spark(X, model, tmp_path):
    """Real workers of Spark."""
    pytest.importorskip("pyspark", reason="Spark is not installed")
    pytest.importorskip("pyarrow", reason="Spark's frames need pyarrow")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    manifast.save(model, tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    code = """
import sys
import numpy as np
import pandas
from pyspark.sql import SparkSession
from manifast.scale import Mapper

folder, mapper = sys.argv[1], Mapper(sys.argv[1] + "/model")
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame(pandas.DataFrame(np.load(folder + "/rows.npy"), columns=["a", "b", "c"])).repartition(3)

def images(frames):
    for part in frames:
        yield pandas.DataFrame(np.column_stack([part, mapper(part)]), columns=["a", "b", "c", "y0", "y1"])

made = frame.mapInPandas(images, schema="a float, b float, c float, y0 float, y1 float").toPandas()
made.to_pickle(folder + "/images.pkl")
spark.stop()
"""
    python = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, env=python)
    assert done.returncode == 0, done.stderr
    import pandas

    made = pandas.read_pickle(tmp_path / "images.pkl").to_numpy()
    assert len(made) == len(X)
    images = model.transform(np.ascontiguousarray(made[:, :3]))
    np.testing.assert_array_equal(made[:, 3:], images)
    np.testing.assert_array_equal(np.sort(made[:, 0]), np.sort(X[:, 0]))
