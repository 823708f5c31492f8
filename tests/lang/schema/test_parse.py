"""`.pg` text reads as the grammar says (languages.md 3); what it refuses stands in `refused.cases`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidSchema
from omnigraph.lang.diagnostics import Span
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.parse import parse_schema
from omnigraph.lang.schema.syntax import EnumSyntax, NodeDecl, Value, Word
from support.schemas import HARBOUR, counter, schema_texts


def node(text: str) -> NodeDecl:
    (declaration,) = parse_schema(text).nodes
    return declaration


def names(declaration: NodeDecl) -> list[str]:
    return [declared.name.text for declared in declaration.properties]


def test_an_empty_text_is_a_schema_without_types() -> None:
    for text in ("", "\ufeff", " \n", "// nothing", "/* nothing */"):
        assert parse_schema(text).declarations == ()


def test_a_schema_may_come_as_bytes() -> None:
    assert parse_schema(HARBOUR.encode()) == parse_schema(HARBOUR)


def test_declarations_keep_their_order_and_places() -> None:
    syntax = parse_schema(HARBOUR)
    words = ["Named", "Vessel", "Port", "Sailor", "CallsAt", "Follows", "Tows", "ServesOn"]
    assert [declaration.name.text for declaration in syntax.declarations] == words
    for declaration in syntax.declarations:
        text = HARBOUR[declaration.span.start : declaration.span.end]
        assert text.startswith(("interface", "node", "edge"))
        assert text.endswith(("}", ")"))


def test_commas_between_members_are_optional_and_lists_may_end_in_one() -> None:
    loose = node("node A { a: I32 b: I32 @unique(a, b) @range(a, 0..1) }")
    tight = node("node A{a:I32,b:I32,@unique(a,b,),@range(a,0..1,),}")
    assert names(loose) == names(tight) == ["a", "b"]
    assert len(tight.groups) == len(tight.ranges) == 1
    assert node('node A implements I, J, { a: enum(x, y,) b: String @check(b, "x",) }').implements


def test_an_annotation_with_a_parenthesis_opens_a_rule_if_it_is_one_of_six() -> None:
    declaration = node("node A { a: String @unique(a, b) b: String @unique @index /* , */ (b) }")
    assert [note.name for declared in declaration.properties for note in declared.notes] == ["unique"]
    assert [(group.kind, len(group.members)) for group in declaration.groups] == [("unique", 2), ("index", 1)]


def test_a_note_takes_a_constant_or_a_name_and_named_constants() -> None:
    (declared,) = node('node A { a: I32 @x @y(word) @z("t", b=1, c=-2.5, d=true) @src }').properties
    bare, word, full, end = declared.notes
    assert (bare.name, bare.argument, bare.named) == ("x", None, ())
    assert isinstance(word.argument, Word)
    assert isinstance(full.argument, Value)
    assert [(named.name.text, named.value.value) for named in full.named] == [("b", 1), ("c", -2.5), ("d", True)]
    assert end.name == "src"


def test_true_and_false_are_constants_in_notes_and_names_elsewhere() -> None:
    (declared,) = node("node A { true: Bool @x(true) @unique(true) }").properties
    assert declared.notes[0].argument == Value(True, Span(23, 27))


def test_keywords_are_names_where_a_name_may_stand() -> None:
    text = "node A { node: I32 edge: I32 interface: I32 implements: I32 enum: enum(enum) id: I32 src: I32 and: I32 }"
    assert names(node(text)) == ["node", "edge", "interface", "implements", "enum", "id", "src", "and"]
    assert names(node("node A { a: String @key node: Bool @x edge: I32 @y(1) interface: I32 }")) == [
        "a",
        "node",
        "edge",
        "interface",
    ]


def test_a_keyword_ends_where_a_name_would_end() -> None:
    assert code_of("nodeA { }") == code_of("node A implementsB { }") == "S001"


def test_variants_are_words_that_stand_nowhere_else() -> None:
    (declared,) = node("node A { a: enum(laid-up, 2nd, -, 1e999, -5, true, Ab_c) }").properties
    assert isinstance(declared.type.form, EnumSyntax)
    assert [word.text for word in declared.type.form.variants] == ["laid-up", "2nd", "-", "1e999", "-5", "true", "Ab_c"]


def test_notes_of_a_node_stand_on_both_sides_of_implements() -> None:
    declaration = node('node A @x implements B @description("y") @z { }')
    assert [note.name for note in declaration.notes] == ["x", "description", "z"]


def test_an_edge_needs_no_body_and_mixes_its_card_with_notes() -> None:
    first, second = parse_schema('edge E: A -> B @x @card(0..1) @description("y") edge F: A -> B @card(2..) { }').edges
    assert [note.name for note in first.notes] == ["x", "description"]
    assert [(card.low, card.high) for edge in (first, second) for card in edge.cards] == [(0, 1), (2, None)]


def test_bounds_of_a_range_are_signed_and_either_may_be_absent() -> None:
    ranges = node("node A { a: I32 @range(a, -10..-3) @range(a, ..5) @range(a, 1.5..) }").ranges
    bounds = [(rule.low.value if rule.low else None, rule.high.value if rule.high else None) for rule in ranges]
    assert bounds == [(-10, -3), (None, 5), (1.5, None)]


@given(schema_texts())
def test_every_legal_text_parses_to_places_inside_it(text: str) -> None:
    for declaration in parse_schema(text).declarations:
        assert text[declaration.name.span.start : declaration.name.span.end] == declaration.name.text


def code_of(text: str) -> str | None:
    try:
        parse_schema(text)
    except InvalidSchema as refusal:
        return refusal.diagnostic.code
    return None


def test_a_text_may_nest_and_repeat_without_end_before_it_is_refused() -> None:
    with pytest.raises(InvalidSchema) as caught:
        compile_schema(f"node A {{ a: {'[' * 3_000}I32{']' * 3_000} }}", mint=counter())
    assert caught.value.diagnostic.code == "S006"
    assert code_of("node A { a: " + "[" * 3_000) == "S001"
    assert code_of("node A @description(" + '"' + "\\n" * 20_000) == "S001"
    assert code_of("/*" * 20_000) == "S001"


@given(st.data())
def test_a_broken_text_is_refused_and_nothing_else_happens(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(HARBOUR)))
    end = data.draw(st.integers(start, min(start + 8, len(HARBOUR))))
    junk = data.draw(st.sampled_from(["", "@", "(", ")", "}", '"', "@key", "enum", "é", "..", "-", "/*", ","]))
    assert code_of(HARBOUR[:start] + junk + HARBOUR[end:]) in (None, "S001")
