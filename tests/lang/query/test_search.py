"""Search and ranking calls that are right: what they are typed as, and where they may stand (languages.md 12)."""

from __future__ import annotations

import pytest

from omnigraph.lang.query.check import check
from omnigraph.lang.query.operation import describe
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.printer import column_name, file_text
from omnigraph.lang.query.syntax import ReadBody
from omnigraph.lang.query.typed import (
    Bm25,
    Compare,
    Constant,
    Expr,
    Fused,
    Nearest,
    OrderKey,
    Param,
    PropertyRef,
    ReadQuery,
    TextSearch,
)
from omnigraph.lang.query.typed_text import typed_text
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import BOOL, F64, I64, STRING, Scalar, ValueType, scalar

TITLE = PropertyRef("v", "title", STRING)
HULL = PropertyRef("v", "hull", ValueType("vector", Scalar.F32, nullable=True, dimension=2))
F32 = scalar(Scalar.F32)
ALMA = Constant("alma", STRING)
ORIGIN = Constant((0, 1), ValueType("list", Scalar.I64))

NEAR = "nearest($v.hull, [0, 1])"
ALIKE = 'bm25($v.title, "alma")'


def read(block: str, tail: str, catalog: Catalog, params: str = "") -> ReadQuery:
    (query,) = check(f"query q({params}) {{ match {{ {block} }} {tail} }}", catalog)
    assert isinstance(query, ReadQuery)
    return query


def filters(block: str, catalog: Catalog, params: str = "") -> tuple[Expr, ...]:
    return read(f"$v: Vessel  {block}", "return { $v }", catalog, params).pattern.filters


def order(keys: str, catalog: Catalog, params: str = "", *, items: str = "$v.title") -> tuple[OrderKey, ...]:
    return read("$v: Vessel", f"return {{ {items} }} order {{ {keys} }} limit 5", catalog, params).order


# --- predicates


def test_predicates_keep_their_names(catalog: Catalog) -> None:
    for call in ("search", "match_text", "fuzzy"):
        assert filters(f'{call}($v.title, "alma")', catalog) == (TextSearch(call, TITLE, ALMA, BOOL),)


def test_a_predicate_is_a_conjunct_bare_however_it_was_joined_and_compared(catalog: Catalog) -> None:
    bare = TextSearch("search", TITLE, ALMA, BOOL)
    text = 'search($v.title, "alma")'
    assert filters(f"{text} = true", catalog) == (bare,)
    for written in (f"({text}) and ($v.imo = 1)", f"({text} = (true) and $v.imo = 1)", f"{text}  $v.imo = 1"):
        first, second = filters(written, catalog)
        assert first == bare
        assert isinstance(second, Compare)
    assert filters(f"$v.imo = 1 and ({text} and {text} = true)", catalog)[1:] == (bare, bare)


def test_a_predicate_may_be_null_where_its_operands_may(catalog: Catalog) -> None:
    (found,) = filters("search($v.title, $q)", catalog, "$q: String?")
    assert found == TextSearch("search", TITLE, Param("q", STRING.with_nullable(True)), BOOL.with_nullable(True))


def test_fuzzy_takes_its_edits_from_a_literal_or_a_parameter_or_leaves_them_open(catalog: Catalog) -> None:
    for edits in (0, 1, 2):
        (found,) = filters(f'fuzzy($v.title, "alma", {edits})', catalog)
        assert found == TextSearch("fuzzy", TITLE, ALMA, BOOL, Constant(edits, I64))
    (found,) = filters('fuzzy($v.title, "alma", $n)', catalog, "$n: U32?")
    assert found == TextSearch("fuzzy", TITLE, ALMA, BOOL, Param("n", scalar(Scalar.U32, nullable=True)))
    assert filters('fuzzy($v.title, "alma",)', catalog) == (TextSearch("fuzzy", TITLE, ALMA, BOOL),)


