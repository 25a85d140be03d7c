"""What is declared: families of cells, and the experiments that show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# What a cell holds, by measure: a number; a curve {"x": [...], "y": [...]}; candidates {"candidates": {parameters:
# number}}, of which the best mean over the splits is shown; or points {"points": [[...], ...], "classes": [...]}.
Cell = dict[str, Any]
# cell(sets, row, column, seed, paper): the arguments of a row, what a column declares, the split, and whether
# parameters are chosen the paper's way.
CellFunction = Callable[[Any, Mapping[str, Any], Any, int, bool], Cell]
# times(sets, row, column, seed, cell): what a finished cell takes, measured again with the parameters it chose.
TimesFunction = Callable[[Any, Mapping[str, Any], Any, int, Cell], Cell]


@dataclass(frozen=True, eq=False)  # a family is itself, and can be part of a key
class Family:
    """Cells that one function computes: every column on every row. Rows and columns are named as reports show them."""

    name: str
    cell: CellFunction
    columns: Mapping[str, Any]
    rows: Mapping[str, Mapping[str, Any]]
    quick: Mapping[str, Mapping[str, Any]]  # rows of the quick form, on digits or generated data
    paper: bool = False  # whether the paper's way to choose parameters differs, and is computed on request
    times: TimesFunction | None = None


@dataclass(frozen=True)
class Experiment:
    """One table or figure.

    `printed` holds what the paper prints, by measure, row and column. `ranges` are what the means of the quick form
    must stay in, by measure and column, for every row. `best_of` names, by measure, the curve whose best point is what
    the paper prints.
    """

    name: str
    title: str
    family: Family
    shows: Mapping[str, str]  # measure: what it is, with its unit
    columns: tuple[str, ...] = ()  # all of the family's where empty
    rows: tuple[str, ...] = ()
    printed: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    ranges: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    largest: tuple[str, ...] = ()  # measures of which the largest is best, such as accuracies
    splits: int | None = None  # fixed where more splits show nothing
    logarithmic: bool = False  # x axis of the curves
    ranked: str = ""  # measure by which columns are ranked over the rows
    best_of: Mapping[str, str] = field(default_factory=dict)
    once: tuple[str, ...] = ()  # measures of which the first split counts alone, such as times
    names: Mapping[str, str] = field(default_factory=dict)  # of columns, where reports show other ones
    note: str = ""

    def row_names(self, quick: bool) -> tuple[str, ...]:
        return tuple(self.family.quick) if quick else self.rows or tuple(self.family.rows)

    def column_names(self) -> tuple[str, ...]:
        return self.columns or tuple(self.family.columns)


def by_rows(columns: str, rows: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """A printed table from text: names of the columns, and the figures of every row; "-" is none."""
    names = columns.split()
    table = {row: dict(zip(names, figures.split(), strict=True)) for row, figures in rows.items()}
    return {row: {name: float(text) for name, text in cells.items() if text != "-"} for row, cells in table.items()}
