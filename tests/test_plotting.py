"""Pictures: what is drawn, where, and that something can be seen."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

pytest.importorskip("matplotlib", reason="draws with matplotlib")

from manifast import NSSE, LaplacianEigenmaps
from manifast.plotting import (
    COLORS,
    plot_comparison,
    plot_embedding,
    plot_objective,
    plot_report,
    plot_spectrum,
)
from manifast.theory import generalization_report

X, y = load_iris(return_X_y=True)
NAMES = load_iris().target_names[y]
ROWS = [
    {"name": "PCA", "error": 0.09, "standard_error": 0.01, "fit_seconds": 0.004, "predict_seconds": 1e-5},
    {"name": "LFDA", "error": 0.05, "standard_error": 0.01, "fit_seconds": 1.5, "predict_seconds": 0.001},
    {"name": "broken", "error": None},
]


def pixels(ax):
    """The picture as an array of colours from 0 to 1, without transparency."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())[..., :3] / 255


def share_of(picture, color, within=0.12):
    from matplotlib.colors import to_rgb

    return float(np.mean(np.abs(picture - to_rgb(color)).max(axis=2) < within))


@pytest.fixture(scope="module")
def nsse():
    return NSSE(2).fit(X[::2], y[::2])


def test_embedding_draws_every_row_at_its_place(rng):
    Y, new = rng.standard_normal((30, 4)), rng.standard_normal((10, 4)) + 3
    labels, new_labels = np.repeat(["a", "b", "c"], 10), np.repeat(["c", "d"], 5)
    ax = plot_embedding(Y, labels, Y_new=new, labels_new=new_labels, components=(1, 3), title="rows")
    drawn = np.concatenate([collection.get_offsets() for collection in ax.collections])
    expected = np.concatenate([Y[:, [1, 3]], new[:, [1, 3]]])
    assert np.array_equal(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (expected >= low).all() and (expected <= high).all()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c", "d", "new rows"]
    assert ax.get_title() == "rows" and ax.get_xlabel() == "component 2" and ax.get_ylabel() == "component 4"
    colors = {collection.get_facecolor()[0][:3].tobytes() for collection in ax.collections}
    assert len(colors) == 4
    picture = pixels(ax)
    assert picture[0, 0].tolist() == [1, 1, 1]
    assert share_of(picture, COLORS[3]) > 5e-4  # d, among the new rows only


def test_names_stand_at_their_classes():
    digits, labels = load_digits(return_X_y=True)
    Y = np.stack([np.cos(2 * np.pi * labels / 10), np.sin(2 * np.pi * labels / 10)], axis=1)
    ax = plot_embedding(Y + 0.05 * digits[:, 20:22] / 16, labels)
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert set(places) == {str(digit) for digit in range(10)}
    for digit, place in places.items():
        angle = 2 * np.pi * int(digit) / 10
        np.testing.assert_allclose(place, [np.cos(angle), np.sin(angle)], atol=0.06)
    assert ax.get_legend() is None
    assert not plot_embedding(Y, labels, names="none").texts
    assert len({tuple(collection.get_facecolors()[0]) for collection in ax.collections}) == 10
    further = plot_embedding(Y, labels + 10 * (digits[:, 20] > 8))  # more classes than colours: two markers
    assert len({collection.get_paths()[0].vertices.shape for collection in further.collections}) == 2


def test_numbers_get_a_scale():
    ax = plot_embedding(X, X[:, 0])
    assert len(ax.figure.axes) == 2
    assert np.array_equal(ax.collections[0].get_array(), X[:, 0])
    both = plot_embedding(X[:50], X[:50, 0], Y_new=X[50:], labels_new=X[50:, 0])
    assert both.collections[0].get_clim() == both.collections[1].get_clim() == (X[:, 0].min(), X[:, 0].max())


def test_three_dimensions_and_one(rng):
    ax = plot_embedding(X, NAMES, components=(0, 1, 2))
    assert ax.name == "3d" and ax.get_zlabel() == "component 3"
    from matplotlib.figure import Figure

    given = Figure().add_subplot(projection="3d")
    assert plot_embedding(X, NAMES, ax=given) is given
    line = plot_embedding(X[:, :1], y)
    assert line.get_xlabel() == "row" and share_of(pixels(line), COLORS[0]) > 1e-3
    with pytest.raises(ValueError, match="ax must have projection '3d'"):
        plot_embedding(X, components=(0, 1), ax=given)


def test_images_are_drawn_apart():
    from matplotlib.offsetbox import AnnotationBbox

    digits = load_digits()
    Y = digits.data[:300, 18:20]
    boxes = [a for a in plot_embedding(Y, images=digits.images[:300]).artists if isinstance(a, AnnotationBbox)]
    places = np.array([box.xy for box in boxes]) / np.ptp(Y, axis=0)
    apart = np.abs(places[:, None] - places).max(axis=2) + np.eye(len(places))
    assert 10 < len(boxes) <= 60 and apart.min() >= 0.075 - 1e-12
    some = plot_embedding(Y, images=digits.images[:300], n_images=3)
    assert sum(isinstance(a, AnnotationBbox) for a in some.artists) == 3


def test_spectrum_marks_the_gap():
    values = [0.01, 0.02, 0.3, 0.31, 0.33]
    ax = plot_spectrum(values)
    assert np.array_equal(ax.lines[0].get_ydata(), values)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches[:4]], np.diff(values))
    assert ax.get_title() == "widest gap after 2 of 5"
    assert share_of(pixels(ax), COLORS[0]) > 1e-3
    assert plot_spectrum(values, n_components=3).get_title() == "gap after 3 of 5"
    model = LaplacianEigenmaps(4, n_neighbors=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert np.array_equal(plot_spectrum(model).lines[0].get_ydata(), model.eigenvalues_)


def test_comparison_puts_the_best_first():
    for given in (ROWS, SimpleNamespace(results=[SimpleNamespace(**row) for row in ROWS]), iter(ROWS)):
        ax = plot_comparison(given, title="iris")
        assert [label.get_text() for label in ax.get_yticklabels()] == ["LFDA", "PCA", "broken"]
    assert [round(bar.get_width(), 9) for bar in ax.patches] == [5, 9]
    written = [text.get_text() for text in ax.texts]
    assert "1.5 s + 1 ms" in written and "4 ms + 10 µs" in written and " —" in written
    low, high = ax.get_ylim()
    assert high < 0 and low > 2  # all rows inside, the best at the top
    assert share_of(pixels(ax), COLORS[0]) > 0.01


def test_report_shows_what_holds(nsse):
    report = generalization_report(nsse, X[::2], y[::2], X[1::2], y[1::2])
    ax = plot_report(report)
    assert len(ax.patches) == len(report.verdicts) == 4
    for bar, verdict in zip(ax.patches, report.verdicts, strict=True):
        end = bar.get_x() + bar.get_width()
        assert end == pytest.approx(2 * verdict.needed / verdict.margin)
        assert (end <= 1) == bool(verdict.bound.condition_holds)
    assert "Lipschitz constant" in ax.get_title() and "test error" in ax.get_title()
    met = _two_far_classes()
    ax = plot_report(met)
    assert met.verdicts[0].bound.condition_holds
    assert ax.patches[0].get_x() + ax.patches[0].get_width() <= 1
    assert any(text.get_text().startswith("met") for text in ax.texts)
    unknown = generalization_report(LaplacianEigenmaps(2, n_neighbors=60).fit(X[::2]), X[::2], y[::2])
    assert "not known" in plot_report(unknown).texts[0].get_text()


def _two_far_classes():
    from sklearn.decomposition import PCA

    from manifast import OutOfSample
    from manifast.extensions import RBF

    labels = np.repeat([0, 1], 100)
    rows = 10 * labels[:, None] + 0.1 * np.random.default_rng(0).random((200, 2))
    model = OutOfSample(PCA(n_components=1), extension=RBF(sigma=5.0, ridge=1.0)).fit(rows)
    return generalization_report(model, rows, labels)


def test_objective(nsse):
    ax = plot_objective(nsse)
    assert np.array_equal(ax.lines[0].get_ydata(), nsse.objective_history_)
    twin = next(other for other in ax.figure.axes if other is not ax)
    assert np.array_equal(twin.lines[0].get_ydata(), nsse.sigma_history_)
    assert share_of(pixels(ax), COLORS[0]) > 1e-4


def test_axes_that_are_given_are_used(nsse):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 9))
    grid = figure.subplots(2, 2).ravel()
    report = generalization_report(nsse, X[::2], y[::2])
    drawn = [
        plot_embedding(X, y, ax=grid[0]),
        plot_spectrum([1, 2, 4], ax=grid[1]),
        plot_comparison(ROWS, ax=grid[2]),
        plot_report(report, ax=grid[3]),
    ]
    assert all(one is other for one, other in zip(drawn, grid, strict=True))


