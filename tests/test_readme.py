"""The Python blocks of README.md and of the pages of the site run, and the numbers beside them are right."""

from __future__ import annotations

import ast
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"#\s*(\d+\.\d+)\b")
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if "_build" not in path.parts]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_blocks_run(path, tmp_path, monkeypatch, capsys):
    if not path.exists():
        pytest.skip("README.md and docs/ are not beside the tests")
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        tree, lines = ast.parse(block), block.splitlines()
        for node in ast.walk(tree):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module and find_spec(module.split(".")[0]) is None:
                pytest.skip(f"{module} is not installed")
        for node in tree.body:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # graphs of digits fall into components, which are joined
                code = compile(ast.Module([node], []), str(path), "exec")
                if not isinstance(node, ast.Expr):
                    exec(code, names)
                    continue
                value = eval(compile(ast.Expression(node.value), str(path), "eval"), names)
            if said := NUMBER.search(lines[node.end_lineno - 1]):
                assert float(value) == pytest.approx(float(said[1]), abs=0.015), lines[node.end_lineno - 1]
            elif isinstance(node.value, ast.Compare):
                assert value, lines[node.end_lineno - 1]
