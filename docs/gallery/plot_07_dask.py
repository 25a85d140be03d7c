"""
Map a Dask array
================

`transform` of a Dask array is lazy, block by block, and gives the bits that the same rows give in memory. Without Dask
this example maps the blocks in a loop.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifast import Isomap
from manifast.datasets import make_s_curve

try:
    import dask.array as da
except ImportError:
    da = None
    print("Dask is not installed: the blocks are mapped in a loop")

X, chart = make_s_curve(60_000, noise=0.02, random_state=0)
model = Isomap(n_neighbors=12).fit(X[:1000])

if da is not None:
    lazy = model.transform(da.from_array(X, chunks=(7_000, 3)))
    print(lazy)
    mapped = lazy.compute()
else:
    mapped = np.vstack([model.transform(X[i : i + 7_000]) for i in range(0, len(X), 7_000)])
print("the bits of memory:", np.array_equal(mapped, model.transform(X)))

# %%
# All 60,000 rows, in the colour of their place along the S.

figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
ax.scatter(*mapped.T, c=chart[:, 0], s=1)
ax.set(xticks=[], yticks=[])
