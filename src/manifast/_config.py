"""`show_config`: what this installation is made of."""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from manifast._core import dispatch
from manifast._threads import available_threads


def config() -> dict[str, Any]:
    """What `show_config` prints, as a dictionary of strings, numbers, lists and one dictionary."""
    build = dispatch.build()
    return {
        "manifast": version("manifast"),
        "core": build["version"],
        "python": f"{platform.python_version()} ({sys.platform}, {platform.machine()})",
        "compiler": build["compiler"],
        "openmp": build["openmp"] or "no: kernels run on one thread",
        "instruction sets built": [
            name if why_not is None else f"{name} ({why_not})" for name, why_not in dispatch.levels_built().items()
        ],
        "instruction set in use": f"{dispatch.level()} ({_choice()})",
        "threads": available_threads(),
        "blas": [*_blas("numpy"), *_blas("scipy")],
        "packages": {name: _installed(name) for name in ("numpy", "scipy", "scikit-learn", "threadpoolctl")},
    }


def _choice() -> str:
    """Why the instruction set in use is the one in use."""
    if os.environ.get("MANIFAST_ISA"):
        return "MANIFAST_ISA"
    return "the best that runs here" if dispatch.level() == dispatch.levels()[0] else "chosen by hand"


def show_config() -> None:
    """Print version, compiler, OpenMP, instruction sets, BLAS and threads.

    Examples
    --------
    >>> import manifast
    >>> manifast.show_config()  # doctest: +ELLIPSIS
    manifast                 ...
    """
    for key, value in config().items():
        if isinstance(value, dict):
            value = ", ".join(f"{name} {number}" for name, number in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        print(f"{key:<24} {value}")


def _blas(package: str) -> list[str]:
    """The BLAS libraries a package brought, as threadpoolctl sees them; else what it says it was built with."""
    from threadpoolctl import threadpool_info

    importlib.import_module(f"{package}.linalg")
    loaded = [
        f"{package}: {library['internal_api']} {library['version']} ({library['num_threads']} threads)"
        for library in threadpool_info()
        if library["user_api"] == "blas" and re.search(rf"[\\/]{package}(\.libs)?[\\/]", library["filepath"])
    ]
    if loaded:
        return loaded
    built = importlib.import_module(package).show_config(mode="dicts")["Build Dependencies"]["blas"]
    return [f"{package}: {built.get('name', 'unknown')} {built.get('version', '')}".rstrip()]


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
