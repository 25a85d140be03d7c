"""
Place images with damaged pixels
================================

New digits lose an eighth of their pixels to black or white dots. The map by sparse codes codes each of them by training
rows *and* single pixels, so that the damage has somewhere to go (`errors=True`). It
loses least by the damage; the mean of the nearest rows ("lvm"), which starts higher, still ends a little above it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from manifast import LaplacianEigenmaps

X, y = load_digits(return_X_y=True)
train, clean, truth = X[:600], X[600:1000], y[600:1000]
rng = np.random.default_rng(0)
damaged = np.where(rng.random(clean.shape) < 1 / 8, rng.choice([0.0, 16.0], clean.shape), clean)

figure, axes = plt.subplots(2, 8, figsize=(8, 2.2), layout="constrained")
for column in range(8):
    for ax, image in zip(axes[:, column], (clean[column], damaged[column]), strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()

# %%
# The same embedding with five maps: accuracy of the nearest neighbour among clean and damaged new digits.

names = ["nystrom", "lvm", "reconstruction", "rbf", "sparse"]
scores = []
for name in names:
    model = LaplacianEigenmaps(9, affinity="full", extension=name).fit(train)
    nearest = KNeighborsClassifier(1).fit(model.embedding_, y[:600])
    scores.append([nearest.score(model.transform(rows), truth) for rows in (clean, damaged)])
scores = np.array(scores)
place = np.arange(len(names))
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.bar(place - 0.2, scores[:, 0], 0.38, label="clean", color="#9DB8CC")
ax.bar(place + 0.2, scores[:, 1], 0.38, label="damaged", color="#0072B2")
ax.set_xticks(place, names)
ax.set(ylim=(0.5, 1), ylabel="accuracy")
ax.legend(frameon=False, ncols=2)
