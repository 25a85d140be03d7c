"""Results as JSON: the machine they were measured on and rows that a later run replaces one by one."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "spams-bin", "pyamg", "tapkee", "umap-learn")


def best_blas() -> None:
    """Start again with OpenBLAS's kernels for AVX-512 where the processor has it and OpenBLAS does not see it.

    A processor newer than the OpenBLAS that a peer brings is taken for an older one; so is one that OPENBLAS_CORETYPE
    hides. Call before any other work.
    """
    from threadpoolctl import threadpool_info

    import manifast.kernels  # noqa: F401
    from manifast._core import dispatch

    seen = {library.get("architecture") for library in threadpool_info() if library["internal_api"] == "openblas"}
    known = {"SkylakeX", "Cooperlake", "Sapphirerapids"}
    if "avx512" in dispatch.levels() and not seen <= known and os.environ.get("OPENBLAS_CORETYPE") != "SkylakeX":
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"
        os.execv(sys.executable, [sys.executable, *sys.argv])


def machine() -> dict[str, str]:
    """What the figures depend on."""
    from threadpoolctl import threadpool_info

    from manifast._config import config

    ours = config()
    importlib.import_module("scipy.linalg")
    own = ("numpy.libs", "scipy.libs", "numpy", "scipy")  # not those that a peer brings for itself
    libraries = [
        library for library in threadpool_info()
        if library["user_api"] == "blas" and Path(library["filepath"]).parent.name in own
    ]  # fmt: skip
    kinds = {f"{blas['internal_api']} {blas['version']} ({blas.get('architecture')})" for blas in libraries}
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "instruction set": ours["instruction set in use"].partition(" ")[0],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "manifast": f"{ours['manifast']} ({ours['compiler']}, OpenMP {ours['openmp']})",
        "blas": ", ".join(sorted(kinds)),
        **{name: _version(name) for name in PACKAGES},
    }


def read(file: Path) -> dict[str, Any]:
    """Machine and rows of a file, nothing where there is none."""
    return json.loads(file.read_text()) if file.exists() else {"machine": {}, "rows": []}


def keep(file: Path, key: tuple[str, ...], rows: list[dict[str, Any]], **about: Any) -> None:
    """Put rows into the file in place of those with the same key, and write it.

    Rows of another machine would not belong together: they are refused. Remove the file to begin anew.
    """
    stored, here = read(file), machine()
    different = [name for name, value in stored["machine"].items() if here.get(name) != value]
    if stored["rows"] and different:
        raise SystemExit(f"{file} was measured with another {', '.join(different)}: remove it to begin anew")
    new = {tuple(row[name] for name in key): row for row in rows}
    merged = [new.pop(tuple(row[name] for name in key), row) for row in stored["rows"]]
    content = {**stored, "machine": here, **about, "rows": [*merged, *new.values()]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _processor() -> str:
    """Name, family and model: the name alone says little on virtual machines."""
    fields: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    if "model name" not in fields:
        return platform.processor() or platform.machine()
    return f"{fields['model name']} (family {fields.get('cpu family', '?')}, model {fields.get('model', '?')})"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
