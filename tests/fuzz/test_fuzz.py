"""The campaign finds what is planted: a crash, a hang, a wrong result, a leaked exception. And every entry is drawn."""

import numpy as np
import pytest
from tests.fuzz import __main__ as campaign
from tests.fuzz.arrays import Draw
from tests.fuzz.child import one
from tests.fuzz.entries import ENTRIES, Trial
from tests.fuzz.judge import Failure, check_close, check_exception, check_finite, check_same

import manifast

pytestmark = pytest.mark.process


def test_every_estimator_and_kernel_has_an_entry():
    names = {name.partition(".")[2] for name in ENTRIES}
    public = {*manifast.embeddings.__all__, *manifast.classifiers.__all__, *manifast.kernels.__all__}
    missing = public - names
    assert missing == {"expected_failed_checks"}


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
