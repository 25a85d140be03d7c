"""The methods written out plainly in NumPy, as their definitions read: dense matrices, loops, full eigensolvers."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la


def sq_dist(X, Y=None):
    Y = X if Y is None else Y
    return np.array([[np.sum((x - y) ** 2) for y in Y] for x in X])


def mean_sq_distance(X):
    n = len(X)
    return sq_dist(X).sum() / (n * (n - 1))


def neighbors(X, k, queries=None):
    """k nearest by (distance, index); without queries a row is not its own neighbour."""
    D = sq_dist(X if queries is None else queries, X)
    if queries is None:
        np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, :k]


def heat_graph(X, k, beta, mode="union"):
    D, N, n = sq_dist(X), neighbors(X, k), len(X)
    listed = np.zeros((n, n), bool)
    for i in range(n):
        listed[i, N[i]] = True
    joined = listed | listed.T if mode == "union" else listed & listed.T
    if isinstance(beta, str):
        widths = local_widths(D)
        beta = np.sqrt(np.outer(widths, widths))
    return np.where(joined, np.exp(-D / beta), 0.0)


def local_widths(D):
    """A quarter of the mean squared distance of each row to its five nearest others, itself on the diagonal of D."""
    return np.array([0.25 * np.sort(np.delete(row, i))[:5].mean() for i, row in enumerate(D)])


def unit_graph(X, k):
    """The local heat graph, divided by the median weight of its edges."""
    W = heat_graph(X, k, "local")
    return W / np.median(W[W > 0])


def laplacian_eigenmaps(W, d):
    """L z = λ D z, the constant vector dropped, Z'DZ = I."""
    D = np.diag(W.sum(axis=1))
    values, vectors = la.eigh(D - W, D)
    return values[1 : d + 1], vectors[:, 1 : d + 1]


def nystrom(x, X, Z, values, k, beta):
    """z(x) = Σ k(x, x_i) z_i / (d(x) (1 - λ)) over the k nearest, rows at distance 0 left out."""
    squares = np.sum((X - x) ** 2, axis=1)
    near = np.argsort(squares, kind="stable")[:k]
    near = near[squares[near] > 0]
    weights = np.exp(-(squares[near] - squares[near].min()) / beta)
    return weights @ Z[near] / (weights.sum() * (1 - values))


def barycenter(x, N, reg):
    """Weights that sum to one and rebuild x from the rows of N."""
    G = (N - x) @ (N - x).T
    G = G + (reg * np.trace(G) if np.trace(G) > 0 else reg) * np.eye(len(N))
    w = np.linalg.solve(G, np.ones(len(N)))
    return w / w.sum()


def lle_matrix(X, N, reg=1e-3):
    n = len(X)
    W = np.zeros((n, n))
    for i in range(n):
        W[i, N[i]] = barycenter(X[i], X[N[i]], reg)
    return (np.eye(n) - W).T @ (np.eye(n) - W)


def alignment_matrix(X, cliques, dim, gamma):
    """Σ S_i A_i S_i' with A_i = H - H X'(X H X' + γI)^-1 X H after local PCA (LGRM eqs. 10 to 12)."""
    n, k = len(X), cliques.shape[1]
    H = np.eye(k) - 1.0 / k
    L = np.zeros((n, n))
    for clique in cliques:
        U, s, _ = np.linalg.svd(H @ X[clique], full_matrices=False)
        P = U[:, :dim] * s[:dim]  # the clique after local PCA
        A = H - H @ P @ np.linalg.solve(P.T @ H @ P + gamma * np.eye(P.shape[1]), P.T @ H)
        L[np.ix_(clique, clique)] += A
    return L


def smallest(A, d):
    """Unit eigenvectors of the smallest eigenvalues but the first, which belongs to the constant."""
    values, vectors = np.linalg.eigh(A)
    return values[1 : d + 1], vectors[:, 1 : d + 1]


def geodesics(X, k):
    """Floyd and Warshall on the union neighbour graph."""
    return shortest_paths(np.sqrt(sq_dist(X)), neighbors(X, k))


