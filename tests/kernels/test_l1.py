"""l1_code against certificates (duality gap, KKT, residual), linear programming and plain coordinate descent."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import issparse

from manifast._core import dispatch
from manifast.kernels import l1_code

LEVELS = dispatch.levels()


def unit_rows(A):
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def dual_gap(x, D, a, e, errors):
    """Relative gap of a basis-pursuit solution.

    The dual is max x.y subject to |D y| <= 1 and, with errors, |y| <= 1: solved by linear programming, so that the
    certificate owes nothing to the kernel.
    """
    G = np.vstack([D, np.eye(len(x))]) if errors else D
    norms = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
    keep = norms > 1e-200
    G, b = G[keep] / norms[keep, None], 1 / norms[keep]
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    A_ub, b_ub = np.vstack([G, -G]), np.hstack([b, b])
    lp = linprog(-x, A_ub=A_ub, b_ub=b_ub, bounds=(None, None), method="highs", options=tight)
    assert lp.status == 0, lp.message
    y = lp.x / max(1.0, np.max(np.abs(G @ lp.x) / b))  # the solver's tolerance must not help: make y feasible
    primal = np.abs(a).sum() + np.abs(e).sum()
    return (primal - x @ y) / primal


def lasso_gap(x, D, a, e, lam, errors):
    """Relative gap for lam > 0, with the residual, scaled to be feasible, as the dual point."""
    r = x - a @ D - e
    primal = r @ r / 2 + lam * (np.abs(a).sum() + np.abs(e).sum())
    bound = max([lam, np.abs(D @ r).max(), *([np.abs(r).max()] if errors else [])])
    y = r * (lam / bound)
    return (primal - (x @ y - y @ y / 2)) / primal


def small_lasso_gap(x, D, a, e, lam):
    """Relative gap for small lam, where residual / lam is rounding: the dual point solves the signs' equations."""
    A, E, F = np.flatnonzero(a), np.flatnonzero(e), np.flatnonzero(e == 0)
    r, y = x - a @ D - e, np.sign(e)
    y[F] = np.linalg.lstsq(D[np.ix_(A, F)], np.sign(a[A]) - D[np.ix_(A, E)] @ y[E], rcond=None)[0]
    y *= lam / max(1.0, np.abs(D @ y).max(), np.abs(y).max() if E.size else 0.0)
    primal = r @ r / 2 + lam * (np.abs(a).sum() + np.abs(e).sum())
    return (primal - (x @ y - y @ y / 2)) / primal


def check(X, D, *, errors, lam, tol=1e-8, codes=None):
    """Every certificate that applies to every row; the codes are computed without any warning unless given."""
    codes, e = l1_code(X, D, errors=errors, lam=lam) if codes is None else codes
    assert issparse(codes) and codes.format == "csr" and codes.shape == (len(X), len(D))
    assert codes.has_sorted_indices and np.all(codes.data != 0)
    assert (e is not None) == errors
    for i, x in enumerate(X):
        a, ei = codes[[i]].toarray()[0], e[i] if errors else np.zeros_like(x)
        norm = np.linalg.norm(x)
        if norm == 0:
            assert not a.any() and not ei.any()
        elif lam > 0:
            assert lasso_gap(x, D, a, ei, lam, errors) <= tol
            r, live = x - a @ D - ei, a != 0
            slack = 1e-7 * lam * max(1.0, np.linalg.norm(D, axis=1).max())
            assert np.all(np.abs(D @ r) <= lam + slack)
            np.testing.assert_allclose((D @ r)[live], lam * np.sign(a[live]), atol=slack)
            if errors:
                assert np.all(np.abs(r) <= lam + slack)
                np.testing.assert_allclose(r[ei != 0], lam * np.sign(ei[ei != 0]), atol=slack)
        else:
            assert np.linalg.norm(x - a @ D - ei) <= 1e-8 * norm
            assert dual_gap(x, D, a, ei, errors) <= tol
    return codes, e


