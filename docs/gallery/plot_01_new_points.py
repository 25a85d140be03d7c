"""
Place points that came later
============================

A sheet is rolled up in three dimensions. Five methods unroll 1000 points of it, and then place 1000 points that they
have never seen. None of them is fitted again for that: ``transform`` is a map. R² says how well the true coordinates of
the new points follow from where they were placed.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LinearRegression

import manifast
from manifast.datasets import make_swiss_roll

X, chart = make_swiss_roll(1000, random_state=0)
new, new_chart = make_swiss_roll(1000, random_state=1)

# %%
# The sheet as it comes: training points in grey, new points in the colour of their place along the roll.

figure = plt.figure(figsize=(5, 4))
axes = figure.add_subplot(projection="3d")
axes.scatter(*X.T, color="0.8", s=3)
axes.scatter(*new.T, c=new_chart[:, 0], s=6)
axes.view_init(8, -75)
axes.set_axis_off()

# %%
# The same points after each method.

methods = [
    manifast.LaplacianEigenmaps(n_neighbors=8),
    manifast.LocallyLinearEmbedding(n_neighbors=8),
    manifast.Isomap(n_neighbors=8),
    manifast.LTSA(n_neighbors=8),
    manifast.LGRM(n_neighbors=8, sigma=10.0),
]
figure, all_axes = plt.subplots(1, 5, figsize=(13, 2.9), layout="constrained")
for ax, method in zip(all_axes, methods, strict=True):
    mapped = method.fit(X).transform(new)
    score = LinearRegression().fit(method.embedding_, chart).score(mapped, new_chart)
    ax.scatter(*method.embedding_.T, color="0.85", s=3)
    ax.scatter(*mapped.T, c=new_chart[:, 0], s=5)
    ax.set(title=f"{type(method).__name__}\nR² of new points {score:.4f}", xticks=[], yticks=[])
    ax.title.set_fontsize(9)

# %%
# LTSA and LGRM keep the sheet nearly to scale; Isomap nearly; LLE and Laplacian eigenmaps keep who is next to whom, and
# bend the rest.
