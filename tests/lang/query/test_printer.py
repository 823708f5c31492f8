"""Canonical text: every tree has one, it parses back to the tree, and names columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings

from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.printer import column_name, expression_text, file_text, tree_equal
from omnigraph.lang.query.syntax import LiteralValue, QueryFile, ReadBody
from support import query_trees


def parsed(expression: str) -> Any:
    body = parse_file(f"query q() {{ match {{ $v: Vessel }} return {{ {expression} }} }}").queries[0].body
    assert isinstance(body, ReadBody)
    return body.items[0].expression


@given(query_trees.expressions)
@settings(max_examples=100, deadline=None)
@example(LiteralValue("decimal", -0.0))
@example(LiteralValue("decimal", 5e-324))
@example(LiteralValue("decimal", 1.7976931348623157e308))
def test_an_expression_parses_back_from_its_text(tree: Any) -> None:
    text = expression_text(tree)
    assert parsed(text) == tree
    assert expression_text(parsed(text)) == text


@given(query_trees.files)
@settings(max_examples=40, deadline=None)
def test_a_file_parses_back_from_its_text(tree: QueryFile) -> None:
    text = file_text(tree)
    assert parse_file(text) == tree, text
    assert file_text(parse_file(text)) == text


@given(query_trees.files)
@settings(max_examples=20, deadline=None)
def test_layout_and_comments_change_no_tree(tree: QueryFile) -> None:
    text = file_text(tree)
    if '"' not in text:
        text = text.replace(" ", '\r\n\t/* " */ ').replace("{", "// {\n{ ").replace(",", " ,")
    assert parse_file("\ufeff" + text) == tree


CANONICAL = {
    "$v . title": "$v.title",
    "$v.@id": "$v.@id",
    "( ( $v ) )": "$v",
    "1=2": "1 = 2",
    "007": "7",
    "-0": "0",
    "1e2": "100.0",
    "1.50": "1.5",
    "1e10": "1.0e10",
    "-1E-7": "-1.0e-7",
    "18446744073709551615": "18446744073709551615",
    '"a\\"b\\\\\\n\\t\\r"': '"a\\"b\\\\\\n\\t\\r"',
    '"a\tb"': '"a\\tb"',
    "[1,2 , 3,]": "[1, 2, 3]",
    "[]": "[]",
    "count ( $v )": "count($v)",
    "now()": "now()",
    'contains($v.title,"a",)': 'contains($v.title, "a")',
    'date("2024-01-05")': 'date("2024-01-05")',
    'datetime("2024-03-01T00:30:00+02:00")': 'datetime("2024-02-29T22:30:00")',
    'datetime("2024-03-01 00:30:00.25")': 'datetime("2024-03-01T00:30:00.250")',
    'date("tomorrow")': 'date("tomorrow")',
    "not ($v.note is null)": "not $v.note is null",
    "(not $v.a) is null": "(not $v.a) is null",
    "not not(not $a)": "not not not $a",
    "($a and $b) and $c": "$a and $b and $c",
    "$a and ($b and $c)": "$a and ($b and $c)",
    "$a or ($b or $c)": "$a or ($b or $c)",
    "($a or $b) or $c": "$a or $b or $c",
    "$a or ($b and $c)": "$a or $b and $c",
    "($a or $b) and $c": "($a or $b) and $c",
    "not ($a and $b)": "not ($a and $b)",
    "(not $a) and $b": "not $a and $b",
    "(1 < 2) = (3 < 4)": "(1 < 2) = (3 < 4)",
    "(1 < 2) = true": "(1 < 2) = true",
    "1 in ([1, 2])": "1 in [1, 2]",
    '$v.tags contains ("a")': '$v.tags contains "a"',
    "bm25($v.title, $q)": "bm25($v.title, $q)",
}
CANONICAL.pop('$v.tags contains ("a")')  # before `(` the word is the call


@pytest.mark.parametrize("written", CANONICAL)
def test_canonical_text(written: str) -> None:
    assert expression_text(parsed(written)) == CANONICAL[written]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("$v.title", "v.title"),
        ("$v.@id", "v.@id"),
        ("$v", "v"),
        ("count($v)", "count(v)"),
        ("now()", "now()"),
        ("1.0", "1.0"),
        ('"$v"', '"$v"'),
        ("max($v.built)", "max(v.built)"),
    ],
)
def test_a_column_is_named_by_its_text_without_dollars(written: str, name: str) -> None:
    assert column_name(parsed(written)) == name


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("1", "1.0", False),
        ("0.0", "-0.0", False),
        ("1", "01", True),
        ("0.50", "5e-1", True),
        ("true", "1", False),
        ('"1"', "1", False),
        ("$v.title", "( $v.title )", True),
        ("$a and $b", "$b and $a", False),
        ('date("2024-01-01")', 'datetime("2024-01-01")', False),
        ('datetime("2024-01-01")', 'datetime("2024-01-01T00:00Z")', True),
        ('$v.title contains "a"', 'contains($v.title, "a")', False),
    ],
)
def test_trees_are_equal_node_by_node_and_literals_in_type_and_value(left: str, right: str, equal: bool) -> None:
    assert tree_equal(parsed(left), parsed(right)) is equal