SHAPES = {
    "wide": (60, 20),
    "square": (20, 20),
    "tall": (8, 20),
    "very wide": (300, 10),
    "one atom": (1, 5),
    "p=1": (4, 1),
}


@pytest.mark.parametrize("lam", [0.0, 0.3, 1e-3])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_random_dictionaries(shape, lam, level):
    rng = np.random.default_rng(0)
    D = unit_rows(rng.standard_normal(shape))
    X = np.vstack([rng.standard_normal((5, shape[1])), D[:1], np.zeros((1, shape[1])), D[:1] - 2 * D[-1:]])
    check(X, D, errors=True, lam=lam)
    in_reach = X if shape[0] >= shape[1] else np.vstack([rng.standard_normal((5, shape[0])) @ D, X[5:]])
    check(in_reach, D, errors=False, lam=lam)


@pytest.mark.parametrize("lam", 10.0 ** -np.arange(4, 13))
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("shape", [(60, 20), (20, 20), (300, 40)], ids=str)
def test_small_penalty(shape, errors, lam):
    """Certified (a warning would be an error here), and close to the code for no penalty."""
    rng = np.random.default_rng(15)
    D, X = unit_rows(rng.standard_normal(shape)), rng.standard_normal((5, shape[1]))
    codes, e = l1_code(X, D, errors=errors, lam=lam)
    for i, x in enumerate(X):
        a, ei = codes[[i]].toarray()[0], e[i] if errors else np.zeros_like(x)
        assert small_lasso_gap(x, D, a, ei, lam) <= 1e-8
        assert np.linalg.norm(x - a @ D - ei) <= 1e4 * lam * np.linalg.norm(x)


@pytest.mark.parametrize("lam", [1e-6, 1e-8, 1e-10, 1e-12, 1e-15, 1e-20, 1e-200])
def test_small_penalty_out_of_reach(lam):
    """A residual far larger than lam is what least squares leaves."""
    rng = np.random.default_rng(16)
    D, X = unit_rows(rng.standard_normal((8, 20))), rng.standard_normal((5, 20))
    codes, _ = l1_code(X, D, errors=False, lam=lam)
    np.testing.assert_allclose(codes.toarray(), X @ np.linalg.pinv(D), atol=1e-12 + 1e2 * lam)


@pytest.mark.parametrize("lam", [1e-20, 1e-100, 1e-300])
@pytest.mark.parametrize("errors", [True, False])
def test_penalty_below_rounding_is_no_penalty(errors, lam):
    rng = np.random.default_rng(17)
    D, X = unit_rows(rng.standard_normal((60, 20))), rng.standard_normal((5, 20))
    codes, e = l1_code(X, D, errors=errors, lam=lam)
    check(X, D, errors=errors, lam=0.0, codes=(codes, e))


@pytest.mark.parametrize("lam", [0.0, 0.1, 1e-3])
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("case", ["same", "opposite", "triple", "zero atoms"])
def test_duplicate_atoms(case, errors, lam):
    rng = np.random.default_rng(1)
    D = unit_rows(rng.standard_normal((40, 15)))
    other = {"same": D[::-1], "opposite": -D, "triple": np.repeat(D, 2, axis=0), "zero atoms": np.zeros((3, 15))}[case]
    X = np.vstack([rng.standard_normal((6, 15)), D[:2], D[2:3] + D[3:4]])
    check(X, np.vstack([D, other]), errors=errors, lam=lam)


@pytest.mark.parametrize("lam", [0.0, 0.1, 1e-3])
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("size", [1e-4, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-13])
def test_nearly_dependent_atoms(size, errors, lam):
    rng = np.random.default_rng(2)
    D = unit_rows(rng.standard_normal((40, 15)))
    D = np.vstack([D, D + size * rng.standard_normal(D.shape)])
    X = np.vstack([rng.standard_normal((8, 15)), D[:2], D[40:42]])
    check(X, D, errors=errors, lam=lam)


