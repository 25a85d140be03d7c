"""Dask arrays: lazy in, lazy out, the bits of memory for any chunks, the model once in the graph, and lost workers."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
import saved_models

import manifast
from manifast import _threads
from manifast._parts import slim
from manifast.extensions import RBF

da = pytest.importorskip("dask.array", reason="Dask is not installed")
MODELS = saved_models.models()


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"isomap_huge"}))
def test_every_model_has_the_bits_of_memory(name):
    model = MODELS[name]
    X = saved_models.new_rows(model, 24).astype(np.float32)
    p = X.shape[1]
    expected = saved_models.images(model, X)
    for chunks in ((24, p), (5, p), ((1, 0, 20, 3), (2, p - 2))):
        lazy = saved_models.images(model, da.from_array(X, chunks=chunks))
        for method, image in lazy.items():
            assert isinstance(image, da.Array)
            assert image.shape == expected[method].shape and image.dtype == expected[method].dtype
            assert image.chunks[0] == da.from_array(X, chunks=chunks).chunks[0]
            np.testing.assert_array_equal(image.compute(scheduler="threads"), expected[method], err_msg=method)


def test_row_chunks_may_be_unknown_and_blocks_empty(rng):
    X = rng.standard_normal((300, 4))
    model = manifast.LPP(3).fit(X)
    array = da.from_array(X, chunks=(20, 3))
    some = array[array[:, 0] > 1.5]
    image = model.transform(some)
    assert np.isnan(image.shape[0]) and image.shape[1] == 3 and image.dtype == np.float64
    np.testing.assert_array_equal(image.compute(), model.transform(X[X[:, 0] > 1.5]))
    none = model.transform(array[array[:, 0] > 100])
    assert none.compute().shape == (0, 3)
    integers = da.from_array(np.arange(40).reshape(10, 4), chunks=(3, 4))
    assert model.transform(integers).dtype == np.float64
    np.testing.assert_array_equal(model.transform(integers).compute(), model.transform(np.arange(40).reshape(10, 4)))


def test_data_frames_by_their_array(rng):
    frames = pytest.importorskip("dask.dataframe", reason="Dask data frames are not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X = rng.standard_normal((60, 3))
    model = manifast.LPP().fit(X)
    frame = frames.from_pandas(pandas.DataFrame(X, columns=list("abc")), npartitions=4)
    np.testing.assert_array_equal(model.transform(frame.to_dask_array()).compute(), model.transform(X))


def test_nothing_runs_before_it_is_asked_for(rng):
    def fail(block):
        raise RuntimeError("a block was computed")

    model = manifast.LPP().fit(rng.standard_normal((60, 3)))
    array = da.ones((100, 3), chunks=(10, 3)).map_blocks(fail, dtype=np.float32, meta=np.empty((0, 3), np.float32))
    image = model.transform(array)
    assert image.dtype == np.float32 and image.chunks == ((10,) * 10, (2,))
    with pytest.raises(RuntimeError, match="a block was computed"):
        image.compute()


def test_the_model_is_once_in_the_graph(rng):
    cloudpickle = pytest.importorskip("cloudpickle", reason="comes with Dask")
    X = rng.standard_normal((2000, 20))
    model = manifast.LaplacianEigenmaps(2, extension=RBF()).fit(X)
    size = len(pickle.dumps(slim(model)))
    assert size < len(pickle.dumps(model))  # without the graph and the embedding of the training rows
    few, many = (
        len(cloudpickle.dumps(model.transform(da.ones((blocks * 10, 20), chunks=(10, 20))).dask))
        for blocks in (2, 10_000)
    )
    assert few < 1.5 * size and many < 2 * size


def test_one_thread_per_task(rng):
    counts = []

    class Counting(manifast.LPP):
        def _map(self, X):
            with _threads.kernel_threads(None) as threads:
                counts.append(threads)
            return super()._map(X)

    X = rng.standard_normal((300, 4))
    model = Counting().fit(X)
    model.transform(da.from_array(X, chunks=(50, 4))).compute(scheduler="threads")
    assert counts == [1] * 7  # six blocks, and one row for the shape
    before = _threads.available_threads()
    with _threads.one_thread(), _threads.kernel_threads(None) as threads:
        assert threads == 1
    with _threads.kernel_threads(None) as threads:
        assert threads == before


def test_bad_dask_arrays(rng):
    X = rng.standard_normal((60, 3))
    model = manifast.LPP().fit(X)
    for array, sentence in (
        (da.ones((10, 4)), "X must be a Dask array with 3 columns. Got shape"),
        (da.ones(10), "X must be a Dask array with 3 columns"),
        (da.ones((10, 3), dtype=complex), "X must hold real numbers"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.transform(array)
    with pytest.raises(ValueError, match="not fitted"):
        manifast.LPP().transform(da.ones((10, 3)))
    with pytest.raises(ValueError, match="not fitted"):
        RBF().predict(da.ones((10, 3)))
    with pytest.raises(ValueError, match="NaN"):
        model.transform(da.full((10, 3), np.nan)).compute(scheduler="synchronous")


@pytest.mark.process
def test_nothing_imports_dask(run_python):
    code = (
        "import numpy as np, sys, manifast; X = np.random.default_rng(0).standard_normal((40, 3)); "
        "manifast.LPP().fit(X).transform(X); manifast.scale.sample_rows(X, 3); print('dask' in sys.modules)"
    )
    assert run_python(code) == "False\n"


@pytest.mark.process
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
@pytest.mark.filterwarnings("ignore")  # of the cluster's own about processes and ports
def test_a_cluster_that_loses_a_worker(rng, tmp_path):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    X = rng.standard_normal((4000, 8)).astype(np.float32)
    model = manifast.OutOfSample(manifast.ClassicalMDS(2), "lvm").fit(X[:500])

    def slowly(block):
        time.sleep(0.05)
        return block

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        pids = list(client.run(lambda: os.getpid()).values())
        assert len(set(pids)) == 2
        array = da.from_array(X, chunks=(100, 8)).map_blocks(slowly, dtype=X.dtype)
        future = client.compute(model.transform(array))
        threading.Timer(0.7, lambda: os.kill(pids[0], signal.SIGKILL)).start()
        made = future.result(timeout=120)
        left = client.run(lambda: os.getpid())
    np.testing.assert_array_equal(made, model.transform(X))
    assert pids[0] not in left.values()