def shortest_paths(D, lists):
    """Floyd and Warshall on the edges of the lists, with lengths D."""
    n = len(D)
    G = np.full((n, n), np.inf)
    np.fill_diagonal(G, 0.0)
    for i in range(n):
        for j in lists[i]:
            G[i, j] = G[j, i] = D[i, j]
    for m in range(n):
        G = np.minimum(G, G[:, m, None] + G[None, m])
    return G


def isomap(X, k, d):
    return classical_scaling(geodesics(X, k), d)


def landmark_isomap(x, X, G, Y, k):
    """y = -½ (δ² - mean δ²) · Y (Y'Y)^-1 with geodesics through the k nearest training rows."""
    distance = np.sqrt(np.sum((X - x) ** 2, axis=1))
    near = np.argsort(distance, kind="stable")[:k]
    delta = np.min(distance[near, None] + G[near], axis=0)
    return -0.5 * (delta**2 - np.mean(G**2, axis=0)) @ Y @ np.linalg.inv(Y.T @ Y)


def gaussian(X, Y, sigma):
    return np.exp(-sq_dist(X, Y) / sigma**2)


def lgrm(X, cliques, d, mu, gamma, gamma_local, dim, K):
    """Eqs. 18, 19, 20 and 21 with explicit inverses: eigenvalues, embedding, dual coefficients and intercept."""
    n = len(X)
    H = np.eye(n) - 1.0 / n
    L_g = gamma * H @ np.linalg.inv(H @ K @ H + gamma * np.eye(n)) @ H
    values, Y = smallest(alignment_matrix(X, cliques, dim, gamma_local) + mu * L_g, d)
    inverse = np.linalg.inv(H @ K @ H + gamma * np.eye(n))
    return values, Y, H @ inverse @ Y, Y.mean(axis=0) - Y.T @ inverse @ H @ K @ np.ones(n) / n


def lgrm_map(K_new, K, Y, gamma):
    """Eq. 22 for new rows with kernel values K_new (m, n)."""
    n = len(K)
    H = np.eye(n) - 1.0 / n
    inverse = np.linalg.inv(H @ K @ H + gamma * np.eye(n))
    return K_new @ H @ inverse @ Y + Y.mean(axis=0) - (Y.T @ inverse @ H @ K @ np.ones(n) / n)


def ridge(X, Y, alpha):
    """Ridge regression with bias: coefficients and intercept."""
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    coef = np.linalg.solve(Xc.T @ Xc + alpha * np.eye(X.shape[1]), Xc.T @ Yc)
    return coef, Y.mean(axis=0) - X.mean(axis=0) @ coef


def lpp(X, W, d):
    """Smallest generalised eigenvectors of X'LX against X'DX."""
    D = np.diag(W.sum(axis=1))
    values, vectors = la.eigh(X.T @ (D - W) @ X, X.T @ D @ X)
    return values[:d], vectors[:, :d]


def class_graph(X, y, k, beta, inside):
    """Heat weights between rows and their k nearest of the same class, or of all other classes."""
    D, n = sq_dist(X), len(X)
    joined = np.zeros((n, n), bool)
    for i in range(n):
        allowed = [j for j in range(n) if j != i and (y[j] == y[i]) == inside]
        for j in sorted(allowed, key=lambda j: (D[i, j], j))[:k]:
            joined[i, j] = joined[j, i] = True
    return np.where(joined, np.exp(-D / beta), 0.0)


def lfda_weights(X, y, k=None, beta=None):
    """Weights within and between of Sugiyama 2007, with local scales of the k-th neighbour in the class or heat."""
    D, n = sq_dist(X), len(X)
    within, between = np.zeros((n, n)), np.full((n, n), 1.0 / n)
    for c in set(y):
        rows = [i for i in range(n) if y[i] == c]
        n_c = len(rows)
        scale = {i: np.sqrt(sorted(D[i, j] for j in rows)[min(k, n_c - 1)]) for i in rows} if k else None
        for i in rows:
            for j in rows:
                a = np.exp(-D[i, j] / (scale[i] * scale[j] if k else beta)) if i != j else 1.0
                within[i, j], between[i, j] = a / n_c, a * (1.0 / n - 1.0 / n_c)
    return within, between


def scatter(F, W):
    """½ Σ w_ij (f_i - f_j)(f_i - f_j)'."""
    total = np.zeros((F.shape[1], F.shape[1]))
    for i in range(len(F)):
        for j in range(len(F)):
            total += 0.5 * W[i, j] * np.outer(F[i] - F[j], F[i] - F[j])
    return total