@pytest.mark.parametrize("lam", [0.0, 0.1])
@pytest.mark.parametrize("errors", [True, False])
def test_atom_norms_from_a_thousandth_to_a_thousand(errors, lam):
    rng = np.random.default_rng(3)
    D = unit_rows(rng.standard_normal((150, 40))) * 10 ** rng.uniform(-3, 3, (150, 1))
    check(rng.standard_normal((6, 40)), D, errors=errors, lam=lam)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_scale_of_the_samples(scale):
    rng = np.random.default_rng(4)
    D, X = unit_rows(rng.standard_normal((30, 12))), rng.standard_normal((4, 12))
    codes, e = l1_code(X, D)
    scaled, scaled_e = l1_code(X * scale, D)
    np.testing.assert_allclose(scaled.toarray() / scale, codes.toarray(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaled_e / scale, e, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_of_the_dictionary(scale):
    rng = np.random.default_rng(5)
    D, X = unit_rows(rng.standard_normal((30, 12))), rng.standard_normal((4, 12))
    codes, _ = l1_code(X, D, errors=False)
    scaled, _ = l1_code(X, D * scale, errors=False)
    np.testing.assert_allclose(scaled.toarray() * scale, codes.toarray(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_objective_equals_that_of_other_solvers(errors, lam):
    rng = np.random.default_rng(6)
    D, X = unit_rows(rng.standard_normal((25, 9))), rng.standard_normal((5, 9))
    codes, e = l1_code(X, D, errors=errors, lam=lam)
    A = np.vstack([D, np.eye(9)]) if errors else D
    for i, x in enumerate(X):
        ours = np.abs(codes[[i]].toarray()).sum() + (np.abs(e[i]).sum() if errors else 0)
        if lam == 0:
            M = np.hstack([A.T, -A.T])
            theirs = linprog(np.ones(M.shape[1]), A_eq=M, b_eq=x, bounds=(0, None), method="highs").fun
        else:
            r = x - codes[[i]].toarray()[0] @ D - (e[i] if errors else 0)
            ours = r @ r / 2 + lam * ours
            w = coordinate_descent(x, A, lam)
            theirs = np.sum((x - w @ A) ** 2) / 2 + lam * np.abs(w).sum()
        assert ours == pytest.approx(theirs, rel=1e-8)


def coordinate_descent(x, A, lam, sweeps=20000):
    w, r = np.zeros(len(A)), x.copy()
    for _ in range(sweeps):
        biggest = 0.0
        for j, atom in enumerate(A):
            old, square = w[j], atom @ atom
            z = atom @ r + square * old
            w[j] = np.sign(z) * max(abs(z) - lam, 0) / square
            r -= (w[j] - old) * atom
            biggest = max(biggest, abs(w[j] - old))
        if biggest < 1e-13:
            break
    return w


def test_large_penalty_gives_zero():
    rng = np.random.default_rng(7)
    D, X = unit_rows(rng.standard_normal((20, 8))), rng.standard_normal((3, 8))
    top = max(np.abs(X @ D.T).max(), np.abs(X).max())
    codes, e = l1_code(X, D, lam=top * (1 + 1e-12))
    assert codes.nnz == 0 and not e.any()
    codes, e = l1_code(X, D, lam=0.9 * top)
    assert codes.nnz + np.count_nonzero(e) > 0


@pytest.mark.parametrize("rank", [5, 20])
def test_out_of_reach_gets_least_squares_and_one_warning(rank):
    rng = np.random.default_rng(8)
    D = rng.standard_normal((30 if rank < 20 else 12, rank)) @ rng.standard_normal((rank, 20))
    X = np.vstack([rng.standard_normal((4, 20)), D[:1]])
    with pytest.warns(RuntimeWarning, match="4 of 5 samples cannot be represented") as record:
        codes, e = l1_code(X, D, errors=False)
    assert len(record) == 1 and e is None
    rest = X - codes @ D
    best = X - X @ np.linalg.pinv(D) @ D
    np.testing.assert_allclose(rest, best, atol=1e-9)
    # Among the least-squares solutions: the smallest |a|, that is basis pursuit for what can be reached.
    again, _ = l1_code(X - best, D, errors=False)
    np.testing.assert_allclose(np.abs(codes).sum(axis=1), np.abs(again).sum(axis=1), rtol=1e-8)


def test_sample_equal_to_an_atom_is_that_atom():
    rng = np.random.default_rng(9)
    D = unit_rows(rng.standard_normal((50, 20)))
    codes, e = l1_code(D[:7], D)
    np.testing.assert_allclose(codes.toarray(), np.eye(7, 50), atol=1e-12)
    np.testing.assert_allclose(e, 0, atol=1e-12)


@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_exclude_equals_the_dictionary_without_the_atom(errors, lam):
    rng = np.random.default_rng(10)
    D = unit_rows(rng.standard_normal((40, 12)))
    D[7] = D[3]
    exclude = np.array([0, 3, -1, 39, 7])
    codes, e = l1_code(D[:5], D, errors=errors, lam=lam, exclude=exclude)
    for i, j in enumerate(exclude):
        assert j < 0 or codes[i, j] == 0
        kept = [k for k in range(40) if k != j]
        alone, alone_e = l1_code(D[i : i + 1], D[kept], errors=errors, lam=lam)
        ours = np.abs(codes[[i]]).sum() + (np.abs(e[i]).sum() if errors else 0)
        theirs = np.abs(alone).sum() + (np.abs(alone_e).sum() if errors else 0)
        assert ours == pytest.approx(theirs, rel=1e-9)


def integers(rows, columns, high):
    return st.lists(
        st.lists(st.integers(-high, high), min_size=columns, max_size=columns), min_size=rows, max_size=rows
    ).map(lambda values: np.array(values, dtype=float))


@settings(max_examples=120, deadline=None)
@given(data=st.data(), errors=st.booleans(), lam=st.sampled_from([0.0, 0.5, 1.0, 0.01]))
def test_small_integers(data, errors, lam):
    """Ties, duplicates, zero atoms and square states everywhere."""
    p, atoms = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 14))
    high = data.draw(st.sampled_from([1, 2, 5]))
    D, X = data.draw(integers(atoms, p, high)), data.draw(integers(3, p, high))
    if not errors and lam == 0:
        X = X @ np.linalg.pinv(D) @ D  # what can be reached
        X[np.abs(X) < 1e-9] = 0
    check(X, D, errors=errors, lam=lam)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    atoms=st.integers(1, 80),
    p=st.integers(1, 30),
    lam=st.sampled_from([0.0, 1e-3, 0.2]),
    spread=st.sampled_from([0.0, 2.0]),
)
def test_shapes_and_norms(seed, atoms, p, lam, spread):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((atoms, p)) * 10 ** rng.uniform(-spread, spread, (atoms, 1))
    check(rng.standard_normal((2, p)), D, errors=True, lam=lam)


def same(first, second):
    (a, e), (b, f) = first, second
    assert all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("indptr", "indices", "data"))
    assert (e is None and f is None) or np.array_equal(e, f)


