"""Command line: `list` names the tables and figures, `run` computes them, `time` measures their times again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.papers import lgrm, nsse, see, sparse, summary, theory
from benchmarks.papers.data import MissingSet, Sets
from benchmarks.papers.model import Experiment
from benchmarks.papers.report import outside, write_report
from benchmarks.papers.runner import Options, cpu_seconds, measure_times, run, tasks

PAPERS = (nsse, lgrm, see, theory, sparse, summary)
EXPERIMENTS: dict[str, Experiment] = {made.name: made for paper in PAPERS for made in paper.EXPERIMENTS}


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if given.command == "list":
        width = max(map(len, EXPERIMENTS))
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<{width}}  {experiment.title}")
        return 0
    every = given.names == ["all"]
    unknown = [] if every else [name for name in given.names if name not in EXPERIMENTS]
    if unknown:
        print(f"names must be among those of `list`, or all. Got {', '.join(unknown)}.", file=sys.stderr)
        return 2
    output = given.output or Path("papers-quick" if given.quick else "papers-results")
    options = Options(output, given.splits, given.quick, given.as_in_paper, Sets(given.data, given.download))
    begin, problems = time.perf_counter(), []
    for name in EXPERIMENTS if every else given.names:
        experiment = EXPERIMENTS[name]
        wanted = tasks(experiment, options)
        try:
            failures = {} if given.command == "time" else run(wanted, options)
            if given.command == "time":
                measure_times(wanted, options)
        except MissingSet as problem:
            print(f"{name}: skipped. {problem} See docs/data.md.", file=sys.stderr, flush=True)
            problems += [] if every else [f"{name}: its data are not there"]
            continue
        found = write_report(experiment, options)
        problems += [f"{name}: {task.row}, {task.column}: {why}" for task, why in failures.items()]
        problems += outside(experiment, found) if given.quick else []
        print(
            f"{name}: {options.output / name}.md; {cpu_seconds(wanted, options):.0f} s of processor time; "
            f"{time.perf_counter() - begin:.0f} s so far",
            flush=True,
        )
    for line in problems:
        print(line, file=sys.stderr)
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names of the tables and figures")
    one = argparse.ArgumentParser(add_help=False)
    one.add_argument("names", nargs="+", metavar="NAME", help="names that `list` shows, or all")
    one.add_argument("--splits", type=int, default=3, help="random splits; the papers take 5, 10 or 20 (3)")
    one.add_argument(
        "--data", type=Path, default=os.environ.get("MANIFAST_DATA"), help="folder of image sets ($MANIFAST_DATA)"
    )
    one.add_argument(
        "--download", action="store_true", help="ORL by scikit-learn's downloader where the folder lacks it"
    )
    one.add_argument(
        "--quick", action="store_true", help="digits and small sizes; fails where a figure leaves its range"
    )
    one.add_argument("--as-in-paper", action="store_true", help="also with parameters chosen as the papers do")
    one.add_argument("--output", type=Path, help="folder of cells and reports (papers-results, papers-quick)")
    commands.add_parser("run", parents=[one], help="compute tables and figures; goes on where it was stopped")
    commands.add_parser("time", parents=[one], help="measure times of finished cells again, with what they chose")
    return parser


if __name__ == "__main__":
    sys.exit(main())
