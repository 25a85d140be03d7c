"""What of a fitted model its `transform` or `predict` needs: what a file and a worker get, and nothing else.

Every class lists it in `_stored`, by attribute: the parameters come along as they are, but for large arrays among them,
which no map looks at again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast._validation import is_sparse

_SMALL = 512  # numbers of an array that a parameter may have in a file: a prior, a grid of widths


class NotStored:
    """Stands for a parameter of a fit that a saved model does not hold, and says what it was.

    Examples
    --------
    >>> from manifast._parts import NotStored
    >>> NotStored("array of shape (1000, 8)")
    NotStored('array of shape (1000, 8)')
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"NotStored({self.what!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotStored) and other.what == self.what

    def __hash__(self) -> int:
        return hash(self.what)


def brief(value: Any) -> Any:
    """A parameter without its large arrays."""
    if isinstance(value, tuple | list) and any(isinstance(brief(part), NotStored) for part in value):
        return NotStored(" and ".join(getattr(brief(part), "what", repr(part)) for part in value))
    if isinstance(value, NotStored):
        return value
    if is_sparse(value) or (isinstance(value, np.ndarray) and value.size > _SMALL):
        return NotStored(f"{'sparse ' if is_sparse(value) else ''}{value.dtype} array of shape {value.shape}")
    if hasattr(value, "iloc") and getattr(value, "size", 0) > _SMALL:  # pandas
        return NotStored(f"{type(value).__name__} of shape {value.shape}")
    return value


def kept_state(model: Any) -> dict[str, Any]:
    """The fitted attributes that a model's map needs, as its class lists them."""
    return {name: vars(model)[name] for name in type(model)._stored if name in vars(model)}


def slim(model: Any) -> Any:
    """A copy that gives new rows the same bits, and holds nothing else; models of others' classes stay as they are."""
    if type(model).__module__.partition(".")[0] != "manifast" or not hasattr(type(model), "_stored"):
        return model
    made = object.__new__(type(model))
    parameters = {name: brief(value) for name, value in model.get_params(deep=False).items()}
    made.__dict__.update(parameters | {name: slim(value) for name, value in kept_state(model).items()})
    return made
