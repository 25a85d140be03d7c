"""
Watch a sensor stream
=====================

A machine hums at a speed that changes. Windows of its signal lie on a curve. The curve is learnt from the first
minutes; afterwards every new window is placed on it as it arrives, one row at a time, and how far it is from all
known windows says whether the machine does something it never did.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from manifast import Isomap
from manifast.kernels import knn

rng = np.random.default_rng(0)
steps, width = 12_000, 40
speed = 0.15 + 0.05 * np.sin(np.arange(steps) / 900)
signal = np.sin(np.cumsum(speed)) + 0.02 * rng.standard_normal(steps)
signal[9000:9600] += 0.6 * np.sin(np.cumsum(2.7 * speed))[9000:9600]  # a bearing fails for a while
windows = np.lib.stride_tricks.sliding_window_view(signal, width)[::8].copy()
spectra = np.abs(np.fft.rfft(windows * np.hanning(width)))[:, 1:]
train, stream = spectra[:900], spectra[900:]

# %%
# Learn from the first 900 windows, then take the stream row by row.

model = Isomap(2, n_neighbors=12).fit(train)
begin = time.perf_counter()
placed = np.array([model.transform(row[None])[0] for row in stream])
per_row = (time.perf_counter() - begin) / len(stream)
apart = knn(train, 1, queries=stream)[0][:, 0]
limit = 3 * np.quantile(knn(train, 1)[0][:, 0], 0.99)
print(f"{1e6 * per_row:.0f} µs per window; alarm in {np.sum(apart > limit)} of {len(stream)} windows")

# %%
# Colour is time. The red rows are those far from everything learnt.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
left.scatter(*model.embedding_.T, s=8, color="0.85")
usual = apart <= limit
left.scatter(*placed[usual].T, s=8, c=np.flatnonzero(usual))
left.scatter(*placed[~usual].T, s=14, color="#D55E00", marker="x")
left.set(title="where new windows land", xticks=[], yticks=[])
right.plot(apart, linewidth=0.8)
right.axhline(limit, color="#D55E00")
right.set(xlabel="window of the stream", ylabel="distance to the nearest known window")
