"""The tables of the documentation are what benchmarks/tables.py makes from the measured results."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="needs the source tree")


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    spec = importlib.util.spec_from_file_location("benchmark_tables", ROOT / "benchmarks" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    return module


def test_committed_tables_are_made_from_the_committed_results(tables):
    made = tables.made()
    assert set(made) == set(tables.MAKERS)
    for name, text in made.items():
        assert (tables.TABLES / name).read_text() == text, f"run python benchmarks/tables.py: {name} is out of date"


def test_readme_table_has_ten_rows(tables):
    assert tables.readme().count("\n") == 11


def test_readme_holds_the_tables_as_they_are_made(tables):
    page = tables.README_FILE.read_text()
    assert page.count("\n") <= 120
    assert tables.readme() in page and tables.accuracy() in page, "run python benchmarks/tables.py"
    stale = page.replace("ms |", "s |").replace("` 6.4 /", "` 1.2 /")
    assert stale != page and tables.in_readme(stale, tables.made()) == page


def test_peers_say_what_they_need():
    content = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())
    assert {"processor", "instruction set", "blas", "numpy", "scikit-learn"} <= set(content["machine"])
    for row in content["rows"]:
        assert {"work", "threads", "seconds", "peer", "peer_seconds", "ratio", "agreed"} <= set(row)
        if row["peer_seconds"] is not None:
            assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["seconds"])


@pytest.mark.parametrize(
    ("value", "text"), [(12.345, "12.3 s"), (0.5, "500 ms"), (0.0123, "12.3 ms"), (1.5e-5, "15.0 µs"), (2.0, "2.00 s")]
)
def test_times_have_three_digits(tables, value, text):
    assert tables.seconds(value) == text


def test_slope_of_a_power(tables):
    rows = [{"n": n, "fit_seconds": 1e-6 * n**1.5} for n in (1000, 3000, 10_000, 30_000)]
    assert tables.slope(rows, "fit_seconds") == pytest.approx(1.5, abs=1e-12)
