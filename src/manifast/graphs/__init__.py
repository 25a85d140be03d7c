"""Weighted graphs of samples: neighbours, radius, complete, L1 and class-aware, and bridges between components.

All graphs are exactly symmetric with nothing on the diagonal, and float32 data give float32 weights. An edge of length
d weighs exp(-d² / beta) ("heat"), 1 ("binary") or d ("distance"). What d is says `metric`: see `distances`. Nothing
here imports scikit-learn.

    neighbors    components    classes       graphs of rows, their components, graphs by labels
        distances                            nearest, within a radius, all: for every metric
    search    bridges    weights    rows     what these are made of
"""

from __future__ import annotations

from manifast.graphs.bridges import bridges_of_matrix, nearest_outside
from manifast.graphs.classes import between_graph, class_graphs, within_blocks
from manifast.graphs.components import bridges_between, connect_components, joined, n_components, n_components_of
from manifast.graphs.distances import (
    METRICS,
    Distances,
    check_metric,
    checked_distances,
    distances_of,
    fitted_distances,
    heat_width,
    mean_sq_distance,
)
from manifast.graphs.neighbors import as_radius, full_graph, graph_of_lists, knn_graph, l1_graph, radius_graph
from manifast.graphs.rows import as_rows, chunks, unit_rows
from manifast.graphs.search import nearest
from manifast.graphs.weights import from_edges, given_graph, with_edges

__all__ = [
    "METRICS",
    "Distances",
    "as_radius",
    "as_rows",
    "between_graph",
    "bridges_between",
    "bridges_of_matrix",
    "check_metric",
    "checked_distances",
    "chunks",
    "class_graphs",
    "connect_components",
    "distances_of",
    "fitted_distances",
    "from_edges",
    "full_graph",
    "given_graph",
    "graph_of_lists",
    "heat_width",
    "joined",
    "knn_graph",
    "l1_graph",
    "mean_sq_distance",
    "n_components",
    "n_components_of",
    "nearest",
    "nearest_outside",
    "radius_graph",
    "unit_rows",
    "with_edges",
    "within_blocks",
]
