"""
Embed words by how they are spelt
=================================

Rows need not be vectors: `metric="precomputed"` takes distances. New words are placed by their distances to the words
that were there.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifast import ClassicalMDS

groups = {
    "stat": "static state statue station statistic estate status",
    "graph": "graph graphs graphic paragraph grapher telegraph digraph",
    "light": "light lights lighter slight flight delight moonlight",
}
later = {"stat": "stately statute", "graph": "autograph graphite", "light": "sunlight plight"}


def edits(a, b):
    """Letters to put in, take out or change (Levenshtein)."""
    row = np.arange(len(b) + 1)
    for i, one in enumerate(a, 1):
        before, row[0] = row.copy(), i
        for j, other in enumerate(b, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one != other))
    return float(row[-1])


words = [word for group in groups.values() for word in group.split()]
new = [word for group in later.values() for word in group.split()]
model = ClassicalMDS(metric="precomputed").fit(np.array([[edits(a, b) for b in words] for a in words]))
mapped = model.transform(np.array([[edits(a, b) for b in words] for a in new]))

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for place, word in zip(model.embedding_, words, strict=True):
    ax.text(*place, word, ha="center", color="0.45")
for place, word in zip(mapped, new, strict=True):
    ax.text(*place, word, ha="center", color="#D55E00", weight="bold")
both = np.vstack([model.embedding_, mapped])
ax.set(xlim=(both[:, 0].min() - 1, both[:, 0].max() + 1), ylim=(both[:, 1].min() - 1, both[:, 1].max() + 1))
ax.set(xticks=[], yticks=[], title="grey: 21 words that were there; orange: 6 that came later")