def discriminant(F, within, between, d, ridge):
    """Largest eigenvectors of S_b against S_w + ridge · trace(S_w)/p, scaled to unit scatter within."""
    S_w, S_b = scatter(F, within), scatter(F, between)
    S_w = S_w + ridge * np.trace(S_w) / len(S_w) * np.eye(len(S_w))
    values, vectors = np.linalg.eig(np.linalg.inv(S_w) @ S_b)
    order = np.argsort(-values.real)[:d]
    W = vectors[:, order].real
    return values.real[order], W / np.sqrt(np.diag(W.T @ S_w @ W))


def class_distances(X, y, alpha=0.5):
    """√(1 - exp(-d²/β)) inside classes, √exp(d²/β) - α between them, β the squared mean distance."""
    D = sq_dist(X)
    n = len(X)
    beta = (np.sqrt(D).sum() / (n * (n - 1))) ** 2
    same = np.array([[a == b for b in y] for a in y])
    return np.where(same, np.sqrt(1 - np.exp(-D / beta)), np.sqrt(np.exp(np.minimum(D / beta, 50))) - alpha)


def classical_scaling(G, d):
    """Leading eigenvectors of -½ H G² H times the roots of their eigenvalues."""
    H = np.eye(len(G)) - 1.0 / len(G)
    values, vectors = np.linalg.eigh(-0.5 * H @ G**2 @ H)
    values, vectors = values[::-1][:d], vectors[:, ::-1][:, :d]
    return values, vectors * np.sqrt(values)


def left_out(X, Y, sigma, ridge):
    """Outputs of Gaussian interpolation that is fitted again without each row."""
    K = gaussian(X, X, sigma)
    out = []
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        coef = np.linalg.inv(K[np.ix_(others, others)] + ridge * np.eye(len(X) - 1)) @ Y[others]
        out.append(K[i, others] @ coef)
    return np.array(out)


def margin_matrices(y):
    """M_l and D_l of SEE eqs. 2 to 6, entry by entry."""
    n = len(y)
    S_w, S_b = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        size = np.sum(y == y[i])
        for j in range(n):
            if y[i] == y[j]:
                S_w[i, j] = 1 / size
            else:
                S_b[i, j] = 1 / (n - size)
    D_b = np.diag(S_b.sum(axis=0))
    return 3 * np.eye(n) + D_b + S_b + S_b.T - 2 * S_w, np.eye(n) + D_b


def elastic_linear_penalty(X, mu, gamma):
    """E of SEE eq. 13 with A and B as printed there (the paper's X is our X')."""
    n, p = X.shape
    H = np.eye(n) - 1.0 / n
    Xc = X.T @ H
    A = gamma * np.linalg.inv(gamma * Xc @ Xc.T + np.eye(p)) @ Xc
    B = H @ X @ A + 1.0 / n
    return mu * A.T @ A + mu * gamma * (B - np.eye(n)).T @ (B - np.eye(n))


def elastic_kernel_penalty(K, mu, gamma):
    """What SEE eq. 15 adds to L_1."""
    A = gamma * np.linalg.inv(np.eye(len(K)) + gamma * K)
    B = K @ A - np.eye(len(K))
    return mu * A.T @ K @ A + mu * gamma * B.T @ B


def elastic(W, y, lam, penalty):
    """Finite eigenpairs of (L + λM̃ + R) z = λ D̃ z by QZ, ascending, Z'D̃Z = I; y is -1 for unlabelled rows."""
    rows = np.flatnonzero(y != -1)
    A, B = np.diag(W.sum(axis=1)) - W + penalty, np.zeros(W.shape)
    M, D = margin_matrices(y[rows])
    A[np.ix_(rows, rows)] += lam * M
    B[np.ix_(rows, rows)] = D
    (upper, lower), vectors = la.eig(A, B, homogeneous_eigvals=True)
    finite = np.argsort(-np.abs(lower) / (np.abs(upper) + np.abs(lower)), kind="stable")[: len(rows)]
    values = (upper[finite] / lower[finite]).real
    order = np.argsort(values)
    Z = vectors[:, finite[order]].real
    return values[order], Z / np.sqrt(np.einsum("ij,ij->j", Z, B @ Z))


