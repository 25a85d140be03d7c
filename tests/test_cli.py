"""``python -m manifast``."""

from __future__ import annotations

import re

import pytest

from manifast import __version__, cli, demo, kernels


@pytest.mark.parametrize("name", cli.CHECKS)
def test_every_check_passes(name, digits):
    outcome = cli.CHECKS[name](digits[:700])
    assert outcome.error <= outcome.bound


def test_self_check_reports_every_line(capsys):
    assert cli.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("manifast ")
    last = lines.index(f"{len(cli.CHECKS)} of {len(cli.CHECKS)} checks passed")
    assert [line.split()[0] for line in lines[last - len(cli.CHECKS) : last]] == list(cli.CHECKS)
    assert all(line.endswith("  OK") for line in lines[last - len(cli.CHECKS) : last])
    assert last == len(lines) - 1


def test_a_wrong_result_fails(monkeypatch, capsys):
    right = kernels.sq_distances
    monkeypatch.setattr(kernels, "sq_distances", lambda X: right(X) + 1e-9)
    monkeypatch.setattr(kernels, "rbf_apply", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(cli, "CHECKS", {"distances": cli.check_distances, "rbf": cli.check_rbf})
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