@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("lam", [0.0, 0.01])
def test_bits_do_not_depend_on_threads_batch_or_layout(errors, lam, level):
    rng = np.random.default_rng(11)
    D = unit_rows(rng.standard_normal((300, 4)) @ rng.standard_normal((4, 40)) + 0.3 * rng.standard_normal((300, 40)))
    X = rng.standard_normal((40, 40))
    whole = l1_code(X, D, errors=errors, lam=lam, n_threads=1)
    for threads in (2, 3):
        same(whole, l1_code(X, D, errors=errors, lam=lam, n_threads=threads))
    # 40 rows are enough for the head of the dictionary to be used, 1 and 5 are not.
    for rows in (slice(3, 4), slice(10, 15)):
        codes, e = l1_code(X[rows], D, errors=errors, lam=lam)
        same((codes, e), (whole[0][rows], None if e is None else whole[1][rows]))
    strided, reverse = np.asfortranarray(X), np.ascontiguousarray(D[:, ::-1])[:, ::-1]
    strided.setflags(write=False)
    same(whole, l1_code(strided, reverse, errors=errors, lam=lam))
    same(whole, l1_code(X.astype(X.dtype.newbyteorder()), D, errors=errors, lam=lam))


def degenerate(seed, size):
    """Nearly dependent atoms of small integers, and samples that are few of them: ties, and atoms that come and go."""
    rng = np.random.default_rng(seed)
    D = rng.integers(-2, 3, (12, 6)).astype(float)
    D = np.vstack([D, D + size * rng.standard_normal(D.shape), -D[:4]])
    return D, np.vstack([D[:6], D[12:18], rng.integers(-2, 3, (8, 6)).astype(float), D[:4] + D[13:17]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # what cannot be certified must not depend on the batch either
@pytest.mark.parametrize("errors", [True, False])
@pytest.mark.parametrize("lam", [0.0, 1e-3])
@pytest.mark.parametrize("size", [1e-7, 1e-9, 1e-11, 1e-13])
def test_bits_of_degenerate_rows_do_not_depend_on_the_batch(size, errors, lam):
    for seed in range(4):
        D, X = degenerate(seed, size)
        whole = l1_code(X, D, errors=errors, lam=lam, n_threads=1)
        back = l1_code(X[::-1], D, errors=errors, lam=lam, n_threads=1)
        same(whole, (back[0][::-1], back[1][::-1] if errors else None))
        for i in range(len(X)):
            codes, e = l1_code(X[i : i + 1], D, errors=errors, lam=lam)
            same((codes, e), (whole[0][[i]], whole[1][[i]] if errors else None))


@pytest.mark.skipif(len(LEVELS) < 2, reason="this machine runs one instruction set")
@pytest.mark.parametrize("errors", [True, False])
def test_levels_agree_to_rounding(errors):
    rng = np.random.default_rng(12)
    D, X = unit_rows(rng.standard_normal((120, 30))), rng.standard_normal((10, 30))
    results = []
    try:
        for name in LEVELS:
            dispatch.use(name)
            results.append(l1_code(X, D, errors=errors))
    finally:
        dispatch.use(os.environ.get("MANIFAST_ISA") or "auto")
    for codes, e in results[1:]:
        np.testing.assert_allclose(results[0][0].toarray(), codes.toarray(), atol=1e-10)
        if errors:
            np.testing.assert_allclose(results[0][1], e, atol=1e-10)


def test_float32_in_float32_out():
    rng = np.random.default_rng(13)
    D, X = unit_rows(rng.standard_normal((60, 20))).astype(np.float32), rng.standard_normal((5, 20)).astype(np.float32)
    codes, e = l1_code(X, D)
    assert codes.dtype == np.float32 and e.dtype == np.float32
    wide, wide_e = l1_code(X.astype(float), D.astype(float))
    assert np.array_equal(codes.toarray(), wide.toarray().astype(np.float32))
    assert np.array_equal(e, wide_e.astype(np.float32))
    half, _ = l1_code(X.astype(np.float16), D)
    assert half.dtype == np.float32
    mixed, _ = l1_code(X, D.astype(float))
    assert mixed.dtype == np.float64
    whole, _ = l1_code(np.arange(6).reshape(2, 3), np.eye(3, dtype=int))
    assert whole.dtype == np.float64


def test_no_samples():
    codes, e = l1_code(np.empty((0, 4)), np.eye(4))
    assert codes.shape == (0, 4) and e.shape == (0, 4)
    codes, e = l1_code(np.empty((0, 4)), np.eye(4), errors=False, exclude=np.empty(0, dtype=int))
    assert codes.shape == (0, 4) and e is None


def test_results_that_cannot_be_certified_are_reported():
    rng = np.random.default_rng(14)
    with pytest.warns(RuntimeWarning, match="could not be certified to tol=1e-30"):
        codes, _ = l1_code(rng.standard_normal((3, 10)), rng.standard_normal((20, 10)), tol=1e-30)
    assert codes.nnz > 0


X, D = np.ones((2, 3)), np.eye(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((np.full((2, 3), np.nan), D), {}), "X must be finite"),
        (((X, np.full((2, 3), np.inf)), {}), "dictionary must be finite"),
        (((np.ones(3), D), {}), "X must be a matrix"),
        (((X, np.ones((2, 4))), {}), "dictionary must have 3 columns"),
        (((X, np.ones((0, 3))), {}), "dictionary must have at least 1 row"),
        (((X.astype(complex), D), {}), "X must hold real numbers"),
        (((X, D), {"lam": -1.0}), "lam must be a finite number of at least 0"),
        (((X, D), {"lam": np.nan}), "lam must be a finite number of at least 0"),
        (((X, D), {"lam": "much"}), "lam must be a number"),
        (((X, D), {"tol": 0.0}), "tol must be a positive"),
        (((X, D), {"exclude": [0]}), "exclude must hold 2 integers"),
        (((X, D), {"exclude": [0.0, 1.0]}), "exclude must hold 2 integers"),
        (((X, D), {"exclude": [0, 3]}), "exclude must hold atom numbers from 0 to 2"),
        (((X, D), {"exclude": [0, -2]}), "exclude must hold atom numbers from 0 to 2"),
        (((X, D), {"n_threads": 0}), "n_threads must be"),
    ],
)
def test_bad_input(arguments, message):
    positional, named = arguments
    with pytest.raises(ValueError, match=message):
        l1_code(*positional, **named)


