"""
Label a thousand rows from forty labels
=======================================

Somebody has named 40 of 1000 digits. Label propagation (`GFHF`, `LGC`, `RMGT`) also looks at the 960 others, and names
new digits better than what looks at the 40 alone. `FME`, whose map is linear here, does not. Unlabelled rows carry -1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from manifast import FME, GFHF, LGC, RMGT, ElasticEmbedding
from manifast.plotting import plot_embedding

X, y = load_digits(return_X_y=True)
train, new = X[:1000], X[1000:]
few = np.full(1000, -1)
few[:40] = y[:40]

# %%
# Two that see only the 40, and four that see all 1000 rows.

scores = {
    "1-NN, 40 rows": KNeighborsClassifier(1).fit(train[:40], y[:40]).score(new, y[1000:]),
    "SVC, 40 rows": SVC(C=10).fit(train[:40], y[:40]).score(new, y[1000:]),
}
for method in (GFHF(), LGC(), RMGT(), FME()):
    scores[f"{type(method).__name__}, all rows"] = method.fit(train, few).score(new, y[1000:])

figure, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
ax.barh(list(scores), list(scores.values()), color=["#9DB8CC"] * 2 + ["#0072B2"] * 4)
ax.invert_yaxis()
ax.set(xlabel="accuracy on 797 new digits", xlim=(0.5, 1))
for place, value in enumerate(scores.values()):
    ax.text(value + 0.005, place, f"{value:.2f}", va="center")

# %%
# `ElasticEmbedding` embeds from the same 40 labels. The picture shows new digits.

elastic = ElasticEmbedding(9, kernel="rbf").fit(train, few)
figure, ax = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
plot_embedding(elastic, Y_new=elastic.transform(new), labels_new=y[1000:], names="inside", ax=ax)
