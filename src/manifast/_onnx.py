"""Linear and kernel maps as ONNX graphs, for runtimes without Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._validation import Array
from manifast.maps import KernelMap, LinearMap, TwoKernelMap

_OPSET = 18


def to_onnx(model: Any, path: Any = None, *, dtype: Any = np.float32) -> Any:
    """A fitted model as an ONNX graph: linear and kernel maps of embeddings, extensions and classifiers.

    Parameters
    ----------
    model : fitted embedding, extension or classifier whose map is linear or a kernel map
    path : path or None, default None
        Where to write it.
    dtype : float32 or float64, default float32
        Of the input "rows" (m, p) and the output (m, d). Inside all is computed in float64.

    Returns
    -------
    onnx.ModelProto
        Its output is "embedding", of a classifier "scores": one column per class, in the order of `classes_`.

    Notes
    -----
    Needs the package `onnx` (``pip install manifast[onnx]``). Results agree with `transform` to rounding, not to the
    bit. New rows are not checked.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast import LPP
    >>> from manifast.persistence import to_onnx
    >>> model = LPP().fit(np.random.default_rng(0).standard_normal((60, 4)))
    >>> to_onnx(model, "lpp.onnx")  # doctest: +SKIP
    """
    inner = _inner(model)
    if not isinstance(inner, LinearMap | KernelMap | TwoKernelMap):
        raise ValueError(
            f"model must be fitted and have a linear or kernel map for ONNX. Got {type(model).__name__} with "
            f"{type(inner).__name__}: use extension='linear', 'rbf' or 'kernel_ridge'."
        )
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64. Got {dtype!r} instead.")
    try:
        import onnx
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install manifast[onnx]") from None
    graph = _Graph(onnx)
    x = graph.node("Cast", "rows", to=onnx.TensorProto.DOUBLE)
    if exponent := getattr(model, "_exponent", 0):
        x = graph.scaled(x, np.ldexp(1.0, -exponent), model.n_features_in_)
    before = getattr(model, "_whitening", None)
    if before is not None:
        x = _linear(graph, x, before.coef, before.intercept)
    y = _image(graph, x, inner)
    outputs = len(inner.intercept)
    if power := getattr(model, "_power", 0):
        y = graph.scaled(y, np.ldexp(1.0, power), outputs)
    name = "scores" if hasattr(model, "decision_function") else "embedding"
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph.node("Cast", y, to=kind, output=name)
    made = graph.model(int(model.n_features_in_), outputs, name, kind)
    if path is not None:
        onnx.save(made, path)
    return made


def _inner(model: Any) -> Any:
    """The map of a fitted model."""
    held = getattr(model, "map_", None)
    if held is None:
        held = getattr(model, "extension_", None)
    return getattr(held, "map_", held)


class _Graph:
    """Nodes and constants of a graph in float64, each with a name of its own."""

    def __init__(self, onnx: Any) -> None:
        self._onnx, self._nodes, self._constants = onnx, [], []  # type: Any, list[Any], list[Any]

    def constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        array = np.ascontiguousarray(value, dtype=np.int64 if np.asarray(value).dtype.kind == "i" else np.float64)
        self._constants.append(self._onnx.numpy_helper.from_array(array.reshape(np.shape(value)), name))
        return name

    def node(self, operation: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def scaled(self, x: str, factor: float, columns: int) -> str:
        """A multiple, by a vector: runtimes join a single factor with the product after it, in float32."""
        return self.node("Mul", x, self.constant(np.full(columns, factor)))

    def model(self, features: int, outputs: int, name: str, kind: int) -> Any:
        helper = self._onnx.helper
        rows = helper.make_tensor_value_info("rows", kind, ["m", features])
        result = helper.make_tensor_value_info(name, kind, ["m", outputs])
        graph = helper.make_graph(self._nodes, "manifast", [rows], [result], self._constants)
        made = helper.make_model(
            graph, producer_name="manifast", opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8
        )
        self._onnx.checker.check_model(made)
        return made


def _image(graph: _Graph, x: str, inner: LinearMap | KernelMap | TwoKernelMap) -> str:
    if isinstance(inner, LinearMap):
        return _linear(graph, x, inner.coef, inner.intercept)
    if isinstance(inner, KernelMap):
        return _kernel(graph, x, inner)
    turned = _linear(graph, x, inner.before.coef, inner.before.intercept)
    return graph.node("Add", _kernel(graph, x, inner.plain), _kernel(graph, turned, inner.turned))


def _linear(graph: _Graph, x: str, coef: Array, intercept: Array) -> str:
    return graph.node("Add", graph.node("MatMul", x, graph.constant(coef)), graph.constant(intercept))


def _kernel(graph: _Graph, x: str, inner: KernelMap) -> str:
    """K(x, rows) · dual + intercept."""
    kernel, dual = inner.kernel, inner.dual
    if inner.rows is None:
        return _linear(graph, x, dual, inner.intercept)
    rows = inner.rows.astype(np.float64)
    if kernel.name == "linear":
        return _linear(graph, x, rows.T @ dual, inner.intercept)
    if kernel.name == "rbf":
        centre = rows.mean(axis=0)  # distances from the middle of the rows lose the fewest digits
        rows = (rows - centre) / kernel.sigma
        x = graph.scaled(graph.node("Sub", x, graph.constant(centre)), 1.0 / kernel.sigma, rows.shape[1])
        own = graph.node("ReduceSum", graph.node("Mul", x, x), graph.constant(np.array([1])), keepdims=1)
        products = graph.node("MatMul", x, graph.constant(-2.0 * rows.T))
        squares = graph.node("Add", graph.node("Add", products, own), graph.constant(np.einsum("ij,ij->i", rows, rows)))
        values = graph.node("Exp", graph.node("Neg", graph.node("Max", squares, graph.constant(0.0))))
    else:
        products = graph.node("Add", graph.node("MatMul", x, graph.constant(rows.T)), graph.constant(kernel.coef0))
        values = graph.node("Pow", products, graph.constant(float(kernel.degree)))
    return _linear(graph, values, dual, inner.intercept)
