"""LGRM: any local Laplacian with the smoother of kernel ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from manifast import objectives
from manifast._gram import settle
from manifast._rows import Rows
from manifast._validation import Array, as_count, as_number, as_positive
from manifast.embeddings.composed import Composed, choice
from manifast.maps import LinearMap
from manifast.objectives.local import default_neighbors
from manifast.smoothers import KernelRidge, Smoother
from manifast.solve import Solution

__all__ = ["LGRM"]


class LGRM(Composed):
    """Local and global regressive mapping (Yang et al. 2010): an embedding and its kernel map in one problem.

    min tr Y'(L_loc + μ L_g)Y with Y'Y = I (eqs. 19 and 23): local regressions say which rows belong together, a global
    ridge regression in the kernel's space keeps the embedding predictable, and predicts new rows (eq. 22).

    Parameters
    ----------
    n_components : int, default 2
    n_neighbors : int or None, default None
        Size of a clique: a row and its n_neighbors - 1 nearest. For local="le" neighbours of a row. None is 8, or one
        and a half times the dimensions of the local PCA where that is more.
    mu : float, default 1e-3
        Weight of the global regression.
    gamma : float, default 1e-4
        Ridge of the global regression.
    gamma_local : float or None, default None
        Ridge of the local regressions; None is 0, which is stable after the local PCA.
    local_dim : int or None, default None
        Dimensions that the local PCA keeps; None is `n_components`.
    kernel : {"rbf", "linear", "poly", "precomputed"}, default "rbf"
        For "precomputed" X is the kernel matrix, and `transform` takes the kernel of new rows with the training rows.
    sigma : float or None, default None
        Width of the kernel exp(-d²/sigma²); None is the median distance between rows.
    degree, coef0 : int and float, default 3 and 1.0
        Of the polynomial kernel (x·y + coef0)^degree.
    local : {"regression", "le", "lle", "ltsa"} or matrix of shape (n, n), default "regression"
        The local Laplacian (eq. 23). "ltsa" is "regression" without ridge; "le" is the heat-weighted neighbour graph's.
    beta : "local", "mean" or float, default "local"
        Width of the heat weights of local="le", as in `LaplacianEigenmaps`.
    reg : float, default 1e-3
        Regularisation of the weights of local="lle".
    connect : bool, default True
        Join the components of a disconnected neighbour graph, with a warning.
    neighbors : (distances, indices), "approximate" or "auto", optional
        The n_neighbors - 1 nearest others of the training rows from elsewhere, instead of the exact search.
        "approximate" finds them by clusters (`manifast.kernels.approximate_knn`), "auto" does so for 50,000 rows of 9
        features and more; `graph_recall_` is then the share of the true neighbours that were found.
    verbose : bool or int, default False
        1 names the stages and their times on stderr, 2 also says what the solvers do.

    Attributes
    ----------
    embedding_ : array of shape (n, n_components)
    eigenvalues_ : array of shape (n_components,)
    dual_coef_ : array of shape (n, n_components)
    intercept_ : array of shape (n_components,)

    Notes
    -----
    Cost: `fit` takes O(n²p) for the kernel and O(n³) for its penalty, or O(nr²) where the kernel has rank r to
    rounding, with n × n matrices. A new row takes O(n(p + d)).

    `transform` of the training rows is the global regression of `embedding_`: it differs by the residual that the
    objective weighs with `mu`: a thousandth of the embedding's size where the kernel can follow the embedding, much
    more where it cannot, as a linear kernel on a curved manifold.

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from manifast import LGRM
    >>> X, _ = make_swiss_roll(1000, random_state=0)
    >>> LGRM(n_neighbors=8, sigma=10.0).fit(X[:800]).transform(X[800:]).shape
    (200, 2)

    With the Laplacian of eigenmaps and rows without their mean, a large `mu` gives LPP and kernel LPP (Propositions 1
    and 2), a small one spectral regression and its kernel form (3 and 4), all with constraint="identity".

    >>> from scipy.linalg import subspace_angles
    >>> from manifast import LPP, SpectralRegression
    >>> X = (X[:200] - X[:200].mean(axis=0)) / 10
    >>> large = {"local": "le", "n_neighbors": 8, "degree": 2, "mu": 1e5, "gamma": 1e-12}
    >>> small = {**large, "mu": 1e-12, "gamma": 0.1}
    >>> plain = {"constraint": "identity", "degree": 2}
    >>> for kernel in ("linear", "poly"):
    ...     projected = LPP(kernel=kernel, **plain).fit(X)
    ...     regressed = SpectralRegression(kernel=kernel, alpha=0.1, **plain).fit(X)
    ...     bool(subspace_angles(LGRM(kernel=kernel, **large).fit(X).embedding_, projected.embedding_).max() < 1e-4)
    ...     bool(subspace_angles(LGRM(kernel=kernel, **small).fit(X).transform(X), regressed.embedding_).max() < 1e-4)
    True
    True
    True
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        mu: float = 1e-3,
        gamma: float = 1e-4,
        gamma_local: float | None = None,
        local_dim: int | None = None,
        kernel: str = "rbf",
        sigma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        local: Any = "regression",
        beta: Any = "local",
        reg: float = 1e-3,
        connect: bool = True,
        neighbors: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.gamma = gamma
        self.gamma_local = gamma_local
        self.local_dim = local_dim
        self.kernel = kernel
        self.sigma = sigma
        self.degree = degree
        self.coef0 = coef0
        self.local = local
        self.beta = beta
        self.reg = reg
        self.connect = connect
        self.neighbors = neighbors
        self.verbose = verbose

    def _objective(self) -> objectives.ObjectiveBuilder:
        if not isinstance(self.local, str):
            return objectives.Given(self.local, name="local")
        if self.local not in _LOCAL:
            known = ", ".join(map(repr, _LOCAL))
            raise ValueError(f"local must be one of {known}, or a matrix. Got {self.local!r} instead.")
        kind, fixed = _LOCAL[self.local]
        if self.n_neighbors is None and not issubclass(kind, objectives.LocalRegression):
            fixed = fixed | {"n_neighbors": default_neighbors(as_count(self.n_components, "n_components"))}
        return choice(kind, self, **fixed)

    def _smoother(self) -> Smoother | None:
        weight, ridge = as_number(self.mu, "mu", minimum=0.0), as_positive(self.gamma, "gamma")
        return choice(KernelRidge, self, weight=weight, ridge=ridge)

    def _keep(
        self, rows: Rows, builder: objectives.ObjectiveBuilder, objective: objectives.Objective, solution: Solution
    ) -> None:
        super()._keep(rows, builder, objective, solution)
        self._dual = None
        if isinstance(self.map_, LinearMap):
            # The same map in dual form: X' dual are the coefficients, and the residual is γ times the dual.
            residual = solution.Y - rows.X.astype(np.float64) @ self.map_.coef - self.map_.intercept
            self._dual = settle(residual / rows.squared(float(self.gamma)), solution.Y, rows.X.dtype)

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the kernel map (n, n_components)."""
        dual: Array | None = self.__dict__.get("_dual")
        return super().dual_coef_ if dual is None else dual


_LOCAL: dict[str, tuple[type[objectives.ObjectiveBuilder], dict[str, Any]]] = {
    "regression": (objectives.LocalRegression, {}),
    "le": (objectives.Laplacian, {"constraint": "identity", "affinity": "heat"}),
    "lle": (objectives.CliqueLLE, {}),
    "ltsa": (objectives.LocalRegression, {"gamma_local": None}),
    "isomap": (objectives.Isomap, {}),
}
