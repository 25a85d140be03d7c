"""
Recognise people who came after training
========================================

Forty people are drawn, each in twenty poses and lights. The embedding learns from thirty of them what tells people
apart. The other ten were not there: each hands in one picture, and the nineteen others are matched to the nearest of
these ten. A projection by labels (`LDE`, `LFDA`) carries over to new people, since it learns which directions of the
pictures are pose and light.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifast import LDE, LFDA
from manifast.kernels import knn

SIDE = 24
grid = np.linspace(-1, 1, SIDE)
across, down = np.meshgrid(grid, grid)


def spot(x, y, width, height):
    return np.exp(-(((across - x) / width) ** 2) - ((down - y) / height) ** 2)


def face(person, turn, light):
    """A head, two eyes, a nose and a mouth, turned and lit from a side."""
    shift = 0.18 * turn
    head = 1 / (1 + np.exp(12 * ((across / person[0]) ** 2 + (down / person[1]) ** 2 - 1)))
    eyes = sum(spot(side * person[2] + shift, -0.25, person[3], 0.09) for side in (-1, 1))
    mouth = spot(shift, 0.45, person[4], person[5])
    nose = spot(1.5 * shift, 0.1, 0.07, person[6])
    return head * (1 + 0.5 * light * across) - 0.7 * eyes - 0.6 * mouth - 0.3 * nose


rng = np.random.default_rng(0)
low = np.array([0.62, 0.78, 0.24, 0.10, 0.14, 0.05, 0.12])
high = np.array([0.82, 0.95, 0.38, 0.20, 0.36, 0.12, 0.28])
people = low + (high - low) * rng.random((40, 7))
pictures = np.array([face(p, *rng.uniform(-1, 1, 2)) for p in people for _ in range(20)])
pictures += 0.05 * rng.standard_normal(pictures.shape)
X, who = pictures.reshape(len(pictures), -1), np.repeat(np.arange(40), 20)

# %%
# Four people in six poses and lights.

figure, axes = plt.subplots(4, 6, figsize=(6, 4.2), layout="constrained")
for row in range(4):
    for column in range(6):
        axes[row, column].imshow(pictures[20 * row + column], cmap="gray")
        axes[row, column].set_axis_off()

# %%
# Fit to 30 people; match the other 10.

train, new = who < 30, who >= 30
first = np.flatnonzero(new)[::20]
others = np.setdiff1d(np.flatnonzero(new), first)


def share_right(rows):
    _, nearest = knn(rows[first], 1, queries=rows[others])
    return float(np.mean(who[first][nearest[:, 0]] == who[others]))


scores = {"pixels": share_right(X)}
for method in (LDE(15), LFDA(15)):
    scores[type(method).__name__] = share_right(method.fit(X[train], who[train]).transform(X))
figure, ax = plt.subplots(figsize=(5.5, 2.2), layout="constrained")
ax.barh(list(scores), list(scores.values()), color=["#9DB8CC", "#0072B2", "#0072B2"])
ax.invert_yaxis()
ax.set(xlabel="share of pictures matched to the right new person", xlim=(0, 1.1))
for place, value in enumerate(scores.values()):
    ax.text(value + 0.01, place, f"{value:.2f}", va="center")
