"""What a schema means (languages.md 4): the catalog of a text."""

from __future__ import annotations

import pytest

from omnigraph.lang.schema.catalog import Arguments, BareWord, Catalog, Embed, NodeType, RangeRule
from omnigraph.lang.schema.compile import compile_schema
from support.schemas import HARBOUR, counter


def compiled(text: str) -> Catalog:
    return compile_schema(text, mint=counter())


def node(text: str) -> NodeType:
    (found,) = compiled(text).nodes.values()
    return found


def names(text: str, of: str = "A") -> list[str]:
    return [declared.name for declared in compiled(text).nodes[of].properties]


def test_the_harbour_compiles() -> None:
    catalog = compiled(HARBOUR)
    vessel = catalog.nodes["Vessel"]
    assert [f"{declared.name}: {declared.type.spelling()}" for declared in vessel.properties] == [
        "imo: U32",
        "tonnage: F64?",
        "draught: F32?",
        "built: Date?",
        "status: enum(active, laid-up, scrapped)",
        "tags: [String]?",
        "hull: Vector(2)?",
        "papers: Blob?",
        "title: String",
        "note: String?",
    ]
    assert vessel.key == ("imo",)
    assert vessel.indexes == (("hull",), ("title",))
    assert [declared.name for declared in vessel.properties if declared.indexed] == ["imo", "hull", "title"]
    assert vessel.ranges == (RangeRule("tonnage", 0.0, None),)
    assert catalog.nodes["Port"].key == ("code", "country")
    assert catalog.edges["Tows"].key == ("@src", "@dst")
    assert catalog.edges["ServesOn"].cardinality == (0, 1)
    assert catalog.edges["CallsAt"].cardinality == (0, None)
    assert (catalog.edges["CallsAt"].source, catalog.edges["CallsAt"].target) == ("Vessel", "Port")


def test_every_type_and_property_has_an_id_of_its_own() -> None:
    catalog = compiled(HARBOUR)
    types = [*catalog.nodes.values(), *catalog.edges.values(), *catalog.interfaces.values()]
    ids = [of.id for of in types] + [declared.id for of in types for declared in of.properties]
    assert len(ids) == len(set(ids))
    assert all(len(one) == 16 for one in ids)


def test_an_empty_schema_is_legal() -> None:
    assert compiled("") == Catalog({}, {}, {})


def test_declarations_refer_to_each_other_in_any_order() -> None:
    assert compiled("edge E: A -> A node A implements I { } interface I { }").edges["E"].source == "A"


def test_a_node_type_and_an_edge_type_may_share_a_name() -> None:
    catalog = compiled("node Tow { } edge Tow: Tow -> Tow")
    assert list(catalog.nodes) == list(catalog.edges) == ["Tow"]


def test_node_type_names_differ_by_case() -> None:
    assert list(compiled("node Aa { } node AA { }").nodes) == ["Aa", "AA"]


@pytest.mark.parametrize(
    "spelling",
    "String Bool? I32 I64 U32 U64? F32 F64 Date DateTime Blob [I32] [DateTime]? Vector(1) Vector(2147483647)? "
    "enum(a) enum(a,b-c)?".split(),
)
def test_every_type_is_known(spelling: str) -> None:
    (declared,) = node(f"node A {{ a: {spelling} }}").properties
    assert declared.type.spelling().replace(" ", "") == spelling


def test_an_enum_is_a_set() -> None:
    (one,), (other,) = (node(f"node A {{ a: enum({v}) }}").properties for v in ("b, a, C", "C, a, b,"))
    assert one.type == other.type
    assert one.type.variants == ("C", "a", "b")


def test_reserved_words_of_queries_are_ordinary_property_names() -> None:
    assert names("node A { id: I32 src: I32 dst: I32 type: I32 true: I32 and: I32 from: I32 to: I32 }")
    assert compiled("node A { } edge E: A -> A { id: I32 src: I32 dst: I32 }").edges["E"].properties


# --- interfaces


