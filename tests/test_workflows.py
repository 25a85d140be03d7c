"""The workflows of the repository: actions pinned by hash, tools with bounds, and scripts that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not beside the tests")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_and_name_their_version(path):
    used = re.findall(r"uses: *(.*)", path.read_text())
    assert used
    for action in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*", action), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_tools_have_an_upper_bound(path):
    for line in re.findall(r"pip install (.*)", path.read_text()):
        for need in re.findall(r'"([^"$]+)"', line.partition("&&")[0]):
            assert need.startswith(".[") or "<" in need, need
        bare = re.sub(r'"[^"]*"', "", line.partition("&&")[0]).split()
        assert all(word.startswith("-C") for word in bare), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_scripts_that_are_called_exist(path):
    called = re.findall(r"(?:bash|python) ((?:\.ci|benchmarks|docs)/\S+)", path.read_text())
    assert all((ROOT / script).is_file() for script in called), called
