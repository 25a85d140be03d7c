"""The command line: the checks and the demo, and tables in, models and tables out."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from manifast import LPP, __version__, cli, demo, kernels, scale, selfcheck, tables


@pytest.mark.parametrize("name", selfcheck.CHECKS)
def test_every_check_passes(name, digits):
    outcome = selfcheck.CHECKS[name](digits[:700])
    assert outcome.error <= outcome.bound


def test_self_check_reports_every_line(capsys):
    assert cli.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("manifast ")
    last = lines.index(f"{len(selfcheck.CHECKS)} of {len(selfcheck.CHECKS)} checks passed")
    assert [line.split()[0] for line in lines[last - len(selfcheck.CHECKS) : last]] == list(selfcheck.CHECKS)
    assert all(line.endswith("  OK") for line in lines[last - len(selfcheck.CHECKS) : last])
    assert last == len(lines) - 1


def test_a_wrong_result_fails(monkeypatch, capsys):
    right = kernels.sq_distances
    monkeypatch.setattr(kernels, "sq_distances", lambda X: right(X) + 1e-9)
    monkeypatch.setattr(kernels, "rbf_apply", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(selfcheck, "CHECKS", {"distances": selfcheck.check_distances, "rbf": selfcheck.check_rbf})
    assert cli.main([]) == 1
    output = capsys.readouterr().out
    assert re.search(r"^distances .* FAILED$", output, re.M)
    assert re.search(r"^rbf +ZeroDivisionError: .* FAILED$", output, re.M)
    assert output.endswith("0 of 2 checks passed\n")


def test_config_only(capsys):
    assert cli.main(["--config"]) == 0
    assert "checks passed" not in capsys.readouterr().out


@pytest.mark.process
def test_as_a_module(run_python):
    code = "import runpy, sys; sys.argv = ['manifast', {!r}]; runpy.run_module('manifast', run_name='__main__')"
    assert run_python(code.format("--version")) == f"manifast {__version__}\n"
    assert run_python(code.format("--help")).startswith("usage: python -m manifast")


def test_demo(monkeypatch, tmp_path, capsys):
    """A table with an error below 25 % for every method, and a picture where matplotlib is there."""
    monkeypatch.setattr(demo, "models", lambda d, right=demo.models: right(d)[2:3] + right(d)[8:10])
    file = tmp_path / "picture.png"
    assert cli.main(["demo", "--output", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    errors = [float(line.split(" %")[0].split()[-1]) for line in lines if " % " in line or line.endswith(" %")]
    assert len(errors) == 4
    assert max(errors) < 25
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return
    assert file.stat().st_size > 10_000


def test_demo_knows_all_methods():
    named = {name for name, _, _ in demo.models(3)}
    assert {"LLE", "LTSA", "Isomap", "LGRM", "LPP", "spectral regression", "t-SNE (scikit-learn)"} < named


X, y = load_iris(return_X_y=True)
SPECIES = load_iris().target_names[y]
HEADER = ["sepal length", "sepal width", "petal length", "petal width"]


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


@pytest.fixture
def flowers(tmp_path):
    """Iris as a csv file with ids and a column of labels, its columns in another order than scikit-learn's."""
    lines = ["name,species," + ",".join(HEADER)]
    lines += [f"flower {i},{SPECIES[i]}," + ",".join(map(str, X[i])) for i in range(len(X))]
    file = tmp_path / "flowers.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_embed_and_transform(flowers, tmp_path, capsys):
    """Rows, headers and ids survive; the mapped rows are those of Python, to the last bit."""
    from manifast import LFDA

    model, out = tmp_path / "iris.manifast", tmp_path / "mapped.csv"
    common = ("--id", "name")
    assert run("embed", flowers, *common, "--labels", "species", "--method", "lfda", "--set", "n_components=2",
               "--output", model, "--embedding", tmp_path / "train.csv") == 0  # fmt: skip
    turned = tmp_path / "turned.csv"
    cells = [line.split(",") for line in flowers.read_text().splitlines()]
    turned.write_text("\n".join(",".join([c[5], c[4], c[3], c[2], c[0], c[1]]) for c in cells))
    assert run("transform", model, turned, *common, "--output", out) == 0
    plain = LFDA(2).fit(X, SPECIES)
    lines = out.read_text().splitlines()
    assert lines[0] == "name,lfda0,lfda1" and lines[5].startswith("flower 4,")
    found = np.array([line.split(",")[1:] for line in lines[1:]], dtype=float)
    assert np.array_equal(found, plain.transform(X))
    train = np.array([line.split(",")[1:] for line in (tmp_path / "train.csv").read_text().splitlines()[1:]], float)
    assert np.array_equal(train, plain.embedding_)
    assert "LFDA of 150 rows, 4 columns" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "tsv", "parquet"])