def test_injected_properties_follow_own_ones_in_the_order_of_implements() -> None:
    text = "interface I { x: I32 y: I32 } interface J { z: I32 } node A implements J, I { b: I32 a: I32 }"
    assert names(text) == ["b", "a", "z", "x", "y"]


def test_a_property_that_the_type_declares_itself_keeps_its_own_annotations() -> None:
    text = 'interface I { a: I32 @key @index @description("i") } node A implements I { a: I32 @unique }'
    found = compiled(text).nodes["A"]
    assert (found.key, found.uniques, found.indexes) == ((), (("a",),), ())
    assert found.properties[0].injected_by == ()
    assert found.properties[0].description is None


def test_an_injected_property_comes_with_the_annotations_of_its_interface() -> None:
    text = """interface I { a: I32 @key @description("i") @shown  t: String  v: Vector(2)? @embed("t", model="m") @index }
    node A implements I { }"""
    found = compiled(text).nodes["A"]
    assert found.key == ("a",)
    assert found.properties[0].injected_by == ("I",)
    assert found.properties[0].description == "i"
    assert found.properties[0].annotations == (("shown", None),)
    assert found.properties[2].embed == Embed("t", "m")
    assert found.indexes == (("v",),)


def test_the_source_of_an_injected_embedding_may_be_the_types_own() -> None:
    text = 'interface I { v: Vector(2)? @embed("t") } node A implements I { t: String }'
    assert compiled(text).nodes["A"].properties[1].embed == Embed("t")


def test_a_name_that_two_interfaces_inject_gets_the_union_of_their_notes() -> None:
    text = """interface I { a: I32 @unique @x } interface J { a: I32 @index @unique @description("j") @x(2) @y }
    node A implements I, J { }"""
    found = compiled(text).nodes["A"]
    assert names(text) == ["a"]
    assert (found.uniques, found.indexes) == ((("a",),), (("a",),))
    (declared,) = found.properties
    assert (declared.injected_by, declared.indexed, declared.description) == (("I", "J"), True, "j")
    assert declared.annotations == (("x", None), ("y", None))


def test_a_key_that_two_interfaces_inject_is_one_key() -> None:
    text = "interface I { a: I32 @key } interface J { a: I32 @key } node A implements I, J { }"
    assert compiled(text).nodes["A"].key == ("a",)


def test_body_rules_may_name_injected_properties() -> None:
    text = 'interface I { a: I32 s: String } node A implements I { b: I32 @key(b, a) @range(a, 0..) @check(s, "x") }'
    assert compiled(text).nodes["A"].key == ("a", "b")


# --- constraints


def test_the_members_of_a_node_key_go_by_name() -> None:
    assert node("node A { b: I32 a: I32 aB: I32 a_: I32 @key(b, a, aB, a_) }").key == ("a", "aB", "a_", "b")


def test_an_edge_key_begins_with_its_ends() -> None:
    edges = compiled("node A { } edge E: A -> A { b: I32 a: I32 @key(b, @dst, a, @src) }").edges
    assert edges["E"].key == ("@src", "@dst", "a", "b")


def test_bare_src_and_dst_are_the_ends_unless_the_edge_declares_them() -> None:
    assert compiled("node A { } edge E: A -> A { @key(src, dst) @unique(src) }").edges["E"].key == ("@src", "@dst")
    edge = compiled("node A { } edge E: A -> A { src: I32 @unique(src, dst) @key(@src, @dst, src) }").edges["E"]
    assert edge.uniques == (("src", "@dst"),)
    assert edge.key == ("@src", "@dst", "src")


def test_groups_of_the_same_members_are_one_group() -> None:
    found = node("node A { a: I32 @unique @index b: I32 @unique(b, a) @unique(a, b) @unique(a) @index(a) }")
    assert found.uniques == (("a",), ("b", "a"))
    assert found.indexes == (("a",),)


