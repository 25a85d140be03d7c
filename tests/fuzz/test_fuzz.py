"""The campaign finds what is planted: a crash, a hang, a wrong result, a leaked exception. And every entry is drawn."""

import inspect
import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("limits address space and reads /proc: Linux only", allow_module_level=True)

from tests.fuzz import __main__ as campaign
from tests.fuzz.arrays import Draw
from tests.fuzz.child import one
from tests.fuzz.entries import ENTRIES, NEEDS, WITHOUT
from tests.fuzz.judge import Failure, check_close, check_exception, check_finite, check_same
from tests.fuzz.parameters import POOLS
from tests.fuzz.trial import Trial

import manifast
from manifast import classifiers, embeddings, extensions, objectives, smoothers

pytestmark = pytest.mark.process
AT_THE_TOP = ("embeddings", "classifiers", "persistence")  # importable from manifast itself


def public_names():
    """All names of the API reference."""
    module, names = "", set()
    for line in (Path(__file__).parents[2] / "docs" / "api" / "index.rst").read_text().splitlines():
        if found := re.match(r"\.\. currentmodule:: manifast\.?(\S*)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            names.add(f"{module}.{found[1]}" if module else found[1])
    return names


def test_every_public_name_has_an_entry_or_a_reason():
    names, without = public_names(), {name for group in WITHOUT.values() for name in group}
    called = set(ENTRIES) | {name.partition(".")[2] for name in ENTRIES if name.split(".")[0] in AT_THE_TOP}
    assert len(names) > 150
    assert names - without - called == set()
    assert without - names == set()
    assert without & set(ENTRIES) == set()
    # The reference itself forgets no estimator and no kernel.
    modules = (manifast.embeddings, manifast.classifiers, manifast.kernels)
    assert {name for module in modules for name in module.__all__} <= {name.rpartition(".")[2] for name in names}


def test_every_parameter_has_values():
    classes = [getattr(module, name) for module in (embeddings, classifiers, extensions, objectives, smoothers)
               for name in module.__all__ if isinstance(getattr(module, name), type)]  # fmt: skip
    by_hand = {"embedder", "basis", "objective", "name"}
    for cls in classes:
        if cls is not objectives.Objective:
            assert set(inspect.signature(cls).parameters) - set(POOLS) - by_hand == set(), cls


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_returns_now_and_then(name):
    """An entry that is always refused tests nothing."""
    if (needed := NEEDS.get(name)) and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    for seed in range(400):
        trial = Trial(Draw(np.random.default_rng([seed, 1])), name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ENTRIES[name][1](trial)
        if trial.returned:
            return
    pytest.fail(f"{name} never returns")



def test_a_seed_is_a_call():
    assert one(11).name == one(11).name
    assert len({one(seed).name for seed in range(40)}) > 8


def test_planted_failures_are_seen():
    with pytest.raises(Failure, match="KeyError"):
        check_exception(KeyError("inside"))
    with pytest.raises(Failure, match="not finite"):
        check_finite((np.zeros(2), np.array([1.0, np.nan])))
    with pytest.raises(Failure, match="other bits"):
        check_same(np.array([1.0]), np.array([1.0 + 2e-16]), "")
    with pytest.raises(Failure, match="instead of"):
        check_close(np.array([1.0]), np.array([1.1]), 1e-3, "x")
    trial = Trial(Draw(np.random.default_rng(0)), "planted")
    with pytest.raises(Failure, match="was changed"):
        trial.run(lambda x: x.fill(0), np.ones(3))
    trial.draw.must_fail = True
    with pytest.raises(Failure, match="without a word"):
        trial.run(lambda x: x, np.ones(3))


def test_a_crash_is_reported_with_its_seed(monkeypatch, tmp_path):
    crash = "import mmap, os, sys; f = open(sys.argv[5], 'r+b'); m = mmap.mmap(f.fileno(), 16); " \
            "m[:8] = (77).to_bytes(8, 'little'); os.abort()"  # fmt: skip
    original = campaign.subprocess.Popen
    monkeypatch.setattr(
        campaign.subprocess, "Popen", lambda command, **rest: original([command[0], "-c", crash, *command[3:]], **rest)
    )
    _, last, ended = campaign.run_child(70, 10, 5.0, 6.0, False)
    assert last == 77
    assert "ended with -6" in ended


def test_a_call_without_end_is_ended(monkeypatch):
    """By processor time, which a busy machine does not stretch."""
    original = campaign.subprocess.Popen
    monkeypatch.setattr(campaign, "LONGEST", 1.0)
    monkeypatch.setattr(
        campaign.subprocess, "Popen", lambda command, **rest: original([command[0], "-c", "while True: pass"], **rest)
    )
    _, _, ended = campaign.run_child(70, 10, 5.0, 6.0, False)
    assert "more than 1 s" in ended
