"""
Watch NSSE learn its width
==========================

NSSE learns the embedding, the width σ of the Gaussian map and its coefficients together. `plot_objective` shows how it
got where it is.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from manifast import NSSE
from manifast.plotting import plot_embedding, plot_objective

X, y = load_digits(n_class=6, return_X_y=True)
model = NSSE(5).fit(X[:500], y[:500])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
plot_objective(model, ax=left)
plot_embedding(model, y[:500], Y_new=model.transform(X[500:]), labels_new=y[500:], names="inside", ax=right)
