"""What importing the package brings along, and that the examples in its docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import manifast

MODULES = [
    module.name
    for module in pkgutil.walk_packages(manifast.__path__, "manifast.")
    if not module.name.startswith("manifast._core.") and module.name != "manifast.__main__"
]


@pytest.mark.process
def test_kernels_import_neither_scikit_learn_nor_matplotlib(run_python):
    heavy = "('sklearn', 'matplotlib', 'pandas', 'joblib', 'dask')"
    code = f"import manifast.kernels, sys; print([name for name in {heavy} if name in sys.modules])"
    assert run_python(code) == "[]\n"


@pytest.mark.process
def test_the_package_alone_imports_no_numpy(run_python):
    assert run_python("import manifast, sys; print('numpy' in sys.modules)") == "False\n"


def test_names_load_on_first_use():
    assert dir(manifast) == sorted(manifast.__all__)
    for name in manifast.__all__:
        assert getattr(manifast, name) is not None
    with pytest.raises(AttributeError, match="module 'manifast' has no attribute 'nothing'"):
        _ = manifast.nothing


def test_typing_is_shipped():
    folder = Path(manifast.__file__).parent
    assert (folder / "py.typed").is_file()
    compiled = {path.name.split(".")[0] for path in (folder / "_core").iterdir() if path.suffix in (".so", ".pyd")}
    stubs = {path.stem for path in (folder / "_core").glob("*.pyi")}
    assert compiled <= stubs


@pytest.mark.parametrize("name", ["manifast", *MODULES])
def test_examples_in_docstrings(name):
    if name == "manifast.plotting":
        pytest.importorskip("matplotlib", reason="its examples draw")
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("NumPy prints scalars in another way from version 2 on, which the examples show")
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
