"""The tables and figures of the five papers, each by one command.

    python -m benchmarks.papers list
    python -m benchmarks.papers run nsse-table2 sparse-fig8 --data DIR --splits 3
    python -m benchmarks.papers run all --quick

    __main__    the command line
    summary, nsse, lgrm, see, theory, sparse    what is measured: families of cells, and experiments
    supervised  supervised methods on images, which NSSE's tables and the summary share
    choice      methods with grids, and parameters chosen on training rows
    data        image sets by name, and splits
    model       what a family and an experiment are
    runner      computes the cells that are missing, each written to a file of its own as soon as it is done
    report      Markdown, JSON and PNG from finished cells

A cell is one method on one setting and one split. Modules import those below them only.
"""
