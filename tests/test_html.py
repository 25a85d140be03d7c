"""What notebooks show: estimators with a link to our documentation, and reports as tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifast import FME, NSSE, LaplacianEigenmaps, extensions, model_selection, objectives
from manifast._links import DOCUMENTATION
from manifast.theory import generalization_report

PAGES = [
    (LaplacianEigenmaps(), "manifast.LaplacianEigenmaps"),
    (NSSE(), "manifast.NSSE"),
    (FME(), "manifast.FME"),
    (extensions.RBF(), "manifast.extensions.RBF"),
    (objectives.Laplacian(), "manifast.objectives.Laplacian"),
    (model_selection.LabeledRows(FME()), "manifast.model_selection.LabeledRows"),
]


@pytest.mark.parametrize("estimator, page", PAGES, ids=lambda value: value if isinstance(value, str) else "")
def test_estimators_link_to_their_page(estimator, page):
    assert f'href="{DOCUMENTATION}/api/{page}.html"' in estimator._repr_html_()


def test_a_pipeline_links_to_both_projects():
    shown = make_pipeline(StandardScaler(), LaplacianEigenmaps())._repr_html_()
    assert f"{DOCUMENTATION}/api/manifast.LaplacianEigenmaps.html" in shown and "scikit-learn.org" in shown


def test_a_class_of_the_users_own_links_nowhere():
    class Own(LaplacianEigenmaps):
        __module__ = "elsewhere"

    assert DOCUMENTATION not in Own()._repr_html_()


def test_fitted_estimators_say_so(rng):
    model = LaplacianEigenmaps(n_neighbors=20)
    assert "Not fitted" in model._repr_html_()
    shown = model.fit(rng.random((50, 3)))._repr_html_()
    assert "Fitted" in shown and "Not fitted" not in shown


def test_reports_are_tables():
    y = np.repeat([0, 1], 50)
    X = 10 * y[:, None] + np.random.default_rng(0).random((100, 2))
    report = generalization_report(NSSE(1).fit(X, y), X, y)
    shown = report._repr_html_()
    assert shown.count("<tr>") == len(report._lines()) and "Theorem 6" in shown
    assert "<=" not in shown  # conditions are escaped
