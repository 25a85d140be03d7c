"""Imports go down only, private names stay in their package, modules are short, and a method fits into one file."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

import manifast

PACKAGE = Path(manifast.__file__).parent
ROOT = Path(__file__).parent.parent

# From the ground up: a module imports from its own line or from lines above it, never from below.
LAYERS = [
    ["_core", "_warnings", "_links", "_version"],
    ["_threads", "_progress", "_validation", "_sparse", "_parts", "_dask", "_clusters"],
    ["_kernels", "_prepared"],
    ["_labels", "kernels", "_ranks", "_lipschitz", "_widths"],
    ["_local", "_paths", "_linalg", "spectral", "graphs", "_gram", "_config", "_choices"],
    ["_neighbors"],
    ["_rows", "maps"],
    ["smoothers", "extensions", "_whitening"],
    ["objectives"],
    ["solve"],
    ["embeddings"],
    ["classifiers"],
    ["theory", "metrics", "model_selection", "datasets", "_model_file", "_map_checks", "_onnx", "_sources"],
    ["persistence", "plotting"],
    ["scale"],
    ["demo", "tables", "selfcheck", "page"],
    ["cli"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def sources():
    return sorted(path for path in PACKAGE.rglob("*.py") if "_core" not in path.parts)


def owner(module: str) -> str:
    """The package or module right below manifast."""
    return module.split(".")[1] if module.count(".") else ""


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path):
    """(module, name) of what a file imports from manifast, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "manifast":
            for alias in node.names:
                yield node.module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("manifast."):
                    yield alias.name, ""


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_imports_go_down_only(path):
    own = owner(module_of(path))
    if own in ("", "__main__"):
        return  # the top of the package loads names on first use
    assert own in LEVEL, f"{own} has no place among the layers: add it to LAYERS"
    for module, name in imports(path):
        target = owner(module) or name
        if target in LEVEL:
            assert LEVEL[target] <= LEVEL[own], f"{module_of(path)} imports {module}.{name} from a higher layer"


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_private_names_stay_in_their_package(path):
    own = owner(module_of(path))
    for module, name in imports(path):
        if owner(module) == own or not name.startswith("_") or name in LEVEL or module == "manifast":
            continue
        assert (module, name) in KNOWN, f"{module_of(path)} uses the private name {module}.{name}"


# Attributes that packages agree on, and those of Python, scikit-learn and IPython.
SHARED = {"_stored", "_exponent", "_getframe", "_get_param_names", "_repr_html_"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_private_attributes_stay_in_their_package():
    """An attribute with an underscore belongs to a package that defines it somewhere."""
    trees = {path: ast.parse(path.read_text()) for path in sources()}
    defined: dict[str, set[str]] = {}
    for path, tree in trees.items():
        own = defined.setdefault(owner(module_of(path)), set())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not private(node.attr) or node.attr in SHARED:
                continue
            inherited = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inherited |= isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
            known = inherited or node.attr in defined[owner(module_of(path))]
            assert known, f"{module_of(path)}:{node.lineno} uses {ast.unparse(node)}, private to another package"


# What the library calls below the checked kernels.
KNOWN = {
    (module, name)
    for module, names in {
        "manifast._local": "_reconstruct",
        "manifast._core": "_abi",
    }.items()
    for name in names.split()
}


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_modules_have_one_job_each(path):
    assert len(path.read_text().splitlines()) <= 600


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_no_property_holds_a_lock(path):
    """That of functools holds one under Python 3.11: a child forked meanwhile would wait for ever."""
    assert "import cached_property" not in path.read_text()


def test_a_method_of_ones_own_in_one_file():
    path = ROOT / "docs" / "examples" / "own_method.py"
    if not path.exists():
        pytest.skip("docs/ is not beside the tests")
    spec = importlib.util.spec_from_file_location("own_method", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() > 0.85
