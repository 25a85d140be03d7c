"""
Objectives times smoothers
==========================

Rows are objectives (what to keep), columns are smoothers (what keeps the embedding predictable for new rows). Grey are
training rows, colours are new ones. Several of these pictures have names: "laplacian" with "projection" is LPP, "lle"
with "projection" NPE, "local_regression" with "kernel_ridge" LGRM. The others come for free.
"""

import matplotlib.pyplot as plt

from manifast import ComposedEmbedding
from manifast.datasets import make_s_curve
from manifast.objectives import Laplacian

X, chart = make_s_curve(800, random_state=0)
train, new = X[:500], X[500:]
objectives = {
    "laplacian": Laplacian(constraint="identity"),  # Y'Y = I, which the smoother "gaussian" needs
    "lle": "lle",
    "ltsa": "ltsa",
    "local_regression": "local_regression",
}
smoothers = [None, "projection", "kernel_ridge", "gaussian"]

figure, axes = plt.subplots(4, 4, figsize=(10, 9), layout="constrained")
for row, (name, objective) in zip(axes, objectives.items(), strict=True):
    for ax, smoother in zip(row, smoothers, strict=True):
        model = ComposedEmbedding(objective, smoother).fit(train)
        ax.scatter(*model.embedding_.T, s=5, color="0.85")
        ax.scatter(*model.transform(new).T, s=7, c=chart[500:, 0])
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{name} × {smoother or 'none'}", fontsize=9)
