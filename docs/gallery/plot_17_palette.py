"""
Sort the colours of a photograph
================================

A curve through the colours of a photograph, learnt from 1500 pixels, puts all its 273,280 pixels in order: a palette
without a choice of clusters. The same curve gives every pixel one number.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from manifast import DiffusionMaps
from manifast.scale import sample_rows

photo = load_sample_image("flower.jpg") / 255.0
pixels = photo.reshape(-1, 3)
model = DiffusionMaps(1, n_neighbors=30).fit(np.unique(sample_rows(pixels, 1500), axis=0))
place = model.transform(pixels)[:, 0]
order = np.argsort(place)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].imshow(photo)
axes[1].imshow(place.reshape(photo.shape[:2]), cmap="magma")
for ax in axes:
    ax.set_axis_off()

# %%
# All pixels in the order of the curve.

figure, ax = plt.subplots(figsize=(10, 1.2), layout="constrained")
ax.imshow(pixels[order][:: len(order) // 1000][None, :1000], aspect="auto")
ax.set_axis_off()
