"""
How many dimensions, how many neighbours?
=========================================

Three views of the same question: gaps between eigenvalues, how well neighbours are kept, and the error of what you want
to do with the embedding. The last one decides where there is such a thing.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from manifast import LaplacianEigenmaps
from manifast.metrics import trustworthiness
from manifast.plotting import plot_spectrum

X, y = load_digits(return_X_y=True)
train, new = X[:900], X[900:]

model = LaplacianEigenmaps(15, n_neighbors=10).fit(train)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
plot_spectrum(model, ax=ax)

# %%
# The widest gap is after the eleventh eigenvalue. The measures on new rows say the same more cheaply: most is gained by
# five dimensions, and little after nine; the number of neighbours hardly matters here.

dimensions = [1, 2, 3, 5, 7, 9, 12, 15]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for k in (8, 20, 40):
    trust, error = [], []
    for d in dimensions:
        model = LaplacianEigenmaps(d, n_neighbors=k).fit(train)
        mapped = model.transform(new)
        trust.append(trustworthiness(train, model.embedding_, 10, X_new=new, Y_new=mapped))
        nearest = KNeighborsClassifier(1).fit(model.embedding_, y[:900])
        error.append(100 * (1 - nearest.score(mapped, y[900:])))
    left.plot(dimensions, trust, "o-", label=f"{k} neighbours")
    right.plot(dimensions, error, "o-")
left.set(xlabel="dimensions", ylabel="trustworthiness of new rows")
right.set(xlabel="dimensions", ylabel="1-NN error of new rows, %", ylim=(0, None))
left.legend(frameon=False)
