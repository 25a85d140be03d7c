"""Speed of l1_code over time: faces-like data, with and without errors, several penalties, one sample and batches."""

import numpy as np

from manifast.kernels import l1_code


def low_rank_faces(atoms, samples, p, rank=30, seed=0):
    """Unit rows near a low-dimensional subspace with a common direction, as images of faces are."""
    rng = np.random.default_rng(seed)
    spectrum = 1.0 / np.arange(1, rank + 1)
    factors = rng.standard_normal((atoms + samples, rank)) * spectrum
    factors[:, 0] += 1.5
    data = factors @ np.linalg.qr(rng.standard_normal((p, rank)))[0].T
    data += 0.05 / np.sqrt(p) * rng.standard_normal(data.shape) * np.linalg.norm(data, axis=1, keepdims=True)
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    return np.ascontiguousarray(data[:atoms]), np.ascontiguousarray(data[atoms:])


class Batch:
    params = ([True, False], [0.0, 1e-2], [1, 2])
    param_names = ("errors", "lam", "threads")

    def setup(self, errors, lam, threads):
        self.dictionary, self.samples = low_rank_faces(600, 32, 100)

    def time_l1_code(self, errors, lam, threads):
        l1_code(self.samples, self.dictionary, errors=errors, lam=lam, n_threads=threads)


class OneSample:
    params = ([200, 2000], [50, 200])
    param_names = ("atoms", "p")

    def setup(self, atoms, p):
        self.dictionary, self.samples = low_rank_faces(atoms, 1, p)

    def time_l1_code(self, atoms, p):
        l1_code(self.samples, self.dictionary, n_threads=1)


class LeaveOneOut:
    def setup(self):
        self.dictionary, _ = low_rank_faces(300, 1, 60)
        self.exclude = np.arange(300)

    def time_l1_graph_codes(self):
        l1_code(self.dictionary, self.dictionary, exclude=self.exclude, n_threads=1)
