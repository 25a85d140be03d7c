"""Generated manifolds keep what they promise, and image sets are read in every layout."""

from __future__ import annotations

import numpy as np
import pytest

from manifast import datasets
from manifast.datasets import load_images, make_moons, make_s_curve, make_swiss_roll, make_two_surfaces

MAKERS = [make_swiss_roll, make_s_curve, make_moons, lambda n=300, **more: make_two_surfaces("sphere", n, **more)]


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_repeats(make):
    one, two, other = make(random_state=3), make(random_state=3), make(random_state=4)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])
    assert not np.array_equal(one[0], make(random_state=3, noise=0.1)[0])


@pytest.mark.parametrize("make", [make_swiss_roll, make_s_curve])
def test_charts_measure_the_sheet(make):
    """Rows that are close on the sheet are as far apart in the chart as in space."""
    X, chart = make(20_000)
    from manifast.kernels import knn

    away, near = knn(X, 3)
    flat = np.linalg.norm(chart[near] - chart[:, None], axis=2)
    assert np.median(np.abs(flat - away) / away) < 1e-3
    assert np.quantile(np.abs(flat - away) / away, 0.99) < 2e-2


def test_the_hole_is_empty():
    X, chart = make_swiss_roll(3000, hole=True)
    t = np.hypot(X[:, 0], X[:, 2])
    assert len(X) == 3000
    assert not np.any((np.abs(t - 3 * np.pi) < 0.6 * np.pi) & (np.abs(chart[:, 1] - 10.5) < 3.5))


def test_moons_and_surfaces():
    X, y = make_moons(500, noise=0.0)
    centers = np.where(y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    np.testing.assert_allclose(np.linalg.norm(X - centers, axis=1), 1)
    X, y = make_two_surfaces("sphere", 100)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), np.where(y, 1.5, 1.0))
    X, y = make_two_surfaces("quadratic", 100)
    np.testing.assert_allclose(X[:, 2] - (X[:, :2] ** 2).sum(axis=1), 0.5 * y, atol=1e-14)
    X, y = make_two_surfaces("swiss_roll", 150)
    assert X.shape == (300, 3) and np.bincount(y).tolist() == [150, 150]
    from manifast.kernels import knn

    for kind in ("quadratic", "swiss_roll", "sphere"):
        X, y = make_two_surfaces(kind, 1000)
        assert np.mean(y[knn(X, 1)[1][:, 0]] == y) > 0.99  # apart, though no plane separates them
        A = np.column_stack([X, np.ones(len(X))])
        plane = np.linalg.lstsq(A, 2.0 * y - 1, rcond=None)[0]
        assert np.mean((A @ plane > 0) == y) < 0.95


def test_npz(tmp_path, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 4)).astype(np.uint8)
    np.savez(tmp_path / "faces.npz", images=images, labels=np.arange(6) // 2)
    found = load_images("faces", tmp_path)
    np.testing.assert_allclose(found.images, images / 255)
    np.testing.assert_allclose(found.X, images.reshape(6, -1) / 255)
    assert found.y.tolist() == [0, 0, 1, 1, 2, 2]
    monkeypatch.setenv("MANIFAST_DATA", str(tmp_path))
    small = load_images("faces", size=(4, 2), unit_norm=True)
    blocks = (images / 255).reshape(6, 4, 2, 2, 2).mean(axis=(2, 4)).reshape(6, -1)
    np.testing.assert_allclose(small.X, blocks / np.linalg.norm(blocks, axis=1, keepdims=True))


def test_mat(tmp_path):
    from scipy.io import savemat

    images = np.random.default_rng(0).integers(0, 256, (5, 6, 6))
    rows = images.swapaxes(1, 2).reshape(5, -1).astype(float)
    savemat(tmp_path / "ORL.mat", {"fea": rows, "gnd": [[1], [1], [2], [2], [3]]})
    found = load_images("ORL", tmp_path)
    np.testing.assert_allclose(found.images, images / 255)
    assert found.y.tolist() == [1, 1, 2, 2, 3]
    faces = np.random.default_rng(1).integers(0, 256, (3, 28, 20)).astype(np.uint8)
    savemat(tmp_path / "frey.mat", {"ff": faces.reshape(3, -1).T})
    np.testing.assert_allclose(load_images("frey", tmp_path).images, faces / 255)
    savemat(tmp_path / "wide.mat", {"fea": np.ones((2, 12))})
    assert load_images("wide", tmp_path, shape=(3, 4)).images.shape == (2, 3, 4)
    with pytest.raises(ValueError, match="shape must give"):
        load_images("wide", tmp_path)


def test_folders_of_images(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="writes images with Pillow")
    for number, name in enumerate(["anna", "bert"]):
        (tmp_path / "people" / name).mkdir(parents=True)
        for i in range(2):
            picture = np.full((4 + 2 * i, 4), 100 * number + 50, np.uint8)
            Image.fromarray(picture).save(tmp_path / "people" / name / f"{i}.png")
    with pytest.raises(ValueError, match="size must be given for images of several sizes"):
        load_images("people", tmp_path)
    found = load_images("people", tmp_path, size=2)
    assert found.names == ("anna", "bert") and found.y.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(found.X, np.repeat([[50], [150]], 2, axis=0) / 255 * np.ones(4))


def test_real_sets(data_dir):
    found = load_images("orl", data_dir, size=25)
    assert found.X.shape == (400, 625) and len(np.unique(found.y)) == 40
    assert found.X.min() >= 0 and found.X.max() <= 1


def test_what_is_wrong_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("MANIFAST_DATA", raising=False)
    with pytest.raises(ValueError, match=r"data_home must name a folder.*COIL-20 .* images \(n, height, width\)"):
        load_images("coil20")
    with pytest.raises(ValueError, match=r"must hold the image set 'nothing'.* Known sets: coil20"):
        load_images("nothing", tmp_path)
    with pytest.raises(ValueError, match="name must be the plain name"):
        load_images("../secret", tmp_path)
    np.savez(tmp_path / "bad.npz", pixels=np.ones(3))
    with pytest.raises(ValueError, match="must hold an array images"):
        load_images("bad", tmp_path)
    np.savez(tmp_path / "short.npz", images=np.ones((3, 2, 2)), labels=[1, 2])
    with pytest.raises(ValueError, match="one label per image, 3"):
        load_images("short", tmp_path)
    for call in (lambda: make_swiss_roll(0), lambda: make_moons(1), lambda: make_two_surfaces(n_per_class=2.5)):
        with pytest.raises(ValueError, match="must be"):
            call()
    with pytest.raises(ValueError, match="noise must be"):
        make_s_curve(noise=-1)
    with pytest.raises(ValueError, match="kind must be"):
        make_two_surfaces("plane")
    with pytest.raises(ValueError, match="size must be"):
        datasets.area_average(np.ones((1, 2, 2)), (1, 2, 3))
