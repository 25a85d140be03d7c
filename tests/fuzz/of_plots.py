"""Calls of what draws, and of what reads images from files that anybody may have written."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.arrays import Draw, clean, labels, matrix, values
from tests.fuzz.judge import Failure, check_finite
from tests.fuzz.parameters import ILLEGAL, small
from tests.fuzz.trial import Trial, plain

from manifast import datasets, embeddings, plotting, theory


def _drawn(t: Trial, ax: Any) -> None:
    """What was drawn can be shown, now and then."""
    if ax is None or t.draw.exotic or not t.draw.chance(0.05):
        return
    with io.BytesIO() as file:
        ax.figure.savefig(file, dpi=30)
        if not file.tell():
            raise Failure("an empty picture")


def _any(draw: Draw, legal: Callable[[Draw], Any], illegal: float = 0.05) -> Any:
    return draw.pick(*ILLEGAL) if draw.chance(illegal) else legal(draw)


def plot_embedding(t: Trial) -> None:
    draw = t.draw
    draw.most_rows = 30
    Y = matrix(draw, columns=int(draw.pick(1, 2, 2, 3, 4)))
    options: dict[str, Any] = {}
    if draw.chance(0.5):
        options["labels"] = labels(draw, draw.n) if draw.chance(0.8) else draw.rng.standard_normal(draw.n)
    if draw.chance(0.3):
        new = draw.count(10)
        options["Y_new"] = matrix(draw, rows=new, columns=np.shape(Y)[1] if np.ndim(Y) == 2 else 2, legal=[None])
        options |= {"labels_new": labels(draw, new)} if draw.chance(0.5) else {}
    if draw.chance(0.2):
        options["images"] = draw.rng.random((draw.n, 4, 3))
        options["n_images"] = _any(draw, small)
    if draw.chance(0.2):
        options["components"] = _any(draw, lambda draw: draw.pick([0, 1], [1, 0], (0, 1, 2), [0], [0, 9], "01"))
    if draw.chance(0.3):
        options["names"] = _any(draw, lambda draw: draw.pick("auto", "legend", "inside", "none", "above"))
    _drawn(t, t.run(plotting.plot_embedding, Y, **options))


def plot_spectrum(t: Trial) -> None:
    draw = t.draw
    given = np.sort(values(draw, (draw.count(20),)))
    draw.must_fail = bool(given.size) and not np.isfinite(given).all()
    options = {"n_components": _any(draw, small)} if draw.chance(0.4) else {}
    _drawn(t, t.run(plotting.plot_spectrum, _any(draw, lambda _: given) if not draw.must_fail else given, **options))


def plot_comparison(t: Trial) -> None:
    draw = t.draw
    keys = ("error", "standard_error", "fit_seconds", "predict_seconds")

    def value(draw: Draw) -> Any:
        return draw.pick(None, float("nan"), 0.0, float(draw.rng.random()), float(10.0 ** draw.rng.uniform(-9, 9)))

    rows = []
    for number in range(draw.count(8)):
        row = {key: _any(draw, value, 0.01) for key in keys if draw.chance(0.8)}
        rows.append(row | {"name": f"method {number}"} if draw.chance(0.99) else row)
    _drawn(t, t.run(plotting.plot_comparison, _any(draw, lambda _: rows)))


@functools.cache
def _reports() -> list[Any]:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 3)) + 3 * (np.arange(24) % 2)[:, None], np.arange(24) % 2
    made = [embeddings.NSSE().fit(X, y), embeddings.LPP().fit(X), embeddings.LDE().fit(X, y)]
    return [(model, theory.generalization_report(model, X, y)) for model in made]


def plot_report(t: Trial) -> None:
    _drawn(t, t.run(plotting.plot_report, _any(t.draw, lambda draw: draw.pick(*_reports())[1], 0.3)))


def plot_objective(t: Trial) -> None:
    _drawn(t, t.run(plotting.plot_objective, _any(t.draw, lambda draw: draw.pick(*_reports())[0], 0.3)))


# Files of images


def _images(draw: Draw) -> np.ndarray:
    shape = (draw.count(8), *(int(draw.pick(0, 1, 2, 5, 8)) if draw.chance(0.05) else int(draw.pick(1, 2, 4, 5))
                              for _ in range(2)))  # fmt: skip
    x = np.abs(values(draw, shape))
    with np.errstate(all="ignore"):
        made = draw.pick(x, (255 * np.clip(x, 0, 1)).astype(np.uint8), x.astype(np.float32), x > 0.5, x.astype(complex),
                         (100 * np.clip(x, 0, 1)).astype(np.int16), x.astype(str), x[0] if len(x) else x)  # fmt: skip
    return np.asarray(made)


def _damaged(draw: Draw, whole: bytes) -> bytes:
    rng, made = draw.rng, bytearray(whole)
    if draw.chance(0.4) or not whole:
        return whole
    if draw.chance(0.3):
        return whole[: rng.integers(len(whole))]
    for at in rng.integers(0, len(whole), int(rng.integers(1, 6))):
        made[at] = rng.integers(256)
    return bytes(made)


def _write(draw: Draw, folder: Path, images: np.ndarray) -> None:
    kind, file = draw.rng.random(), io.BytesIO()
    if kind < 0.7:
        arrays = {"images": images} | ({"labels": labels(draw, len(images))} if draw.chance(0.5) else {})
        np.savez(file, **{name: np.asarray(part) for name, part in arrays.items()})  # type: ignore[arg-type]
        (folder / "set.npz").write_bytes(_damaged(draw, file.getvalue()))
    elif find_spec("PIL") is not None:
        from PIL import Image

        for number, image in enumerate(clean(draw, 5, 20).reshape(5, 4, 5)):
            Image.fromarray((255 * np.clip(image, 0, 1)).astype(np.uint8)).save(file := io.BytesIO(), format="png")
            (folder / "set" / str(number % 2)).mkdir(parents=True, exist_ok=True)
            (folder / "set" / str(number % 2) / f"{number}.png").write_bytes(_damaged(draw, file.getvalue()))


def load_images(t: Trial) -> None:
    """Files of any content: images of finite numbers, or a sentence."""
    draw = t.draw
    with tempfile.TemporaryDirectory() as folder:
        _write(draw, Path(folder), _images(draw))
        draw.must_fail = False
        options: dict[str, Any] = {}
        if draw.chance(0.4):
            options["size"] = _any(draw, lambda draw: draw.pick(1, 3, (2, 3), [4, 1], (1, 2, 3), 0))
        if draw.chance(0.3):
            options["unit_norm"] = draw.pick(True, False)
        found = t.run(datasets.load_images, _any(draw, lambda _: "set", 0.02), folder, **options)
        if found is not None:
            check_finite((found.X, found.images))
            if len(found.X) != len(found.y) or found.X.shape[1] != np.prod(found.images.shape[1:]):
                raise Failure(f"rows of shape {found.X.shape}, {len(found.y)} labels, images {found.images.shape}")
            check_finite(plain(found.X))


def drawing(call: Callable[[Trial], None]) -> Callable[[Trial], None]:
    """A call that needs matplotlib: nothing is called without it."""
    return call if find_spec("matplotlib") is not None else lambda _: None


# name: (weight, call)
PLOTS: dict[str, tuple[float, Callable[[Trial], None]]] = {
    "datasets.load_images": (0.5, load_images),
    "plotting.plot_embedding": (0.05, drawing(plot_embedding)),
    "plotting.plot_spectrum": (0.05, drawing(plot_spectrum)),
    "plotting.plot_comparison": (0.03, drawing(plot_comparison)),
    "plotting.plot_report": (0.02, drawing(plot_report)),
    "plotting.plot_objective": (0.02, drawing(plot_objective)),
}
