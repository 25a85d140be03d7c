"""`show_config`, the versions, and the choice of the instruction set."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import manifast
from manifast._config import config
from manifast._core import dispatch


def test_versions_agree():
    assert version("manifast") == manifast.__version__ == dispatch.build()["version"] == config()["manifast"]
    with open(Path(__file__).parents[1] / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["version"] == manifast.__version__


def test_show_config_prints_one_line_per_entry(capsys):
    manifast.show_config()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:24].rstrip() for line in lines] == list(config())
    assert all(line[25:].strip() for line in lines)


def test_blas_of_numpy_and_scipy_is_named():
    blas = config()["blas"]
    assert any(entry.startswith("numpy: ") for entry in blas)
    assert any(entry.startswith("scipy: ") for entry in blas)


def test_levels_are_the_ones_that_run_here(level):
    assert dispatch.level() == level
    assert level in dispatch.levels_built()
    assert config()["instruction set in use"].split()[0] == level


def test_every_level_built_runs_or_says_why_not():
    built = dispatch.levels_built()
    assert [name for name, why_not in built.items() if why_not is None] == dispatch.levels()
    assert built["baseline"] is None
    for line, (name, why_not) in zip(config()["instruction sets built"], built.items(), strict=True):
        assert line == (name if why_not is None else f"{name} ({why_not})")
        if why_not is not None:
            assert why_not in ("the processor lacks it", "the operating system does not save its registers")
            with pytest.raises(ValueError, match="instruction set must be"):
                dispatch.use(name)


def test_an_unknown_level_is_refused_and_changes_nothing():
    before = dispatch.level()
    with pytest.raises(ValueError, match=r"instruction set must be 'auto' or one of .* Got 'sse9' instead"):
        dispatch.use("sse9")
    assert dispatch.level() == before


@pytest.mark.process
@pytest.mark.parametrize("name", dispatch.levels())
def test_the_environment_chooses_the_level(run_python, name):
    code = "import manifast; manifast.show_config()"
    assert f"instruction set in use   {name} (MANIFAST_ISA)\n" in run_python(code, MANIFAST_ISA=name)


@pytest.mark.process
def test_the_best_level_is_chosen_unasked(run_python):
    code = "import manifast; manifast.show_config()"
    expected = f"instruction set in use   {dispatch.levels()[0]} (the best that runs here)\n"
    assert expected in run_python(code, MANIFAST_ISA="")
