"""Label propagation: fits on a Swiss roll and on digits, and predictions."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll

import manifast

MODELS = {
    "GFHF": {},
    "LGC": {},
    "RMGT": {},
    "LapRLS": {},
    "LapRLS, kernel": {"kernel": "rbf"},
    "FME": {},
    "FME, kernel": {"kernel": "rbf"},
    "TPTSSR": {"ridge": 1.0},
}


class Digits:
    params = (tuple(MODELS),)
    param_names = ("model",)

    def setup(self, name: str) -> None:
        warnings.simplefilter("ignore")
        X, y = load_digits(return_X_y=True)
        self.X, self.new = X[:1000], X[1000:1100]
        self.y = y[:1000] if name == "TPTSSR" else np.where(np.arange(1000) < 100, y[:1000], -1)
        self.made = getattr(manifast, name.split(",")[0])(**MODELS[name])
        self.fitted = getattr(manifast, name.split(",")[0])(**MODELS[name]).fit(self.X, self.y)

    def time_fit(self, name: str) -> None:
        self.made.fit(self.X, self.y)

    def time_100_rows(self, name: str) -> None:
        self.fitted.predict(self.new)


class SwissRoll:
    """Beyond the size where systems are factored."""

    params = (("GFHF", "LGC", "FME"), (40_000,))
    param_names = ("model", "n")

    def setup(self, name: str, n: int) -> None:
        self.X, t = make_swiss_roll(n, random_state=0)
        self.y = np.where(np.arange(n) < 100, (t > 9).astype(int), -1)

    def time_fit(self, name: str, n: int) -> None:
        getattr(manifast, name)().fit(self.X, self.y)
