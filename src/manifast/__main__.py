"""``python -m manifast``: see `manifast.cli`."""

from manifast.cli import main

raise SystemExit(main(prog="python -m manifast"))