def test_a_predicate_may_ask_for_any_node_of_the_pattern_and_of_a_block(catalog: Catalog) -> None:
    port = PropertyRef("p", "title", STRING)
    query = read('$v callsAt $p  search($p.title, "alma")', "return { $v }", catalog)
    assert query.pattern.filters == (TextSearch("search", port, ALMA, BOOL),)
    for opening, closing in (("not", ""), ("exists", ""), ("count", " > 1"), ("sum($v.tonnage)", " > 1")):
        block = f'{opening} {{ $v callsAt $p  search($p.title, "alma") }}{closing}'
        (nested,) = read(f"$v: Vessel  {block}", "return { $v }", catalog).pattern.blocks
        assert nested.pattern.filters == (TextSearch("search", port, ALMA, BOOL),)


def test_a_block_may_ask_for_a_node_from_outside(catalog: Catalog) -> None:
    for block in ('not { $v: Vessel  search($v.title, "alma") }', 'not { $v callsAt $_  search($v.title, "alma") }'):
        (nested,) = read(f"$v: Vessel  {block}", "return { $v }", catalog).pattern.blocks
        assert nested.negated
        assert TextSearch("search", TITLE, ALMA, BOOL) in nested.pattern.filters


def test_a_key_of_one_property_is_searched_without_an_index_of_its_own() -> None:
    from omnigraph.lang.schema.compile import compile_schema
    from support.schemas import counter

    keyed = compile_schema("node Tag { name: String @key  note: String? @index }", mint=counter())
    for name in ("name", "note"):
        assert check(f'query q() {{ match {{ $t: Tag  search($t.{name}, "a") }} return {{ $t }} }}', keyed)


# --- ranks


@pytest.mark.parametrize(
    ("query", "params", "typed"),
    [
        ("[0, 1]", "", ORIGIN),
        ("[0, 1.5]", "", Constant((0, 1.5), ValueType("list", Scalar.F64))),
        ("$h", "$h: Vector(2)?", Param("h", ValueType("vector", Scalar.F32, nullable=True, dimension=2))),
        ('"alma"', "", ALMA),
        ("$q", "$q: String", Param("q", STRING)),
    ],
)
def test_nearest_measures_from_a_vector_or_a_text(query: str, params: str, typed: Expr, catalog: Catalog) -> None:
    assert order(f"nearest($v.hull, {query})", catalog, params) == (OrderKey(Nearest(HULL, typed, F32), False),)


def test_a_rank_has_its_best_first(catalog: Catalog) -> None:
    alike = Bm25(TITLE, ALMA, F32)
    assert order(NEAR, catalog) == (OrderKey(Nearest(HULL, ORIGIN, F32), False),)
    assert order(ALIKE, catalog) == order(f"{ALIKE} desc", catalog) == (OrderKey(alike, True),)
    fused = OrderKey(Fused(Nearest(HULL, ORIGIN, F32), alike, Constant(60, I64), F64), True)
    assert order(f"rrf({NEAR}, {ALIKE})", catalog) == order(f"rrf({NEAR}, {ALIKE}) desc", catalog) == (fused,)


def test_rrf_takes_its_constant_from_a_literal_or_a_parameter(catalog: Catalog) -> None:
    for written, params, typed in (
        ("7", "", Constant(7, I64)),
        ("$k", "$k: I64?", Param("k", I64.with_nullable(True))),
    ):
        (key,) = order(f"rrf({ALIKE}, {ALIKE}, {written})", catalog, params)
        assert isinstance(key.expr, Fused)
        assert key.expr.k == typed


def test_a_rank_is_followed_by_other_keys(catalog: Catalog) -> None:
    query = read("$v: Vessel", f"return {{ $v.title, {ALIKE} as s }} order {{ {ALIKE}, $v.imo desc, s }}", catalog)
    assert [(key.descending, key.item) for key in query.order] == [(True, 1), (True, None), (False, 1)]
    assert query.items[1].expr == query.order[0].expr == Bm25(TITLE, ALMA, F32)


