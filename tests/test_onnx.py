"""ONNX graphs of linear and kernel maps, run by onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
import saved_models

import manifast
from manifast.extensions import RBF, KernelRidge, Linear
from manifast.persistence import to_onnx

X = saved_models.rows(60)
LABELS = np.repeat([0, 1, 2], 20)
FITTED = {
    "lpp": lambda X: manifast.LPP(2).fit(X),
    "kernel lpp": lambda X: manifast.LPP(2, kernel="rbf").fit(X),
    "lgrm": lambda X: manifast.LGRM(2).fit(X),
    "lgrm poly": lambda X: manifast.LGRM(2, kernel="poly", degree=2).fit(X),
    "nsse": lambda X: manifast.NSSE(2).fit(X, LABELS),
    "mds": lambda X: manifast.ClassicalMDS(2).fit(X),
    "isomap with rbf": lambda X: manifast.Isomap(2, extension="rbf").fit(X),
    "out of sample": lambda X: manifast.OutOfSample(manifast.Isomap(2), "kernel_ridge").fit(X),
    "laprls": lambda X: manifast.LapRLS().fit(X, LABELS),
    "discriminant": lambda X: manifast.RBFDiscriminant().fit(X, LABELS),
    "discriminant, both metrics": lambda X: manifast.RBFDiscriminantCV().fit(X, LABELS),
    "linear": lambda X: Linear().fit(X, X[:, :2]),
    "rbf": lambda X: RBF().fit(X, X[:, :2]),
    "linear kernel": lambda X: KernelRidge("linear").fit(X, X[:, :2]),
}


# Rows of extreme size are scaled by embeddings and classifiers.
CASES = [(name, 1.0, dtype) for name in FITTED for dtype in (np.float32, np.float64)]
CASES += [(name, 1e-150, np.float64) for name in ("lpp", "mds", "isomap with rbf", "laprls")]


@pytest.mark.parametrize(("name", "scale", "dtype"), CASES)
def test_onnxruntime_agrees(name, scale, dtype, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    model = FITTED[name](X * scale)
    to_onnx(model, tmp_path / "model.onnx", dtype=dtype)
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    new = (saved_models.rows(50, seed=3) * scale).astype(dtype)
    made = session.run(None, {"rows": new})[0]
    if hasattr(model, "decision_function"):
        expected = model.decision_function(new)
        assert session.get_outputs()[0].name == "scores"
    else:
        expected = model.transform(new) if hasattr(model, "transform") else model.predict(new)
        assert session.get_outputs()[0].name == "embedding"
    assert made.dtype == dtype and made.shape == expected.shape
    wide = new.astype(np.float64)  # the graph computes in float64, whatever comes in
    exact = model.decision_function(wide) if hasattr(model, "decision_function") else (
        model.transform(wide) if hasattr(model, "transform") else model.predict(wide))  # fmt: skip
    assert np.abs(made - exact).max() < 1e-6 * np.abs(exact).max()


def test_what_has_no_graph_is_refused():
    pytest.importorskip("onnx", reason="onnx is not installed")
    for model in (manifast.Isomap().fit(X), manifast.LPP(), manifast.TPTSSR().fit(X, LABELS)):
        with pytest.raises(ValueError, match="linear or kernel map"):
            to_onnx(model)
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        to_onnx(manifast.LPP().fit(X), dtype=np.float16)
