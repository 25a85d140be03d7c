"""`show_config`: what this installation is made of."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from manifast._core import dispatch
from manifast._threads import available_threads


def config() -> dict[str, Any]:
    """What `show_config` prints, as a dictionary."""
    from threadpoolctl import threadpool_info

    build = dispatch.build()
    packages = {}
    for name in ("numpy", "scipy", "scikit-learn", "threadpoolctl"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "not installed"
    return {
        "manifast": version("manifast"),
        "core": build["version"],
        "python": f"{platform.python_version()} ({sys.platform}, {platform.machine()})",
        "compiler": build["compiler"],
        "openmp": build["openmp"] or "no",
        "instruction sets built": dispatch.levels_built(),
        "instruction set in use": dispatch.level(),
        "threads": available_threads(),
        "blas": [
            f"{lib['internal_api']} {lib.get('version')} ({lib['num_threads']} threads)"
            for lib in threadpool_info()
            if lib["user_api"] == "blas"
        ],
        "packages": packages,
    }


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
            value = ", ".join(value) or "none loaded"
        print(f"{key:<24} {value}")
