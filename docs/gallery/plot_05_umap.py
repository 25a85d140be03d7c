"""
Give UMAP or t-SNE a map
========================

`OutOfSample` keeps the picture that UMAP or t-SNE drew of the training rows and adds a map: a new row always lands at
the same place, alone or in any batch. Where umap-learn is not installed this example takes scikit-learn's t-SNE.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from manifast import OutOfSample
from manifast.plotting import plot_embedding

try:
    from umap import UMAP

    embedder = UMAP(random_state=0, n_jobs=1)
except ImportError:
    print("umap-learn is not installed: t-SNE takes its place")
    embedder = TSNE(random_state=0, max_iter=500)

X, y = load_digits(return_X_y=True)
model = OutOfSample(embedder).fit(X[:800])
mapped = model.transform(X[800:])

figure, ax = plt.subplots(figsize=(7, 5.2), layout="constrained")
plot_embedding(model, y[:800], Y_new=mapped, labels_new=y[800:], names="inside", ax=ax)

# %%
# One row alone and the same row among others have the same bits.

print(np.array_equal(model.transform(X[800:801]), mapped[:1]))
