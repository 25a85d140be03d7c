"""Warnings that point at the line of the user's code that led to them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_LIBRARIES = frozenset({"contextlib", "joblib", "manifast", "scipy", "sklearn"})  # nobody can change a parameter there


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first caller outside this library and those that call it: pipelines, searches, solvers.

    A fixed stack level would be right for one way in only: fit, fit_transform and a pipeline differ in depth.
    """
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


@contextmanager
def warnings_at_the_user() -> Iterator[None]:
    """Warnings of other libraries inside, given again where `warn` puts ours."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for each in said:
        warn(str(each.message), each.category)