def fme(W, hot, penalty):
    """Flexible manifold embedding with labels kept exactly: rows without one in `hot` follow from the others."""
    A = np.diag(W.sum(axis=1)) - W + penalty
    known = hot.any(axis=1)
    F = hot.astype(float)
    F[~known] = -np.linalg.inv(A[np.ix_(~known, ~known)]) @ A[np.ix_(~known, known)] @ F[known]
    return F


def sda_matrices(X, y):
    """Between-class and total scatter of labelled rows."""
    mean = X.mean(axis=0)
    S_b = sum(
        np.sum(y == c) * np.outer(X[y == c].mean(axis=0) - mean, X[y == c].mean(axis=0) - mean) for c in np.unique(y)
    )
    return S_b, sum(np.outer(x - mean, x - mean) for x in X)


def sde_matrices(X, y):
    """X'L_bX and X'L_wX of the complete binary class graphs."""
    same = (y[:, None] == y).astype(float)
    found = []
    for W in (1 - same, same - np.eye(len(y))):
        found.append(X.T @ (np.diag(W.sum(axis=1)) - W) @ X)
    return found


def same_columns(actual, expected, tolerance):
    """Columns agree up to sign, relative to the length of each."""
    signs = np.sign(np.sum(actual * expected, axis=0))
    error = np.linalg.norm(actual * signs - expected, axis=0) / np.linalg.norm(expected, axis=0)
    assert error.max() <= tolerance, error


def largest_angle(A, B):
    """Largest principal angle between two column spaces, in radians."""
    return float(la.subspace_angles(A, B)[0])


def class_graphs(X, y, beta, k_within=None, k_between=None):
    """Heat weights inside the classes, complete or k nearest; between them 1 everywhere, or heat of the k nearest."""
    D, n = sq_dist(X), len(X)
    same = y[:, None] == y[None, :]

    def nearest(allowed, k):
        listed = np.zeros((n, n), bool)
        for i in range(n):
            others = np.flatnonzero(allowed[i] & (np.arange(n) != i))
            listed[i, others[np.argsort(D[i, others], kind="stable")][:k]] = True
        return listed | listed.T

    inside = same & ~np.eye(n, dtype=bool) if k_within is None else nearest(same, k_within)
    within = np.where(inside, np.exp(-D / beta), 0.0)
    if k_between is None:
        return within, np.where(same, 0.0, 1.0)
    return within, np.where(nearest(~same, k_between), np.exp(-D / beta), 0.0)


def graph_laplacian(W, normalized=False):
    degrees = W.sum(axis=1)
    L = np.diag(degrees) - W
    if normalized:
        roots = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
        L = roots[:, None] * L * roots
    return L


def nsse(X, y, d, mu1, mu2, mu3, sigma, grid, max_iter=20, n_neighbors=None):
    """Algorithm 1 to the letter: explicit inverses, full eigendecompositions, every width of the grid and the current.

    Embedding, coefficients, width, objectives, widths, and eigenvalues of the last step.
    """
    W_w, W_b = class_graphs(X, y, mean_sq_distance(X), n_neighbors)
    L_w, L_b = graph_laplacian(W_w), graph_laplacian(W_b)
    D = sq_dist(X)

    def inverse_square(s):
        inverse = np.linalg.inv(np.exp(-D / s**2))
        return inverse @ inverse

    objectives, sigmas = [], [sigma]
    for step in range(max_iter + 1):
        penalty = inverse_square(sigma)
        values, vectors = np.linalg.eigh(L_w - mu1 * L_b + mu2 * penalty)
        Y = vectors[:, :d]
        objectives.append(values[:d].sum() + mu3 / sigma**2)
        if step == max_iter:
            break
        candidates = [sigma, *grid]
        costs = [mu2 * np.trace(Y.T @ inverse_square(s) @ Y) + mu3 / s**2 for s in candidates]
        best = candidates[int(np.argmin(costs))]
        if best == sigma:
            break
        sigma = best
        sigmas.append(sigma)
    return Y, np.linalg.inv(np.exp(-D / sigma**2)) @ Y, sigma, objectives, sigmas, values
