"""The command ``manifast`` (also ``python -m manifast``): demo, check, embed, transform, compare.

Exit codes: 0; 1 for what the user can mend, said in one sentence without a traceback; 2 for wrong usage; 130 after
Ctrl-C; 141 where the reader of the output has gone.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from manifast import __version__
from manifast._config import show_config
from manifast.selfcheck import self_check
from manifast.tables import Table, check_output, check_picture, read_labels, read_table, write_table

_MODEL = ".manifast"


def main(arguments: Sequence[str] | None = None, prog: str = "manifast") -> int:
    """Command line; returns the exit code."""
    options = _parser(prog).parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _say_warning  # type: ignore[assignment]
        try:
            code = int(options.run(options))
            sys.stdout.flush()
            return code
        except BrokenPipeError:  # whoever reads our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        except (ValueError, OSError, ImportError, MemoryError) as problem:
            print(f"{prog}: error: {_sentence(problem)}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"{prog}: stopped", file=sys.stderr)
            return 130


def _sentence(problem: BaseException) -> str:
    if isinstance(problem, MemoryError):
        return f"not enough memory. {' '.join(str(problem).split())}".strip()
    if isinstance(problem, OSError) and problem.filename and problem.strerror:
        return f"{problem.filename} cannot be read or written: {problem.strerror}."
    return " ".join(str(problem).split()) or type(problem).__name__


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Embeddings with a map for new rows, from the command line. Without a command: what this "
        "installation is made of, and a check of every kernel against plain NumPy.",
    )
    parser.add_argument("--version", action="version", version=f"manifast {__version__}")
    parser.add_argument("--config", action="store_true", help="only show the configuration")
    parser.set_defaults(run=_check)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    show = commands.add_parser("demo", help="embed digits, map those held out, and compare the methods")
    show.add_argument("--output", default="manifast_demo.png", help="where the picture goes (needs matplotlib)")
    show.set_defaults(run=_demo)

    check = commands.add_parser("check", help="show the configuration and check every kernel against plain NumPy")
    check.set_defaults(run=_check, config=False)

    files = "npy, npz, csv, tsv or Parquet"
    embed = commands.add_parser("embed", help="fit a method to a table and save the model")
    _add_data(embed, files)
    embed.add_argument("--method", required=True, help="an estimator of manifast, such as Isomap or NSSE")
    embed.add_argument("--output", required=True, metavar="MODEL", help=f"where the model goes, {_MODEL}")
    embed.add_argument("--labels", help="a column of DATA (an array of an npz), or a file with one label per row")
    embed.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the method")
    embed.add_argument("--sample", type=int, metavar="ROWS", help="fit to so many rows, drawn by their number")
    embed.add_argument("--embedding", metavar="FILE", help=f"also write the embedded rows: {files}")
    embed.add_argument("--picture", metavar="FILE", help="also draw them (needs matplotlib)")
    embed.set_defaults(run=_embed)

    transform = commands.add_parser("transform", help="map the rows of a table by a saved model")
    transform.add_argument("model", metavar="MODEL")
    _add_data(transform, files)
    transform.add_argument("--output", required=True, metavar="FILE", help=f"where the rows go: {files}")
    transform.set_defaults(run=_transform)

    compare = commands.add_parser("compare", help="cross-validate methods on a table, with a page of pictures")
    _add_data(compare, files)
    compare.add_argument("--labels", help="a column of DATA (an array of an npz), or a file with one label per row")
    compare.add_argument("--methods", help="names with commas between them; by default all that suit the labels")
    compare.add_argument("--folds", type=int, default=5)
    compare.add_argument("--html", default="manifast_compare.html", metavar="FILE", help="the page; '' for none")
    compare.set_defaults(run=_compare)
    return parser


def _add_data(parser: argparse.ArgumentParser, files: str) -> None:
    parser.add_argument("data", metavar="DATA", help=files)
    parser.add_argument("--id", metavar="COLUMN", help="passed through to outputs; by default a column called id")
    parser.add_argument("--drop", action="append", default=[], metavar="COLUMN", help="leave a column out")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="show progress; twice: also the solvers")


def _demo(options: argparse.Namespace) -> int:
    from manifast.demo import demo

    demo(options.output)
    return 0


def _check(options: argparse.Namespace) -> int:
    show_config()
    if options.config:
        return 0
    print()
    return 0 if self_check() else 1


def _embed(options: argparse.Namespace) -> int:
    from manifast import save

    model = _estimator(options.method, options.set, options.verbose)
    check_output(options.output, _MODEL)
    if options.embedding:
        check_output(options.embedding)
    if options.picture:
        check_picture(options.picture)
    if (options.embedding or options.picture) and not hasattr(model, "transform"):
        given = "--embedding" if options.embedding else "--picture"
        raise ValueError(f"{given} must go with an embedding. Got --method {type(model).__name__}, a classifier.")
    table = _table(options)
    if options.sample is not None:
        table = _sample(table, options.sample)
    model.fit(table.X, table.labels)
    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)  # as scikit-learn does for data frames
    save(model, options.output)
    columns = table.X.shape[1]
    shape = f"{len(table.X)} rows, {columns} column{'' if columns == 1 else 's'}"
    print(f"{type(model).__name__} of {shape}: {options.output}")
    if options.embedding:
        write_table(options.embedding, Table(model.embedding_, _names_out(model), table.ids, table.id_name))
        print(f"embedding: {options.embedding}")
    if options.picture:
        from manifast.plotting import plot_embedding

        shown = plot_embedding(model.embedding_, table.labels, title=type(model).__name__)
        shown.figure.savefig(options.picture, dpi=120)
        print(f"picture: {options.picture}")
    return 0


def _sample(table: Table, count: int) -> Table:
    from manifast.scale import sample_rows

    rows = sample_rows(np.arange(len(table.X)), count)
    ids, labels = (None if values is None else values[rows] for values in (table.ids, table.labels))
    return replace(table, X=np.asarray(table.X[rows]), ids=ids, labels=labels)


def _transform(options: argparse.Namespace) -> int:
    from manifast import load

    check_output(options.output)
    if not Path(options.model).is_file():
        raise ValueError(f"{options.model} must be a model that manifast saved. There is no such file.")
    if Path(options.output).exists() and Path(options.output).samefile(options.data):
        raise ValueError(f"--output must be another file than DATA. Got {options.output!r} for both.")
    model = load(options.model)
    names_in = getattr(model, "feature_names_in_", None)
    only = None if names_in is None else [str(name) for name in names_in]
    table = read_table(options.data, ids=options.id, drop=options.drop, only=only)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        if Path(options.output).suffix.lower() == ".npy":
            from manifast.scale import transform_to

            transform_to(model, table.X, options.output, verbose=options.verbose)  # rows may be more than memory holds
        else:
            names = _names_out(model) if hasattr(model, "transform") else ["predicted"]
            mapped = model.transform(table.X) if hasattr(model, "transform") else np.asarray(model.predict(table.X))
            write_table(options.output, Table(mapped, names, table.ids, table.id_name))
    print(f"{len(table.X)} rows: {options.output}")
    return 0


def _names(text: str) -> list[str]:
    """Names of methods, separated by commas, which some of them hold."""
    from manifast.model_selection import default_methods

    known = {name for kind in ("all", "some", "none") for name in default_methods(kind)}
    names: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if names and f"{names[-1]}, {part}" in known:
            names[-1] += f", {part}"
        else:
            names.append(part)
    return names


def _compare(options: argparse.Namespace) -> int:
    from manifast.model_selection import compare

    if options.html:
        check_output(options.html, ".html")
    table = _table(options)
    methods = None if options.methods is None else _names(options.methods)
    found = compare(table.X, table.labels, methods, options.folds, verbose=options.verbose)
    print(found)
    if options.html:
        from manifast.page import comparison_page

        Path(options.html).write_text(comparison_page(found, table.X, table.labels, options.data), encoding="utf-8")
        print(f"\npage: {options.html}")
    return 0


def _table(options: argparse.Namespace) -> Table:
    more: dict[str, Any] = {"ids": options.id, "drop": options.drop}
    if options.labels is None:
        return read_table(options.data, **more)
    return read_labels(options.labels, options.data, **more)


def _estimator(name: str, settings: list[str], verbose: int) -> Any:
    """An estimator by name, its parameters as NAME=VALUE."""
    from manifast import classifiers, embeddings

    known = {
        found: getattr(module, found)
        for module in (embeddings, classifiers)
        for found in module.__all__
        if isinstance(getattr(module, found), type)
    }
    lowered = {found.lower(): found for found in known}
    if name.lower() not in lowered:
        near = [lowered[one] for one in get_close_matches(name.lower(), lowered, 3, 0.5)]
        if near:
            hint = f"Did you mean {' or '.join(near)}? `manifast embed --help` says more."
        else:
            hint = f"There are {', '.join(sorted(known))}."
        raise ValueError(f"--method must name an estimator of manifast. Got {name!r}. {hint}")
    kind = known[lowered[name.lower()]]
    values = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE. Got {setting!r} instead.")
        values[key.strip()] = _value(text.strip())
    try:
        model = kind()
    except TypeError:
        needs = "an embedder or objective that the command line cannot give"
        raise ValueError(f"--method {kind.__name__} needs {needs}; use it from Python.") from None
    parameters = model.get_params(deep=False)
    for key in values:
        if key not in parameters:
            near = get_close_matches(key, parameters, 1) or sorted(parameters)
            raise ValueError(f"--set must name a parameter of {kind.__name__}: {', '.join(near)}. Got {key!r} instead.")
    if verbose and "verbose" in parameters:
        values.setdefault("verbose", verbose)
    return model.set_params(**values)


def _value(text: str) -> Any:
    """A number, None, True, a list of them, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _names_out(model: Any) -> list[str]:
    return [str(name) for name in model.get_feature_names_out()]


def _say_warning(message: Any, category: Any, *_: Any) -> None:
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)
