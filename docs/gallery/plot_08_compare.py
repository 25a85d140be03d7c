"""
Choose a method by comparing them on your data
==============================================

`compare` fits every method inside each fold, on its training rows only, and puts scikit-learn's own baselines into the
same table. `best_estimator_` is fitted to all rows and ready to use.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from manifast.model_selection import compare
from manifast.plotting import plot_comparison

X, y = load_wine(return_X_y=True)
table = compare(X, y, cv=5)
table

# %%
# The same as a picture. Dark bars are within one standard error of the best: between those the data do not decide.

figure, ax = plt.subplots(figsize=(8, 6.2), layout="constrained")
plot_comparison(table, ax=ax)
