"""Dask arrays in, lazy Dask arrays out: the one door for `transform`, `predict` and the scores of every fitted model.

Nothing here imports Dask: an array of it can only come from where it was imported.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import uuid4

import numpy as np

from manifast._parts import slim
from manifast._threads import one_thread
from manifast._validation import Array

Method = TypeVar("Method", bound=Callable[..., Any])


def is_dask_array(value: Any) -> bool:
    """Whether a value is a Dask array."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(value, module.Array)


def over_blocks(method: Method) -> Method:
    """A method of new rows X that also takes a Dask array, block by block, and then gives a lazy one."""

    @wraps(method)
    def call(self: Any, X: Any) -> Any:
        return _lazy(self, method.__name__, X) if is_dask_array(X) else method(self, X)

    return cast(Method, call)


def _lazy(model: Any, name: str, X: Any) -> Any:
    from dask.delayed import delayed

    features = getattr(model, "n_features_in_", None)
    if features is None:
        getattr(model, name)(np.zeros((1, 1)))  # says that it is not fitted
    if X.ndim != 2 or X.shape[1] != features:
        raise ValueError(f"X must be a Dask array with {features} columns. Got shape {X.shape} instead.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers. Got a Dask array of dtype {X.dtype} instead.")
    nothing = image_of_no_rows(model, name, X.dtype)
    whole = X.rechunk({1: -1})  # the columns of a block in one piece
    # The model is one task of the graph that all blocks refer to.
    shared = delayed(slim(model), name=f"{type(model).__name__}-{uuid4().hex}", traverse=False)
    flat = nothing.ndim == 1
    shape: dict[str, Any] = {"drop_axis": 1} if flat else {"chunks": (whole.chunks[0], (nothing.shape[1],))}
    return whole.map_blocks(_image, shared, name, nothing, dtype=nothing.dtype, meta=nothing, **shape)


def image_of_no_rows(model: Any, name: str, dtype: Any) -> Array:
    """What a method of a fitted model gives for no rows: the shape and dtype of the image of one row."""
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(model, name)(np.ones((1, model.n_features_in_), dtype)))[:0]


def _image(block: Any, model: Any, name: str, nothing: Array) -> Array:
    """The image of one block, on one thread: the workers beside it have work of their own."""
    if not len(block):
        return nothing
    with one_thread():
        return np.asarray(getattr(model, name)(np.asarray(block)))
