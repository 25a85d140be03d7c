"""The C sources: headers that compile alone, templates that say what they need, includes that point down only."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parent.parent / "csrc"
HEADERS = sorted(path.relative_to(CSRC).as_posix() for path in CSRC.rglob("*.h"))
TEMPLATES = [name for name in HEADERS if name.endswith("_impl.h")]
ALONE = [name for name in HEADERS if not name.endswith("_impl.h")]
FOLDERS_BELOW = {"base": set(), "knn": {"base", "dense"}}  # every other folder: base alone
MOST_LINES = 600

pytestmark = pytest.mark.skipif(not HEADERS, reason="the C sources are not beside the tests")


def _includes(name: str) -> list[str]:
    text = (CSRC / name).read_text()
    return re.findall(r'^#(?:include|define MF_TEMPLATE) ["<]([^">]+)[">]', text, re.MULTILINE)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", ALONE)
def test_header_compiles_alone(name: str) -> None:
    command = ["gcc", "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
    result = subprocess.run([*command, f"-I{CSRC}", "-x", "c", str(CSRC / name)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", HEADERS)
def test_header_is_short_and_opens_with_a_comment(name: str) -> None:
    text = (CSRC / name).read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert text.startswith("/* ")


@pytest.mark.parametrize("name", ALONE)
def test_header_has_a_guard(name: str) -> None:
    stem = name.removesuffix(".h").replace("/", "_").upper()
    guard = "MANIFAST_H" if name == "manifast.h" else f"MF_{stem}_H"
    assert f"#ifndef {guard}\n#define {guard}\n" in (CSRC / name).read_text()


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_says_what_it_needs(name: str) -> None:
    opening = (CSRC / name).read_text().split("*/", 1)[0]
    assert "Needs: " in opening


def test_no_source_includes_python() -> None:
    sources = [path for path in CSRC.rglob("*.[ch]") if "Python.h" in path.read_text()]
    assert sources == []


@pytest.mark.parametrize("name", [name for name in HEADERS if "/" in name])
def test_includes_point_down(name: str) -> None:
    folder = name.split("/")[0]
    allowed = {folder} | FOLDERS_BELOW.get(folder, {"base"})
    used = {include.split("/")[0] for include in _includes(name) if "/" in include and not include.startswith("sys/")}
    assert used <= allowed
