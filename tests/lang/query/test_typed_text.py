"""The text of a checked expression means that expression."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from lang.query.test_random_queries import Writer
from omnigraph.errors import InvalidQuery
from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import And, Expr, Or, ReadQuery
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.lang.schema.catalog import Catalog

DECLARED = "$a: Vessel  $b: Vessel  $c: Port  $d: Sailor  $a $e:follows $b"


def filters(catalog: Catalog, text: str) -> tuple[Expr, ...]:
    query = check(f"query q($p: String?, $n: I64) {{ match {{ {DECLARED}  {text} }} return {{ $a }} }}", catalog)[0]
    assert isinstance(query, ReadQuery)
    return query.pattern.filters


def flat(tree: Any) -> Any:
    """A tree in which chains of `and` and of `or` lean nowhere."""
    if isinstance(tree, And | Or):
        parts = [flat(tree.left), flat(tree.right)]
        kind = type(tree).__name__
        inner = [each[1:] if isinstance(each, tuple) and each[0] == kind else (each,) for each in parts]
        return (kind, *(part for each in inner for part in each))
    if is_dataclass(tree):
        return (type(tree).__name__ + "()", *(flat(getattr(tree, field.name)) for field in fields(tree)))
    return tree


@pytest.mark.parametrize("seed", range(8))
def test_the_text_of_a_checked_filter_checks_to_the_same_filter(seed: int, catalog: Catalog) -> None:
    writer = Writer(random.Random(seed))
    judged = 0
    for _ in range(150):
        try:
            known = filters(catalog, writer.test(3))
        except InvalidQuery:
            continue
        judged += 1
        text = "  ".join(f"({typed_text(each)})" for each in known)
        assert [flat(each) for each in filters(catalog, text)] == [flat(each) for each in known], text
    assert judged > 5


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('($a.imo = 1 or $a.imo = 2) and $a.title = "x"', ["$a.imo = 1 or $a.imo = 2", '$a.title = "x"']),
        ("not ($a.imo = 1 or $b.imo = 2)", ["not ($a.imo = 1 or $b.imo = 2)"]),
        ("$a.imo = 1 or ($a.imo = 2 or $a.imo = 3)", ["$a.imo = 1 or $a.imo = 2 or $a.imo = 3"]),
        ('$a.built > date("2024-01-05")', ['$a.built > date("2024-01-05")']),
        ('$a.title contains "q\\""', ['contains($a.title, "q\\"")']),
        ('"x" in $a.tags', ['"x" in $a.tags']),
        ("$a.tonnage in [1, 2.5, 1e10]", ["$a.tonnage in [1, 2.5, 1.0e10]"]),
        ("$e.@src != $p", ["$e.@src != $p"]),
        ("not $a.note is null", ["not $a.note is null"]),
        ("(1 < 2) = true", ["(1 < 2) = true"]),
    ],
)
def test_texts_are_canonical(catalog: Catalog, written: str, shown: list[str]) -> None:
    assert [typed_text(each) for each in filters(catalog, written)] == shown


def test_a_long_chain_needs_no_deep_recursion(catalog: Catalog) -> None:
    chain = " or ".join(f"$a.imo = {number}" for number in range(3_000))
    assert typed_text(filters(catalog, chain)[0]) == chain
