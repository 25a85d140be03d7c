"""
Embed a file that does not fit into memory
==========================================

Draw a sample in one pass, fit to it, and map the file to a file in bounded memory. `transform_to` goes on where it was
stopped. Here the file has 200,000 rows, so that the example is quick; nothing in it depends on that number.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from manifast import Isomap
from manifast.datasets import make_swiss_roll
from manifast.scale import sample_rows, transform_to

folder = Path(tempfile.mkdtemp())
rows, chart = make_swiss_roll(200_000, noise=0.05, random_state=0)
np.save(folder / "rows.npy", rows)

sample = sample_rows(folder / "rows.npy", 1000)
model = Isomap(n_neighbors=10).fit(sample)

begin = time.perf_counter()
transform_to(model, folder / "rows.npy", folder / "mapped.npy")
print(f"200,000 rows in {time.perf_counter() - begin:.1f} s")

mapped = np.load(folder / "mapped.npy", mmap_mode="r")
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ax.scatter(*mapped[::10].T, c=chart[::10, 0], s=1)
ax.set(xticks=[], yticks=[], title="every tenth of 200,000 rows, placed from a sample of 1000")