@pytest.mark.process
def test_no_window_and_no_pyplot(run_python):
    code = (
        "import sys; from manifast.plotting import plot_spectrum; assert 'matplotlib' not in sys.modules\n"
        "plot_spectrum([1, 2, 4]).figure.savefig('a.png')\n"
        "print('matplotlib.pyplot' in sys.modules, open('a.png', 'rb').read(4)[1:4])"
    )
    assert run_python(code, DISPLAY="") == "False b'PNG'\n"


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"labels must hold one label per row, 150\. Got shape \(149,\)"):
        plot_embedding(X, y[1:])
    with pytest.raises(ValueError, match="Y_new must have 4 columns"):
        plot_embedding(X, Y_new=X[:, :2])
    with pytest.raises(ValueError, match="components must be 2 or 3 numbers from 0 to 3"):
        plot_embedding(X, components=(0, 9))
    with pytest.raises(ValueError, match="names must be"):
        plot_embedding(X, names="above")
    with pytest.raises(ValueError, match="images must have shape"):
        plot_embedding(X, images=np.ones((3, 2, 2)))
    with pytest.raises(ValueError, match="values must hold at least 2"):
        plot_spectrum([1.0])
    with pytest.raises(ValueError, match="n_components must be from 1 to 1"):
        plot_spectrum([1.0, 2.0], n_components=2)
    for bad in ([], [{"error": 1}], {"name": 1}, 3):
        with pytest.raises(ValueError, match="comparison must"):
            plot_comparison(bad)
    with pytest.raises(ValueError, match="model must be a fitted NSSE"):
        plot_objective(NSSE())
