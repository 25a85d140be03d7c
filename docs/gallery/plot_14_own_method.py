"""
A method of your own in 25 lines
================================

An objective says which rows belong together; everything else (solver, map, `transform`, cloning, grid searches) is
there. This one is LTSA with neighbours of the same class only, combined with the ridge of elastic embedding.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifast import ComposedEmbedding
from manifast.graphs import nearest
from manifast.objectives import ObjectiveBuilder
from manifast.objectives.formulas import alignment
from manifast.plotting import plot_embedding
from manifast.smoothers import Ridge


class SupervisedLTSA(ObjectiveBuilder):
    """Tangent spaces of neighbours of the same class."""

    supervised = True

    def __init__(self, n_neighbors=12):
        self.n_neighbors = n_neighbors

    def build(self, rows, labels, d):
        cliques = np.empty((rows.n, self.n_neighbors), dtype=np.int64)
        for members in labels.members:
            others = nearest(rows.X[members], self.n_neighbors - 1)[1]
            cliques[members] = np.column_stack([members, members[others]])
        return alignment(rows.X, cliques, bridges=np.empty((0, 2), dtype=np.int64), dim=d)


X, y = load_digits(n_class=6, return_X_y=True)
model = ComposedEmbedding(SupervisedLTSA(12), Ridge(1.0, ridge=10.0), n_components=5).fit(X[:600], y[:600])

figure, ax = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
plot_embedding(model.transform(X[:600]), Y_new=model.transform(X[600:]), labels_new=y[600:], ax=ax)
