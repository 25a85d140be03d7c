"""
Inside a pipeline and a grid search
===================================

Estimators are scikit-learn's kind: they go into pipelines, and grid searches reach their parameters, also those of an
objective inside `ComposedEmbedding`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifast import ComposedEmbedding
from manifast.objectives import Laplacian

X, y = load_breast_cancer(return_X_y=True)
pipeline = make_pipeline(
    StandardScaler(), ComposedEmbedding(Laplacian(), "projection", n_components=5), KNeighborsClassifier(5)
)
grid = {
    "composedembedding__objective__n_neighbors": [5, 10, 20, 40],
    "composedembedding__n_components": [2, 5, 10, 20],
}
search = GridSearchCV(pipeline, grid, cv=5).fit(X, y)
print(search.best_params_, f"{search.best_score_:.3f}")

# %%
# The accuracy of every cell.

scores = np.reshape(search.cv_results_["mean_test_score"], (4, 4))
figure, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
shown = ax.imshow(scores, cmap="viridis", origin="lower")
ax.set_xticks(range(4), [5, 10, 20, 40])
ax.set_yticks(range(4), [2, 5, 10, 20])
ax.set(xlabel="neighbours", ylabel="dimensions")
for row in range(4):
    for column in range(4):
        ax.text(column, row, f"{scores[row, column]:.3f}", ha="center", va="center", color="white")

# %%
# The pipeline itself. In a notebook its boxes link to the documentation of their estimators.

search.best_estimator_