def test_every_format_in_and_out(ending, tmp_path):
    from manifast import Isomap

    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="reads and writes Parquet")
    data, model, out = tmp_path / f"data.{ending}", tmp_path / "m.manifast", tmp_path / f"out.{ending}"
    ids = np.array([f"row {i}" for i in range(150)])
    tables.write_table(data, tables.Table(X, HEADER, None if ending == "npy" else ids))
    more = [] if ending == "npy" else ["--id", "id"]
    if ending == "npz":
        np.savez(data, X=X, id=ids)
    assert run("embed", data, *more, "--method", "Isomap", "--set", "n_neighbors=60", "--output", model) == 0
    assert run("transform", model, data, *more, "--output", out) == 0
    found = tables.read_table(out, ids=None if ending == "npy" else "id") if ending != "npz" else None
    expected = Isomap(n_neighbors=60).fit(X).transform(X)
    if ending == "npz":
        with np.load(out) as stored:
            assert np.array_equal(stored["X"], expected) and np.array_equal(stored["id"], ids)
        return
    assert np.array_equal(found.X, expected)
    if ending != "npy":
        assert np.array_equal(found.ids, ids) and found.names == ["isomap0", "isomap1"]


def test_classifiers_predict(flowers, tmp_path):
    model, out = tmp_path / "iris.manifast", tmp_path / "predicted.csv"
    common = ("--id", "name")
    assert run("embed", flowers, *common, "--labels", "species", "--method", "RBFDiscriminant", "--output", model) == 0
    assert run("transform", model, flowers, *common, "--drop", "species", "--output", out) == 0
    lines = out.read_text().splitlines()
    assert lines[:2] == ["name,predicted", "flower 0,setosa"]
    assert np.mean([line.split(",")[1] == name for line, name in zip(lines[1:], SPECIES, strict=True)]) > 0.95


def test_compare(flowers, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="draws the page")
    page = tmp_path / "page.html"
    assert run("compare", flowers, "--id", "name", "--labels", "species", "--methods", "LFDA,1-NN", "--folds", 3,
               "--html", page) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "LFDA" in said and "1-NN" in said and said.rstrip().endswith(f"page: {page}")
    text = page.read_text()
    assert text.count("data:image/png;base64,") == 2 and ">LFDA</td>" in text and "http" not in text


