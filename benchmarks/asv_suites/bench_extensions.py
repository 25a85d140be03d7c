"""Maps for new rows: fits, single rows and batches."""

from __future__ import annotations

import warnings

import numpy as np

from manifast import extensions

MAPS = {
    "Linear": {},
    "RBF": {},
    "RBF, leave-one-out": {"sigma": "loo", "sigma_grid": (0.5, 1.0, 2.0)},
    "KernelRidge": {},
    "Nystrom": {},
    "LatentVariable": {},
    "Reconstruction": {},
    "LandmarkIsomap": {},
    "SparseCode": {},
}


class Maps:
    params = (tuple(MAPS),)
    param_names = ("map",)

    def setup(self, name: str) -> None:
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(0)
        self.X, self.Y = rng.standard_normal((1000, 64)), rng.uniform(1, 2, (1000, 10))
        self.new = rng.standard_normal((100, 64))
        self.made = getattr(extensions, name.split(",")[0])(**MAPS[name])
        self.fitted = getattr(extensions, name.split(",")[0])(**MAPS[name]).fit(self.X, self.Y)

    def time_fit(self, name: str) -> None:
        self.made.fit(self.X, self.Y)

    def time_one_row(self, name: str) -> None:
        self.fitted.predict(self.new[:1])

    def time_100_rows(self, name: str) -> None:
        self.fitted.predict(self.new)
