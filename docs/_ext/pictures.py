"""One small picture per estimator, drawn when the site is built: training rows in grey, new rows in colour."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

SIZE = (4.2, 3.2)


def unlabelled() -> dict[str, Any]:
    import manifast

    near = {"n_neighbors": 10}
    return {
        "LaplacianEigenmaps": manifast.LaplacianEigenmaps(**near),
        "DiffusionMaps": manifast.DiffusionMaps(**near),
        "LocallyLinearEmbedding": manifast.LocallyLinearEmbedding(**near),
        "LTSA": manifast.LTSA(**near),
        "LocalRegressionEmbedding": manifast.LocalRegressionEmbedding(**near),
        "Isomap": manifast.Isomap(**near),
        "ClassicalMDS": manifast.ClassicalMDS(),
        "LGRM": manifast.LGRM(sigma=10.0, **near),
        "LPP": manifast.LPP(**near),
        "NPE": manifast.NPE(**near),
        "LLTSA": manifast.LLTSA(**near),
        "SpectralRegression": manifast.SpectralRegression(kernel="rbf", **near),
        "ComposedEmbedding": manifast.ComposedEmbedding("ltsa", "kernel_ridge"),
    }


def labelled() -> dict[str, Any]:
    import manifast

    names = [
        "NSSE",
        "SupervisedLaplacianEigenmaps",
        "FisherEmbedding",
        "LabelEncoding",
        "LDE",
        "LFDA",
        "SupervisedIsomap",
    ]
    return {name: getattr(manifast, name)(2) for name in names}


def partly_labelled() -> dict[str, Any]:
    import manifast

    return {name: getattr(manifast, name)(2) for name in ("ElasticEmbedding", "SDA", "SDE", "TCA")}


def draw_all(folder: Path) -> None:
    """Draw what is not there yet, or older than this file."""
    import matplotlib.pyplot as plt
    import numpy as np
    from sklearn.datasets import load_digits

    from manifast.datasets import make_swiss_roll
    from manifast.plotting import plot_embedding

    folder.mkdir(exist_ok=True)
    roll, chart = make_swiss_roll(3000, random_state=0)
    digits, y = load_digits(n_class=5, return_X_y=True)
    few = np.where(np.arange(500) < 40, y[:500], -1)
    jobs = [
        (unlabelled(), roll[:1500], None, roll[1500:], chart[1500:, 0]),
        (labelled(), digits[:500], y[:500], digits[500:], y[500:]),
        (partly_labelled(), digits[:500], few, digits[500:], y[500:]),
    ]
    for models, X, labels, new, shown in jobs:
        for name, model in models.items():
            path = folder / f"{name}.png"
            if path.exists() and path.stat().st_mtime > Path(__file__).stat().st_mtime:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, labels)
                mapped = model.transform(new)
            figure, ax = plt.subplots(figsize=SIZE, layout="constrained")
            if shown.dtype.kind == "f":
                ax.scatter(*model.embedding_.T, s=6, color="0.85", linewidths=0)
                ax.scatter(*mapped.T, s=6, c=shown, linewidths=0)
                ax.set_xticks([])
                ax.set_yticks([])
                ax.spines[["top", "right"]].set_visible(False)
            else:
                plot_embedding(model.embedding_, Y_new=mapped, labels_new=shown, names="inside", ax=ax)
            ax.set_xlabel("")
            ax.set_ylabel("")
            figure.savefig(path, dpi=110, facecolor="white")
            plt.close(figure)


def setup(app: Any) -> dict[str, bool]:
    # Before autosummary writes the pages that show the pictures.
    app.connect("builder-inited", lambda app: draw_all(Path(app.srcdir) / "_pictures"), priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
