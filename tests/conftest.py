"""Fixtures shared by all tests."""

import numpy as np
import pytest

from manifast._core import dispatch


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=dispatch.levels())
def level(request):
    """Every instruction set this machine runs, one after the other."""
    dispatch.use(request.param)
    yield request.param
    dispatch.use("auto")


@pytest.fixture(scope="session")
def digits():
    from sklearn.datasets import load_digits

    return load_digits().data
