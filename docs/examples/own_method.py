"""A method of one's own in one file: supervised LTSA with the ridge of elastic embedding."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from manifast import ComposedEmbedding
from manifast.graphs import nearest
from manifast.objectives import ObjectiveBuilder
from manifast.objectives.formulas import alignment
from manifast.smoothers import Ridge


class SupervisedLTSA(ObjectiveBuilder):
    """Tangent spaces of neighbours of the same class; each clique is a row and its nearest of its class."""

    supervised = True

    def __init__(self, n_neighbors=12):
        self.n_neighbors = n_neighbors

    def build(self, rows, labels, d):
        cliques = np.empty((rows.n, self.n_neighbors), dtype=np.int64)
        for members in labels.members:
            others = nearest(rows.X[members], self.n_neighbors - 1)[1]
            cliques[members] = np.column_stack([members, members[others]])
        return alignment(rows.X, cliques, bridges=np.empty((0, 2), dtype=np.int64), dim=d)


def main():
    X, y = load_digits(return_X_y=True)
    model = ComposedEmbedding(SupervisedLTSA(12), Ridge(1.0, ridge=10.0), n_components=9).fit(X[:1000], y[:1000])
    nearest_class = KNeighborsClassifier(1).fit(model.transform(X[:1000]), y[:1000])
    return nearest_class.score(model.transform(X[1000:]), y[1000:])


if __name__ == "__main__":
    print(f"accuracy on new digits: {main():.3f}")