def test_only_an_index_or_key_of_its_own_makes_a_property_indexed() -> None:
    found = node("node A { a: I32 b: I32 c: I32 @index(c) @index(a, b) @key(a, b) }")
    assert [declared.indexed for declared in found.properties] == [False, False, True]
    assert node("node A { a: String @key(a) }").properties[0].indexed


def test_unique_takes_nullable_properties_and_index_takes_lists_and_vectors() -> None:
    found = node("node A { a: I32? @unique b: [I32]? @index c: Vector(2) @index d: I32 @unique(a, d) @index(a, b, c) }")
    assert len(found.uniques) == 2
    assert len(found.indexes) == 3


def test_an_edge_takes_unique_and_index() -> None:
    edge = compiled("node A { } edge E: A -> A { a: I32? @unique @index @unique(@src, a) @index(@dst) }").edges["E"]
    assert edge.uniques == (("@src", "a"), ("a",))
    assert edge.indexes == (("@dst",), ("a",))


def test_a_bound_is_converted_to_the_type_of_its_property() -> None:
    found = node(
        "node A { f: F32 d: F64 i: I64 @range(f, 0..0.1) @range(d, 0..0.1) @range(i, -007..9223372036854775807) }"
    )
    single, double = found.ranges[1], found.ranges[0]
    assert single.high == 0.10000000149011612
    assert isinstance(single.low, float)
    assert double == RangeRule("d", 0.0, 0.1)
    assert found.ranges[2] == RangeRule("i", -7, 2**63 - 1)
    assert isinstance(found.ranges[2].low, int)


def test_a_range_may_hold_one_value_and_a_check_an_enum() -> None:
    assert node("node A { a: I32? @range(a, 5..5) }").ranges == (RangeRule("a", 5, 5),)
    assert node('node A { a: enum(x)? @check(a, "\\\\p{Greek}|é") }').checks[0].pattern == "\\p{Greek}|é"


def test_a_cardinality_may_be_exact_or_open() -> None:
    edges = compiled("node A { } edge E: A -> A @card(1..1) edge F: A -> A @card(2..)").edges
    assert (edges["E"].cardinality, edges["F"].cardinality) == ((1, 1), (2, None))


# --- annotations


def test_texts_are_kept_apart_from_other_annotations() -> None:
    catalog = compiled(
        """node A @description("d") @instruction("i") { a: I32 @description("p") @rename_from("b") }
        edge E: A -> A @instruction("ei") @description("ed") @rename_from("F") { a: I32 @description("ep") }"""
    )
    found, edge = catalog.nodes["A"], catalog.edges["E"]
    assert (found.description, found.instruction, found.properties[0].description) == ("d", "i", "p")
    assert (edge.description, edge.instruction, edge.properties[0].description) == ("ed", "ei", "ep")
    assert found.annotations == edge.annotations == found.properties[0].annotations == ()


def test_an_unknown_annotation_is_kept_as_written() -> None:
    found = node('node A @default(5) @x @x(word) { a: I32 @y("t", n=1.0, m=true) @src @mcp(1) }')
    assert found.annotations == (("default", 5), ("x", None), ("x", BareWord("word")))
    assert found.properties[0].annotations == (
        ("y", Arguments("t", (("n", 1.0), ("m", True)))),
        ("src", None),
        ("mcp", 1),
    )


def test_an_embedding_names_its_source_and_maybe_a_model() -> None:
    found = node('node A { t: String? v: Vector(3)? @embed("t") w: Vector(3) @embed("t", model="m") }')
    assert [declared.embed for declared in found.properties] == [None, Embed("t"), Embed("t", "m")]


def test_old_names_say_nothing_in_a_first_schema() -> None:
    assert node('node A @rename_from("B") { a: I32 @rename_from("b") }').properties[0].name == "a"


def test_an_edge_is_found_by_its_word_ignoring_case() -> None:
    catalog = compiled(HARBOUR)
    for word in ("CallsAt", "callsAt", "CALLSAT"):
        assert catalog.edge_by_word(word) is catalog.edges["CallsAt"]
    assert catalog.edge_by_word("calls") is None
