"""What the API reference promises for every estimator and map: a formula, a source, what it costs, and an example."""

from __future__ import annotations

import inspect
import re

import pytest

from manifast import classifiers, embeddings, extensions

KINDS = [
    kind
    for module in (embeddings, classifiers, extensions)
    for kind in (getattr(module, name) for name in module.__all__)
    if isinstance(kind, type) and kind is not extensions.Extension
]
ANY = {embeddings.OutOfSample}  # has no method of its own
# An equation, or the number of one in its paper.
FORMULA = re.compile(r"\S = \S|\bmin tr |tr\(|\beqs?\. \d|\bequation \d|\(10\)")
# Where it comes from: a year, a paper by its short name, or the estimator that it builds on.
SOURCE = re.compile(r"\b(19|20)\d\d\b|\b(NSSE|LGRM|SEE|THEORY|SPARSE)\b|`[A-Z]\w+`")
COST = re.compile(r"Cost: .*O\(", re.DOTALL)


def lacks(doc: str) -> list[str]:
    """What a docstring lacks."""
    before = doc.partition("\nParameters\n")[0]
    found = {
        "a formula": FORMULA.search(before),
        "a source": SOURCE.search(before),
        "its cost": COST.search(doc.partition("\nNotes\n")[2]),
        "an example": ">>>" in doc.partition("\nExamples\n")[2],
        "its parameters": "\nParameters\n" in doc,
    }
    return [name for name, there in found.items() if not there]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_formula_source_cost_and_example(kind):
    assert "eq. " not in (inspect.getdoc(kind) or "").splitlines()[0]  # tables of names would end there
    assert set(lacks(inspect.getdoc(kind) or "")) <= ({"a source"} if kind in ANY else set())


def test_what_is_missing_is_seen():
    whole = inspect.getdoc(embeddings.LGRM) or ""
    assert lacks(whole) == []
    assert lacks(re.sub(r"min tr .*I|eqs?\. ", "", whole)) == ["a formula"]
    assert lacks(whole.replace("O(", "o(")) == ["its cost"]
    assert lacks(whole.partition("\nExamples\n")[0]) == ["an example"]
    assert len(lacks("Does things.\n")) == 5
