"""Data to try methods on: generated manifolds with their true coordinates or classes, and image sets from files.

Generators take a number of rows and a seed, and return rows and what is known about them. `load_images` reads sets that
users have on disk; nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifast._validation import Array, as_count, as_number

__all__ = [
    "ImageSet",
    "load_images",
    "make_moons",
    "make_s_curve",
    "make_swiss_roll",
    "make_two_surfaces",
]


def make_swiss_roll(n: int = 1000, *, noise: float = 0.0, hole: bool = False, random_state: int = 0) -> Any:
    """A rolled-up sheet in three dimensions, and the sheet (LGRM, Figures 1 and 2).

    The curve is (t cos t, t sin t) for t from 1.5π to 4.5π, the sheet is 21 wide.

    Parameters
    ----------
    n : int, default 1000
    noise : float, default 0.0
        Standard deviation of normal noise on the rows.
    hole : bool, default False
        Leaves out a rectangle in the middle of the sheet.
    random_state : int, default 0

    Returns
    -------
    X : array of shape (n, 3)
    chart : array of shape (n, 2)
        Arc length along the roll, from its inner end, and height: distances in the chart are distances on the sheet.

    Examples
    --------
    >>> from manifast.datasets import make_swiss_roll
    >>> X, chart = make_swiss_roll(200)
    >>> X.shape, chart.shape
    ((200, 3), (200, 2))
    """
    n, noise, rng = _checked(n, noise, random_state)

    def sheet(count: int) -> tuple[Array, Array]:
        return 1.5 * np.pi * (1 + 2 * rng.random(count)), 21 * rng.random(count)

    t, height = sheet(n)
    while hole:
        inside = (np.abs(t - 3 * np.pi) < 0.6 * np.pi) & (np.abs(height - 10.5) < 3.5)
        if not inside.any():
            break
        t[inside], height[inside] = sheet(int(inside.sum()))
    X = np.stack([t * np.cos(t), height, t * np.sin(t)], axis=1)
    return _noisy(X, noise, rng), np.stack([_arc(t) - _arc(1.5 * np.pi), height], axis=1)


def make_s_curve(n: int = 1000, *, noise: float = 0.0, random_state: int = 0) -> Any:
    """A sheet bent to the letter S, and the sheet.

    Parameters
    ----------
    n : int, default 1000
    noise : float, default 0.0
    random_state : int, default 0

    Returns
    -------
    X : array of shape (n, 3)
    chart : array of shape (n, 2)
        Arc length along the S and height.

    Examples
    --------
    >>> from manifast.datasets import make_s_curve
    >>> X, chart = make_s_curve(100, noise=0.01)
    >>> X.shape, chart.shape
    ((100, 3), (100, 2))
    """
    n, noise, rng = _checked(n, noise, random_state)
    t, height = 3 * np.pi * (rng.random(n) - 0.5), 2 * rng.random(n)
    X = np.stack([np.sin(t), height, np.sign(t) * (np.cos(t) - 1)], axis=1)
    return _noisy(X, noise, rng), np.stack([t, height], axis=1)


def make_moons(n: int = 200, *, noise: float = 0.05, random_state: int = 0) -> Any:
    """Two half circles that reach into each other, one per class.

    Parameters
    ----------
    n : int, default 200
        Rows of both classes together; the first class has the odd one.
    noise : float, default 0.05
    random_state : int, default 0

    Returns
    -------
    X : array of shape (n, 2)
    y : array of n classes, 0 and 1

    Examples
    --------
    >>> from manifast.datasets import make_moons
    >>> X, y = make_moons(101)
    >>> X.shape, (y == 0).sum()
    ((101, 2), np.int64(51))
    """
    n, noise, rng = _checked(n, noise, random_state, least=2)
    y = np.arange(n) % 2
    angle = np.pi * rng.random(n)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X[y == 1] = np.array([1.0, 0.5]) - X[y == 1]
    return _noisy(X, noise, rng), y


def make_two_surfaces(
    kind: str = "quadratic", n_per_class: int = 200, *, noise: float = 0.0, random_state: int = 0
) -> Any:
    """Two classes on two surfaces in three dimensions that no plane separates (THEORY, section 4.1).

    The paper names the surfaces and the number of samples, not their equations. Here they are: "quadratic", z = x² + y²
    and the same 0.5 higher, over a square; "swiss_roll", two rolls of which one lies between the turns of the other;
    "sphere", spheres of radius 1 and 1.5 around one centre.

    Parameters
    ----------
    kind : {"quadratic", "swiss_roll", "sphere"}
    n_per_class : int, default 200
    noise : float, default 0.0
    random_state : int, default 0

    Returns
    -------
    X : array of shape (2 n_per_class, 3)
    y : array of 2 n_per_class classes, 0 and 1

    Examples
    --------
    >>> from manifast.datasets import make_two_surfaces
    >>> X, y = make_two_surfaces("sphere", 50)
    >>> X.shape, y.shape
    ((100, 3), (100,))
    """
    n, noise, rng = _checked(n_per_class, noise, random_state, name="n_per_class")
    y = np.repeat([0, 1], n)
    if kind == "quadratic":
        X = 2 * rng.random((2 * n, 3)) - 1
        X[:, 2] = X[:, 0] ** 2 + X[:, 1] ** 2 + 0.5 * y
    elif kind == "swiss_roll":
        t = 1.5 * np.pi * (1 + 2 * rng.random(2 * n))
        radius = t + np.pi * y
        X = np.stack([radius * np.cos(t), 21 * rng.random(2 * n), radius * np.sin(t)], axis=1)
    elif kind == "sphere":
        X = rng.standard_normal((2 * n, 3))
        X *= (1 + 0.5 * y[:, None]) / np.linalg.norm(X, axis=1, keepdims=True)
    else:
        raise ValueError(f"kind must be 'quadratic', 'swiss_roll' or 'sphere'. Got {kind!r} instead.")
    return _noisy(X, noise, rng), y


class ImageSet(NamedTuple):
    """What `load_images` read: rows of features, labels, the images themselves, and the names of the classes."""

    X: Array
    y: Array
    images: Array
    names: tuple[str, ...]


_SOURCES = {
    "coil20": "COIL-20 (Columbia University), 1440 images of 20 objects",
    "orl": "the ORL database of faces (AT&T Laboratories Cambridge), 400 images of 40 people",
    "yaleb": "the cropped Extended Yale B database (UC San Diego), 2414 faces of 38 people",
    "frey": "the Frey faces (shared by Sam Roweis), 1965 images without classes",
    "mnist10k": "the 10,000 test digits of MNIST",
}
_LAYOUT = (
    "Files may be NAME.npz with the arrays images (n, height, width) and labels (n,); NAME.mat with fea (n, pixels) "
    "and gnd (n, 1); or a folder NAME with one folder of images per class."
)


def load_images(
    name: str, data_home: Any = None, *, size: Any = None, unit_norm: bool = False, shape: Any = None
) -> ImageSet:
    """Images from a file or folder of the user's, as rows of features.

    Parameters
    ----------
    name : str
        The set: NAME.npz, NAME.mat or the folder NAME in `data_home` is read, the first of them that is there.
    data_home : path, optional
        By default the environment variable MANIFAST_DATA.
    size : int or (height, width), optional
        Images are averaged over the areas of a grid of this size.
    unit_norm : bool, default False
        Rows of norm 1.
    shape : (height, width), optional
        Of the images in a .mat file; square by default, columns first as MATLAB stores them.

    Returns
    -------
    ImageSet
        (X, y, images, names): X of shape (n, height · width), float64, from 0 to 1 for images of bytes; y the labels as
        stored, or the number of the folder, whose names are `names`. Sets without labels have y of zeros.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from manifast.datasets import load_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/two.npz", images=np.full((2, 4, 4), 255, np.uint8), labels=[0, 1])
    ...     X, y, images, names = load_images("two", folder, size=2)
    >>> X
    array([[1., 1., 1., 1.],
           [1., 1., 1., 1.]])
    """
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise ValueError(f"name must be the plain name of an image set. Got {name!r} instead.")
    home = os.environ.get("MANIFAST_DATA") if data_home is None else data_home
    if home is None:
        raise ValueError(f"data_home must name a folder where MANIFAST_DATA is not set. Got None.{_where(name)}")
    folder = Path(home)
    if (folder / f"{name}.npz").is_file():
        images, labels, names = _from_npz(folder / f"{name}.npz")
    elif (folder / f"{name}.mat").is_file():
        images, labels, names = _from_mat(folder / f"{name}.mat", shape)
    elif (folder / name).is_dir():
        images, labels, names = _from_folder(folder / name, size)
    else:
        raise ValueError(f"data_home must hold the image set {name!r}. Got {folder} without it.{_where(name)}")
    if images.dtype.kind not in "fiub" or images.size == 0:
        raise ValueError(
            f"the images of {name!r} must be real numbers, at least one pixel each. Got {images.dtype} of shape "
            f"{images.shape}."
        )
    if images.dtype.kind in "ub":
        images = images / float(np.iinfo(images.dtype).max if images.dtype.kind == "u" else 1)
    images = images.astype(np.float64, copy=False)
    if not np.isfinite(images).all():
        raise ValueError(f"the images of {name!r} must be finite. Got NaN or infinity.")
    if size is not None:
        images = area_average(images, size)
    X = images.reshape(len(images), -1)
    if unit_norm:
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(lengths > 0, lengths, 1)
    return ImageSet(X, labels, images, names)


def area_average(images: Array, size: Any) -> Array:
    """Images (n, height, width) at another size: the mean over the area that each new pixel covers.

    Examples
    --------
    >>> import numpy as np
    >>> from manifast.datasets import area_average
    >>> area_average(np.arange(6.0).reshape(1, 2, 3), (1, 2))
    array([[[1.83333333, 3.16666667]]])
    """
    pair = (size, size) if np.ndim(size) == 0 else tuple(size)
    if len(pair) != 2:
        raise ValueError(f"size must be an integer or (height, width). Got {size!r} instead.")
    height, width = (as_count(part, "size") for part in pair)
    return np.asarray(_overlap(images.shape[1], height) @ images @ _overlap(images.shape[2], width).T)


def _overlap(old: int, new: int) -> Array:
    """Share of every old pixel in every new one."""
    edges, begin = np.linspace(0, old, new + 1), np.arange(old)
    shares = np.minimum(edges[1:, None], begin + 1) - np.maximum(edges[:-1, None], begin)
    return np.asarray(np.clip(shares, 0, None) * (new / old))


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """A sentence for whatever its reader says of a damaged file."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{file} must be a whole file. Got {type(error).__name__}: {error}.") from error