BAD = [
    (["embed", "missing.csv", "--method", "Isomap", "--output", "m.manifast"], "missing.csv must be a file"),
    (["embed", "DATA", "--method", "Isomapp", "--output", "m.manifast"], "Got 'Isomapp'. Did you mean Isomap?"),
    (["embed", "DATA", "--method", "Isomap", "--output", "m.manifast"], "column 'name' of .* holds text"),
    (["embed", "DATA", "--id", "nome", "--method", "Isomap", "--output", "m.manifast"], "has no column 'nome'"),
    (["embed", "DATA", "--id", "name", "--labels", "kind", "--method", "NSSE", "--output", "m.manifast"],
     "--labels must be a column of .* or a file"),
    (["embed", "DATA", "--method", "Isomap", "--set", "n_neighbours=3", "--output", "m.manifast"],
     "--set must name a parameter of Isomap: n_neighbors"),
    (["embed", "DATA", "--method", "Isomap", "--set", "n_neighbors", "--output", "m.manifast"], "must be NAME=VALUE"),
    (["embed", "DATA", "--id", "name", "--drop", "species", "--method", "Isomap", "--set", "n_neighbors=900",
      "--output", "m.manifast"], "n_neighbors must be an integer from 1 to 149"),
    (["embed", "DATA", "--method", "OutOfSample", "--output", "m.manifast"], "use it from Python"),
    (["embed", "DATA", "--method", "Isomap", "--output", "nowhere/m.manifast"], "in a folder that exists"),
    (["embed", "DATA", "--method", "Isomap", "--output", "m.pickle"], "must be a file ending in .manifast"),
    (["embed", "DATA", "--id", "name", "--labels", "species", "--method", "TPTSSR", "--embedding", "e.csv",
      "--output", "m.manifast"], "--embedding must go with an embedding"),
    (["embed", "DATA", "--id", "name", "--labels", "species", "--method", "GFHF", "--picture", "e.png",
      "--output", "m.manifast"], "--picture must go with an embedding|pictures need matplotlib"),
    (["embed", "DATA", "--id", "name", "--labels", "species", "--method", "LFDA", "--picture", "e.xyz",
      "--output", "m.manifast"], "output must be a file ending in .*png|pictures need matplotlib"),
    (["embed", "DATA", "--id", "name", "--labels", "species", "--method", "LFDA", "--sample", "151",
      "--output", "m.manifast"], "n_rows must be at most the number of rows, 150"),
    (["embed", "DATA", "--id", "name", "--labels", "species", "--method", "LFDA", "--embedding", "FOLDER.csv",
      "--output", "m.manifast"], "output must be a file. Got the folder"),
    (["compare", "DATA", "--id", "name", "--labels", "ONE.npy", "--drop", "species"], "labels of at least 2 classes"),
    (["transform", "no.manifast", "DATA", "--output", "o.csv"], "must be a model that manifast saved"),
    (["transform", "no.manifast", "DATA", "--output", "o.xls"], "output must be a file ending in"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, words", BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_errors_are_one_sentence(flowers, tmp_path, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FOLDER.csv").mkdir()
    np.save("ONE.npy", np.full(150, "setosa"))
    assert run(*(flowers if argument == "DATA" else argument for argument in arguments)) == 1
    said = capsys.readouterr()
    assert re.search(words, said.err) and len(said.err.splitlines()) == 1 and said.out == ""
    assert said.err.startswith("manifast: error: ")
    assert not (tmp_path / "m.manifast").exists()


@pytest.mark.parametrize("arguments", [["embed"], ["nothing"], ["transform", "a"], ["compare", "a", "--folds", "x"]])
def test_wrong_usage_is_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert "usage: manifast" in capsys.readouterr().err


def test_empty_cells_and_minus_one_are_no_labels(tmp_path, capsys):
    kinds = np.array(["setosa", "versicolor", "virginica"])[load_iris().target].tolist()
    for none in ("", "-1"):
        given = [kind if i % 5 == 0 else none for i, kind in enumerate(kinds)]
        rows = [",".join([*map(repr, row), kind]) for row, kind in zip(X.tolist(), given, strict=True)]
        data = tmp_path / "few.csv"
        data.write_text("\n".join(["a,b,c,d,species", *rows]) + "\n")
        command = ("compare", data, "--labels", "species", "--methods", "GFHF, LapRLS, kernel,1-NN", "--folds", "3")
        assert run(*command, "--html", tmp_path / "page.html") == 0
        table = capsys.readouterr().out
        assert all(name in table for name in ("GFHF", "LapRLS, kernel", "1-NN"))
        assert run("embed", data, "--labels", "species", "--method", "NSSE", "--output", tmp_path / "m.manifast") == 1
        assert "y must not hold missing labels" in capsys.readouterr().err


def test_a_sample_of_a_large_array_is_fitted_and_all_of_it_mapped(tmp_path):
    rng = np.random.default_rng(0)
    data, model, out = tmp_path / "rows.npy", tmp_path / "m.manifast", tmp_path / "mapped.npy"
    rows = rng.standard_normal((5000, 4)).astype(np.float32)
    np.save(data, rows)
    assert run("embed", data, "--method", "LPP", "--sample", 300, "--output", model) == 0
    assert run("transform", model, data, "--output", out) == 0
    expected = LPP().fit(scale.sample_rows(rows, 300)).transform(rows)
    assert np.array_equal(np.load(out), expected) and not out.with_name("mapped.npy.journal").exists()
    assert run("transform", model, data, "--output", data) == 1 and np.array_equal(np.load(data), rows)


def test_what_the_system_refuses_is_one_sentence(flowers, tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "m.manifast")

    monkeypatch.setattr("manifast.save", refuse)
    assert run("embed", flowers, "--id", "name", "--labels", "species", "--method", "LDE", "--output",
               tmp_path / "m.manifast") == 1  # fmt: skip
    assert capsys.readouterr().err == "manifast: error: m.manifast cannot be read or written: Permission denied.\n"


@pytest.mark.process
def test_a_reader_that_has_gone_and_ctrl_c(tmp_path):
    """Both end quietly, with the codes that shells know."""
    command = [sys.executable, "-m", "manifast"]
    process = subprocess.Popen([*command, "--config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    said = process.stderr.read()
    assert (process.wait(), said) == (141, b"")
    process.stderr.close()

    np.save(tmp_path / "rows.npy", np.random.default_rng(0).random((3000, 20)))
    arguments = ["embed", "rows.npy", "--method", "LGRM", "--output", "m.manifast", "-v"]
    # A job in the background of a shell ignores Ctrl-C, and so would what it starts.
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    heeding = [sys.executable, "-c", heed, *command, *arguments]
    process = subprocess.Popen(heeding, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    said = process.stderr.readline()  # the fit has begun
    process.send_signal(signal.SIGINT)
    said += process.stderr.read()
    process.stderr.close()
    assert process.wait() == 130 and said.endswith("python -m manifast: stopped\n") and "Traceback" not in said
    assert not (tmp_path / "m.manifast").exists()
