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


# A grid graph whose hierarchy has several levels; the allocation of each number fails once.
STARVED = r"""
#include <stdio.h>
#include <stdlib.h>

static long left;
static int fails(void) { return left-- == 0; }
static void *failing_calloc(size_t count, size_t size) { return fails() ? NULL : calloc(count, size); }
static int failing_posix_memalign(void **memory, size_t align, size_t size)
{
    return fails() ? 12 : posix_memalign(memory, align, size);
}
#define calloc failing_calloc
#define posix_memalign failing_posix_memalign
#include "multilevel/multilevel.h"

#define SIDE 40
int main(void)
{
    static int64_t start[SIDE * SIDE + 1];
    static int32_t column[4 * SIDE * SIDE];
    static double weight[4 * SIDE * SIDE];
    int64_t n = SIDE * SIDE, at = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t x = i % SIDE, y = i / SIDE;
        int64_t near[4] = {y ? i - SIDE : -1, x ? i - 1 : -1, x < SIDE - 1 ? i + 1 : -1, y < SIDE - 1 ? i + SIDE : -1};
        for (int k = 0; k < 4; k++)
            if (near[k] >= 0) weight[at] = 1, column[at++] = (int32_t)near[k];
        start[i + 1] = at;
    }
    for (long number = 0;; number++) {
        mf_run run = {.n_threads = 1};
        mf_multilevel *made = NULL;
        int64_t reached = 0;
        left = number;
        mf_status status = mf_multilevel_begin(n, start, column, weight, &made, &reached, &run);
        int levels = status == MF_OK ? made->count : 0;
        mf_multilevel_free(made);
        if (left >= 0) return printf("%ld %d\n", number, levels), status != MF_OK;
        if (status != MF_NO_MEMORY) return 1;
    }
}
"""


@pytest.mark.process
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_hierarchy_without_memory_ends_in_a_status(tmp_path: Path) -> None:
    """Unoptimised, where reading through a null pointer is not optimised away."""
    source, program = tmp_path / "starved.c", tmp_path / "starved"
    source.write_text(STARVED)
    command = ["gcc", "-std=gnu11", "-O0", "-fopenmp", "-w", f"-I{CSRC}", str(source), "-o", str(program), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    allocations, levels = map(int, done.stdout.split())
    assert allocations > 20 and levels > 1