def _from_npz(file: Path) -> tuple[Array, Array, tuple[str, ...]]:
    with _readable(file), np.load(file, allow_pickle=False) as held:
        stored = {name: held[name] for name in held.files if name in ("images", "labels")}
        found = sorted(held.files)
    if "images" not in stored or stored["images"].ndim != 3:
        raise ValueError(f"{file} must hold an array images (n, height, width). Got {found}.")
    images = stored["images"]
    return images, _labels(stored.get("labels", np.zeros(len(images), dtype=np.int64)), len(images), file), ()


def _from_mat(file: Path, shape: Any) -> tuple[Array, Array, tuple[str, ...]]:
    from scipy.io import loadmat

    stored: Any = None
    with _readable(file), suppress(NotImplementedError):
        stored = loadmat(file)
    if stored is None:
        raise ValueError(f"{file} must be a MATLAB file up to version 7. Got 7.3: save it with -v7.")
    if "ff" in stored and stored["ff"].shape[0] == 560:  # Roweis's Frey faces: one column per image, row by row
        images = stored["ff"].T.reshape(-1, 28, 20)
        return images, np.zeros(len(images), dtype=np.int64), ()
    if "fea" not in stored or stored["fea"].ndim != 2:
        found = sorted(name for name in stored if not name.startswith("__"))
        raise ValueError(f"{file} must hold a matrix fea (n, pixels), and gnd (n, 1). Got {found}.")
    rows = stored["fea"]
    rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    side = round(float(np.sqrt(rows.shape[1])))
    height, width = (side, side) if shape is None else shape
    if height * width != rows.shape[1]:
        raise ValueError(f"shape must give (height, width) of {rows.shape[1]} pixels. Got {shape!r} instead.")
    if rows.dtype.kind == "f" and rows.max() > 1 and not np.any(rows % 1) and rows.min() >= 0 and rows.max() <= 255:
        rows = rows.astype(np.uint8)  # bytes that were stored as doubles
    images = rows.reshape(len(rows), width, height).swapaxes(1, 2)
    labels = stored.get("gnd", np.zeros(len(rows), dtype=np.int64))
    return images, _labels(np.ravel(labels), len(rows), file), ()