@pytest.fixture(scope="module")
def faces(data_dir):
    """Faces of 28 people, projected to 200 dimensions, unit norm: 1241 atoms and 533 samples."""
    with np.load(data_dir / "yaleb.npz") as file:
        chosen = (file["labels"] >= 10) & (file["labels"] <= 37)
        images = file["images"][chosen]
    rng = np.random.default_rng(0)
    rows = images.reshape(len(images), -1).astype(float)
    rows = unit_rows(rows @ np.linalg.qr(rng.standard_normal((rows.shape[1], 200)))[0])
    order = rng.permutation(len(rows))
    return rows[order[:1241]], rows[order[1241:]]


@pytest.mark.parametrize("errors", [True, False])
def test_faces(errors, faces):
    """500 samples: residual, and a gap whose dual point solves the equations of the support by least squares."""
    D, X = faces
    X = X[:500] if errors else X[:60]
    codes, e = l1_code(X, D, errors=errors)
    for i, x in enumerate(X):
        a, ei = codes[[i]].toarray()[0], e[i] if errors else np.zeros(200)
        assert np.linalg.norm(x - a @ D - ei) <= 1e-8
        A, E = np.flatnonzero(a), np.flatnonzero(ei)
        y, F = np.sign(ei), np.flatnonzero(ei == 0)
        y[F] = np.linalg.lstsq(D[np.ix_(A, F)], np.sign(a[A]) - D[np.ix_(A, E)] @ y[E], rcond=None)[0]
        y /= max(1.0, np.abs(D @ y).max(), np.abs(y).max() if errors else 0.0)
        primal = np.abs(a).sum() + np.abs(ei).sum()
        assert (primal - x @ y) / primal <= 1e-8


def test_faces_with_penalty_and_leave_one_out(faces):
    D, X = faces
    for lam in (1e-1, 1e-2, 1e-4):
        check(X[:10], D, errors=True, lam=lam)
        check(X[:10], D, errors=False, lam=lam)
    exclude = np.arange(10)
    codes, e = l1_code(D[:10], D, exclude=exclude)
    assert np.all(codes[exclude, exclude] == 0)
    np.testing.assert_allclose(codes @ D + e, D[:10], atol=1e-12)
