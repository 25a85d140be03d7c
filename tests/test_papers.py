"""The runner of the papers' tables: names, resuming after a kill, ranges that can fail, missing data."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.process


@pytest.fixture
def papers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("MANIFAST_DATA", raising=False)
    return pytest.importorskip("benchmarks.papers.__main__", reason="benchmarks are not beside the tests")


def test_list_names_every_experiment(papers, capsys):
    assert papers.main(["list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert len(names) == len(set(names)) == len(papers.EXPERIMENTS)
    assert {"nsse-table1", "nsse-fig6", "lgrm-fig5", "see-table1", "theory-fig13", "sparse-table6", "summary"} <= set(
        names
    )


def test_unknown_names_and_missing_data_are_refused(papers, tmp_path, capsys):
    assert papers.main(["run", "nsse-table9"]) == 2
    assert papers.main(["run", "nsse-table3", "--data", str(tmp_path), "--output", str(tmp_path)]) == 1
    assert "orl" in capsys.readouterr().err


def test_sets_of_every_kind_are_the_same_rows(papers, tmp_path):
    """An archive, a MATLAB file with classes from 1, and a folder of pictures."""
    import numpy as np
    from benchmarks.papers.data import Sets
    from scipy.io import savemat

    Image = pytest.importorskip("PIL.Image", reason="writes images with Pillow")
    images, y = np.random.default_rng(0).integers(0, 256, (12, 6, 6)).astype(np.uint8), np.repeat([0, 1, 2], 4)
    np.savez(tmp_path / "first.npz", images=images, labels=y)
    savemat(tmp_path / "second.mat", {"fea": images.swapaxes(1, 2).reshape(12, -1), "gnd": y[:, None] + 1})
    for number, image in enumerate(images):
        folder = tmp_path / "third" / f"person {y[number]}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number:02d}.png")
    found = [Sets(tmp_path).rows(name, size=3, unit=True, classes=(1, 2)) for name in ("first", "second", "third")]
    for X, labels in found:
        assert labels.tolist() == [1] * 4 + [2] * 4
        np.testing.assert_allclose(X, found[0][0], atol=1e-12)


def test_printed_figures_belong_to_rows_and_columns(papers):
    for experiment in papers.EXPERIMENTS.values():
        for measure, rows in experiment.printed.items():
            assert measure in experiment.shows
            assert set(rows) <= set(experiment.family.rows)
            assert all(set(cells) <= set(experiment.family.columns) for cells in rows.values())


def test_pages_show_every_experiment_once(papers):
    pages = sorted((ROOT / "docs" / "papers").glob("*.md"))
    shown = [
        name for page in pages for line in page.read_text().splitlines() if line.startswith("<!-- results: ")
        for name in line.removeprefix("<!-- results: ").removesuffix(" -->").split(", ")
    ]  # fmt: skip
    assert sorted(shown) == sorted(papers.EXPERIMENTS)
    results = ROOT / "docs" / "papers" / "results"
    assert {file.stem for file in results.glob("*.md")} == {file.stem for file in results.glob("*.json")}
    assert {file.stem for file in results.iterdir()} <= set(papers.EXPERIMENTS)


def test_a_killed_run_goes_on_to_the_same_tables(papers, tmp_path):
    """Cells that were finished are kept as they are; the tables equal those of a run that was not killed."""
    name = "lgrm-fig1"
    command = [sys.executable, "-m", "benchmarks.papers", "run", name, "--quick", "--splits", "3", "--output"]
    run = subprocess.Popen([*command, str(tmp_path / "killed")], cwd=ROOT, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while len(list((tmp_path / "killed").rglob("*training.json"))) < 3 and time.monotonic() < end:
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    run.wait()
    kept = {file: file.stat().st_mtime_ns for file in (tmp_path / "killed").rglob("*training.json")}
    assert len(kept) >= 3
    for folder in ("killed", "whole"):
        assert papers.main([*command[3:], str(tmp_path / folder)]) == 0
    assert all(file.stat().st_mtime_ns == at for file, at in kept.items())
    for ending in ("md", "json"):
        texts = [(tmp_path / folder / f"{name}.{ending}").read_text() for folder in ("killed", "whole")]
        assert texts[0] == texts[1]


def test_a_figure_outside_its_range_fails(papers, tmp_path, monkeypatch, capsys):
    wrong = replace(papers.EXPERIMENTS["lgrm-fig1"], ranges={"new": {"LGRM": (2.0, 3.0), "nobody": (0.0, 1.0)}})
    monkeypatch.setitem(papers.EXPERIMENTS, "lgrm-fig1", wrong)
    assert papers.main(["run", "lgrm-fig1", "--quick", "--splits", "1", "--output", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "not from 2 to 3" in said and "nobody on Swiss roll is missing" in said


def test_a_damaged_or_outdated_cell_is_computed_again(papers, tmp_path):
    arguments = ["run", "lgrm-fig5", "--quick", "--splits", "1", "--output", str(tmp_path)]
    assert papers.main(arguments) == 0
    files = sorted((tmp_path / "cells").rglob("*.json"))
    whole = json.loads(files[0].read_text())
    files[0].write_text("{")
    files[1].write_text(json.dumps(json.loads(files[1].read_text()) | {"fingerprint": "older"}))
    assert papers.main(arguments) == 0
    assert json.loads(files[0].read_text())["cell"] == whole["cell"]
    assert json.loads(files[1].read_text())["fingerprint"] != "older"


def test_times_are_measured_again_with_what_was_chosen(papers, tmp_path, monkeypatch):
    """`time` leaves everything but the times as it is, and computes no cell."""
    some = replace(papers.EXPERIMENTS["summary"], columns=("SUPLAP", "NN"), ranges={})
    monkeypatch.setitem(papers.EXPERIMENTS, "summary", some)
    options = ["summary", "--quick", "--splits", "1", "--output", str(tmp_path)]
    assert papers.main(["time", *options]) == 0
    assert not list(tmp_path.rglob("cells/*/*.json"))
    assert papers.main(["run", *options]) == 0
    before = {file: json.loads(file.read_text())["cell"] for file in tmp_path.rglob("cells/*/*.json")}
    assert len(before) == 2
    assert papers.main(["time", *options]) == 0
    for file, cell in before.items():
        after = json.loads(file.read_text())["cell"]
        assert {name for name in cell if cell[name] != after[name]} == {"fit_s", "row_us"}
    page = (tmp_path / "summary.md").read_text()
    assert "| SupervisedLaplacianEigenmaps |" in page and "scale, d" in page


def test_the_best_point_of_a_curve_is_shown_as_in_the_paper(papers, tmp_path):
    from benchmarks.papers.report import summarize
    from benchmarks.papers.runner import Options, tasks, write

    experiment, options = papers.EXPERIMENTS["sparse-table1"], Options(tmp_path, splits=2)
    for task in tasks(experiment, options):
        curve = {"x": [1, 2, 3], "y": [10.0, 30.0 - task.split, 20.0 + 5 * task.split]}
        write(task, {"nn": 5.0, "nn curve": curve}, 0.0, options)
    numbers = summarize(experiment, options)["numbers"]
    entry = numbers["as in the paper"]["nn"]["ORL, 30 %"]["sparse"]
    assert (entry["mean"], entry["standard_error"], entry["parameters"]) == (29.5, 0.5, "2")
    assert numbers["chosen on training data"]["nn"]["ORL, 30 %"]["sparse"]["mean"] == 5.0


def test_candidates_that_cannot_be_fitted_are_left_out(papers):
    """Validation on one image per class, where LDA does not exist: the first candidate is taken."""
    import numpy as np
    from benchmarks.papers.choice import validated
    from benchmarks.papers.supervised import METHODS

    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 2)
    cell = validated(METHODS["LDA"], rng.standard_normal((8, 3)) + 9.0 * y[:, None], y, np.full((1, 3), 9.0), [1])
    assert json.loads(cell["chosen"]) == {"solver": "svd"} and cell["error"] == 0


def test_a_choice_that_cannot_be_fitted_to_all_rows_gives_way_to_the_next(papers):
    import numpy as np
    from benchmarks.papers.choice import Method, ranked, validated
    from sklearn.neighbors import KNeighborsClassifier

    class OfFewRows(KNeighborsClassifier):
        def fit(self, X, y):
            if len(X) > 10 and self.n_neighbors == 1:
                raise ValueError("too many rows")
            return super().fit(X, y)

    y = np.repeat([0, 1], 6)
    X = np.linspace(0.0, 1.0, 12)[:, None] + 9.0 * y[:, None]
    method = Method(lambda X, y, k: OfFewRows(k), ({"k": 1}, {"k": 2}))
    assert [point["k"] for point in ranked(method, X, y)] == [1, 2]
    cell = validated(method, X, y, X, y)
    assert json.loads(cell["chosen"]) == {"k": 2} and cell["error"] == 0
    with pytest.raises(ValueError, match="too many rows"):
        validated(Method(lambda X, y, k: OfFewRows(k), ({"k": 1},)), X, y, X, y)