def test_bm25_needs_no_limit(catalog: Catalog) -> None:
    assert read("$v: Vessel", f"return {{ $v.title }} order {{ {ALIKE} }}", catalog).limit is None


def test_a_returned_rank_equals_the_first_key_whatever_its_layout(catalog: Catalog) -> None:
    tail = f"return {{ ({NEAR}) }} order {{ nearest($v . hull, [0,1,]) }} limit $n"
    (item,) = read("$v: Vessel", tail, catalog, "$n: I64").items
    assert (item.name, item.expr) == ("v._distance", Nearest(HULL, ORIGIN, F32))


def test_a_score_may_be_compared_where_it_may_be_returned(catalog: Catalog) -> None:
    tail = f"return {{ {ALIKE} > 0.5 as good }} order {{ {ALIKE} }}"
    (item,) = read("$v: Vessel", tail, catalog).items
    assert isinstance(item.expr, Compare)
    assert item.expr.left == Bm25(TITLE, ALMA, F32)
    assert item.expr.type == BOOL


def test_scores_are_named_like_properties(catalog: Catalog) -> None:
    query = read("$v: Vessel", f"return {{ {ALIKE} }} order {{ {ALIKE} }}", catalog)
    assert query.items[0].name == "v._score"
    body = parse_file(f"query q() {{ match {{ $v: Vessel }} return {{ {NEAR} }} }}").queries[0].body
    assert isinstance(body, ReadBody)
    assert column_name(body.items[0].expression) == "v._distance"


def test_a_score_is_a_float_that_is_never_null(catalog: Catalog) -> None:
    query = read("$v: Vessel", f"return {{ {NEAR} }} order {{ {NEAR} }} limit 3", catalog)
    (field,) = describe(query, catalog).result
    assert (field.name, field.kind, field.nullable) == ("v._distance", "float", False)


# --- texts


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('search($v.title,"a")', 'search($v.title, "a")'),
        ('match_text($v.title, "a") = true', 'match_text($v.title, "a")'),
        ('fuzzy($v.title, "a", 1)', 'fuzzy($v.title, "a", 1)'),
        ('fuzzy($v.title, "a")', 'fuzzy($v.title, "a")'),
    ],
)
def test_the_text_of_a_predicate_is_canonical(written: str, shown: str, catalog: Catalog) -> None:
    assert [typed_text(each) for each in filters(written, catalog)] == [shown]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (NEAR, NEAR),
        ("nearest($v.hull, $h)", "nearest($v.hull, $h)"),
        (ALIKE, ALIKE),
        (f"rrf({NEAR}, {ALIKE}, 7)", f"rrf({NEAR}, {ALIKE}, 7)"),
        (f"rrf({NEAR}, {ALIKE})", f"rrf({NEAR}, {ALIKE}, 60)"),
    ],
)
def test_the_text_of_a_rank_is_canonical(written: str, shown: str, catalog: Catalog) -> None:
    (key,) = order(written, catalog, "$h: Vector(2)")
    assert typed_text(key.expr) == shown
    (again,) = order(shown, catalog, "$h: Vector(2)")
    assert again == key


def test_the_hybrid_query_of_the_chapter_checks_and_prints(catalog: Catalog) -> None:
    source = """query hybrid($v: Vector(2), $words: String, $country: String) {
  match {
    $p: Port { country: $country }
    $s: Vessel { status: "active" }
    $s callsAt $p
  }
  return { $s.title, $p.title }
  order { rrf(nearest($s.hull, $v), bm25($s.title, $words)), $p.title }
  limit 10
}
"""
    (query,) = check(source, catalog)
    assert isinstance(query, ReadQuery)
    assert [isinstance(key.expr, Fused) for key in query.order] == [True, False]
    assert file_text(parse_file(source)) == source
