"""Computes cells. Each is written to its own file, in one step, as soon as it is done: a killed run goes on."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import manifast
from benchmarks.papers.data import MissingSet, Sets
from benchmarks.papers.model import Cell, Experiment, Family


@dataclass(frozen=True)
class Options:
    output: Path
    splits: int = 3
    quick: bool = False
    paper: bool = False
    sets: Sets = field(default_factory=Sets)


@dataclass(frozen=True)
class Task:
    """One cell: a column on a row of a family, for one split; `paper` says how parameters are chosen."""

    family: Family
    row: str
    column: str
    split: int
    paper: bool
    quick: bool

    @property
    def arguments(self) -> Any:
        return (self.family.quick if self.quick else self.family.rows)[self.row]

    @property
    def file(self) -> Path:
        way = "paper" if self.paper else "training"
        names = (self.row, self.column, f"split {self.split}", way)
        folder = f"{self.family.name}-quick" if self.quick else self.family.name
        return Path(folder) / (" ".join(map(_plain, names)) + ".json")

    @property
    def fingerprint(self) -> str:
        """What the result depends on, apart from the code."""
        return f"{manifast.__version__} {self.arguments!r} {self.family.columns[self.column]!r}"


def tasks(experiment: Experiment, options: Options) -> list[Task]:
    """The cells of an experiment, split by split, so that an interrupted run has whole tables of fewer splits."""
    splits = min(options.splits, experiment.splits or options.splits)
    ways = (False, True) if options.paper and experiment.family.paper and not experiment.ranked else (False,)
    return [
        Task(experiment.family, row, column, split, way, options.quick)
        for split in range(splits)
        for way in ways
        for row in experiment.row_names(options.quick)
        for column in experiment.column_names()
    ]


def run(wanted: Iterable[Task], options: Options) -> dict[Task, str]:
    """Computes what is missing; the tasks that failed, and why. A data set that is not there ends the run."""
    missing = [task for task in dict.fromkeys(wanted) if read(task, options) is None]
    failures: dict[Task, str] = {}
    seconds: dict[tuple[str, str, str], float] = {}
    for count, task in enumerate(missing, 1):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = task.family.cell(
                    options.sets, task.arguments, task.family.columns[task.column], task.split, task.paper
                )
            except (MissingSet, KeyboardInterrupt):
                raise
            except Exception as problem:  # one method that cannot be fitted must not end the others
                failures[task] = f"{type(problem).__name__}: {problem}"
                result = {"failed": failures[task]}
        taken = time.perf_counter() - begin
        seconds[_kind(task)] = taken
        if "failed" not in result:
            write(task, result, time.process_time() - begin_cpu, options)
        left = sum(_expected(seconds, other) for other in missing[count:])
        print(
            f"[{count}/{len(missing)}] {task.family.name}: {task.row} | {task.column} | split {task.split}"
            f"{' | as in the paper' if task.paper else ''}: {taken:.1f} s{_note(result)}; about {_clock(left)} left",
            file=sys.stderr,
            flush=True,
        )
    return failures


def measure_times(wanted: Iterable[Task], options: Options) -> None:
    """Times of the first split again, with the parameters it chose: for runs that did not have the machine alone."""
    for task in dict.fromkeys(wanted):
        file = _read_file(task, options)
        if file is None or task.family.times is None or task.paper or task.split > 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            column = task.family.columns[task.column]
            found = task.family.times(options.sets, task.arguments, column, task.split, file["cell"])
        write(task, file["cell"] | found, file["cpu_seconds"], options)


def cpu_seconds(wanted: Iterable[Task], options: Options) -> float:
    """What the finished cells of some tasks took, on all cores."""
    return sum(file["cpu_seconds"] for file in (_read_file(task, options) for task in dict.fromkeys(wanted)) if file)


def read(task: Task, options: Options) -> Cell | None:
    """A finished cell; None where there is none, or one of other arguments."""
    file = _read_file(task, options)
    return None if file is None else file["cell"]


def _read_file(task: Task, options: Options) -> dict[str, Any] | None:
    try:
        file = json.loads((options.output / "cells" / task.file).read_text())
    except (OSError, ValueError):
        return None
    return file if file.get("fingerprint") == task.fingerprint else None


def write(task: Task, cell: Cell, cpu: float, options: Options) -> None:
    """Under a name of its own first: a reader never sees half a file."""
    file = options.output / "cells" / task.file
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_name(f".{file.name}.{os.getpid()}")
    content = {"fingerprint": task.fingerprint, "cpu_seconds": cpu, "cell": cell}
    half.write_text(json.dumps(content, default=_number))
    os.replace(half, file)


def stored(experiment: Experiment, options: Options) -> Iterator[tuple[Task, Cell]]:
    """The finished cells of an experiment."""
    for task in tasks(experiment, options):
        cell = read(task, options)
        if cell is not None:
            yield task, cell


def _kind(task: Task) -> tuple[str, str, str]:
    return task.family.name, task.row, task.column


def _expected(seconds: dict[tuple[str, str, str], float], task: Task) -> float:
    """Of the same method on the same row, of the same method, or of all: what is known."""
    if _kind(task) in seconds:
        return seconds[_kind(task)]
    alike = [
        value for (family, _, column), value in seconds.items() if (family, column) == (task.family.name, task.column)
    ]
    return float(np.mean(alike or list(seconds.values())))


def _note(result: Cell) -> str:
    if "failed" in result:
        return f", FAILED: {result['failed']}"
    numbers = [f"{name} {value:.3g}" for name, value in result.items() if isinstance(value, (int, float))]
    return ", " + ", ".join(numbers[:2]) if numbers else ""


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _plain(name: str) -> str:
    return re.sub(r"[^\w.=+-]+", "_", name)


def _number(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