def _from_folder(folder: Path, size: Any) -> tuple[Array, Array, tuple[str, ...]]:
    """One folder per class; images that differ in size need `size`."""
    images, labels, names = [], [], []
    for part in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(path for path in part.iterdir() if path.suffix.lower() in _ENDINGS)
        if files:
            names.append(part.name)
        for file in files:
            images.append(_read_gray(file))
            labels.append(len(names) - 1)
    if not images:
        raise ValueError(f"{folder} must hold one folder of images per class. Got none with {sorted(_ENDINGS)}.")
    shapes = {image.shape for image in images}
    if len(shapes) > 1:
        if size is None:
            raise ValueError(f"size must be given for images of several sizes. Got {len(shapes)} sizes in {folder}.")
        images = [area_average(image[None], size)[0] for image in images]
    return np.stack(images), np.array(labels), tuple(names)


_ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff"}


def _read_gray(file: Path) -> Array:
    """Gray values from 0 to 1, by Pillow, or by matplotlib where only that is there (PNG)."""
    try:
        from PIL import Image
    except ImportError:
        try:
            from matplotlib.image import imread
        except ImportError:
            raise ValueError(f"reading {file} needs Pillow: pip install pillow.") from None
        with _readable(file):
            values = np.asarray(imread(file), dtype=np.float64)
        return values[..., :3] @ [0.299, 0.587, 0.114] if values.ndim == 3 else values
    with _readable(file), Image.open(file) as image:
        return np.asarray(image.convert("L"), dtype=np.float64) / 255


def _labels(labels: Array, n: int, file: Path) -> Array:
    if labels.shape != (n,):
        raise ValueError(f"{file} must hold one label per image, {n}. Got shape {labels.shape} instead.")
    return labels


def _where(name: str) -> str:
    source = _SOURCES.get(name)
    had = f" {name} is {source}." if source else f" Known sets: {'; '.join(f'{k}: {v}' for k, v in _SOURCES.items())}."
    return f"{had} {_LAYOUT}"


def _checked(
    n: Any, noise: Any, seed: Any, *, name: str = "n", least: int = 1
) -> tuple[int, float, np.random.Generator]:
    count = as_count(n, name)
    if count < least:
        raise ValueError(f"{name} must be at least {least}. Got {count} instead.")
    return count, as_number(noise, "noise", minimum=0.0), np.random.default_rng(seed)


def _noisy(X: Array, noise: float, rng: np.random.Generator) -> Array:
    return X + noise * rng.standard_normal(X.shape) if noise else X


def _arc(t: Any) -> Any:
    """Length of the curve (t cos t, t sin t) from 0 to t."""
    return 0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t))
