"""What the check makes of queries that are right: types, resolved names, filters, hops, blocks, results, mutations."""

from __future__ import annotations

import datetime as dt

import pytest

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.check import check, check_file
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.typed import (
    Aggregate,
    And,
    Assignment,
    Compare,
    Constant,
    Delete,
    Hop,
    HopMember,
    InList,
    Insert,
    IsNull,
    ListOf,
    MutationQuery,
    NodeRef,
    NodeVar,
    Not,
    Now,
    Or,
    OrderKey,
    Param,
    PropertyRef,
    ReadQuery,
    SystemRef,
    TextTest,
    Update,
)
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.types import BOOL, DATETIME, F64, I64, STRING, Scalar, ValueType, scalar
from support.schemas import counter

BOOL_NULL = BOOL.with_nullable(True)
STRING_NULL = STRING.with_nullable(True)
F64_NULL = F64.with_nullable(True)
TITLE = PropertyRef("v", "title", STRING)
TONNAGE = PropertyRef("v", "tonnage", F64_NULL)
TAGS = PropertyRef("v", "tags", ValueType("list", Scalar.STRING, True))
STATUS = ValueType("enum", Scalar.STRING, False, ("active", "laid-up", "scrapped"))


def read(source: str, catalog: Catalog) -> ReadQuery:
    (query,) = check(source, catalog)
    assert isinstance(query, ReadQuery)
    return query


def match(block: str, catalog: Catalog, params: str = "") -> ReadQuery:
    return read(f"query q({params}) {{ match {{ {block} }} return {{ 1 as one }} }}", catalog)


def where(expression: str, catalog: Catalog, params: str = "") -> object:
    """The one filter over a vessel `$v`."""
    (typed,) = match(f"$v: Vessel  {expression}", catalog, params).pattern.filters
    return typed


def item(expression: str, catalog: Catalog, params: str = "") -> object:
    query = read(f"query q({params}) {{ match {{ $v: Vessel }} return {{ {expression} as x }} }}", catalog)
    return query.items[0].expr


def write(statements: str, catalog: Catalog, params: str = "") -> MutationQuery:
    (query,) = check(f"query q({params}) {{ {statements} }}", catalog)
    assert isinstance(query, MutationQuery)
    return query


def refused(source: str, catalog: Catalog) -> Diagnostic:
    with pytest.raises(InvalidQuery) as caught:
        check(source, catalog)
    assert isinstance(caught.value.diagnostic, Diagnostic)
    return caught.value.diagnostic


def compared_with(expr: object) -> object:
    assert isinstance(expr, Compare)
    assert isinstance(expr.right, Constant)
    return expr.right.value


# --- patterns


def nodes(block: str, catalog: Catalog) -> dict[str, str]:
    return {node.name: node.type_name for node in match(block, catalog).pattern.nodes}


def test_declared_nodes_come_in_order_of_appearance(catalog: Catalog) -> None:
    assert match("$p: Port  $v: Vessel  $v: Vessel { imo: 2 }", catalog).pattern.nodes == (
        NodeVar("p", "Port"),
        NodeVar("v", "Vessel"),
    )


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        ("$a follows $b", {"a": "Vessel", "b": "Vessel"}),
        ("$v callsAt $p", {"v": "Vessel", "p": "Port"}),
        ("$p callsAt $v  $p: Port", {"p": "Port", "v": "Vessel"}),
        ("$x hosts $y  $x: Vessel", {"x": "Vessel", "y": "Port"}),
        ("$s servesOn $v  $v callsAt $p", {"s": "Sailor", "v": "Vessel", "p": "Port"}),
        # the typed hop is followed first, though it is written last
        ("$x callsAt $y  $y servesOn $s  $s: Sailor", {"x": "Port", "y": "Vessel", "s": "Sailor"}),
        # only hops without a typed end: the first is read as written
        ("$x hosts $y  $x callsAt $z", {"x": "Port", "y": "Vessel", "z": "Vessel"}),
        ("$x (hosts | callsAt) $y", {"x": "Port", "y": "Vessel"}),
        ("$v callsAt $_  $_ callsAt $_", {"v": "Vessel", "__1": "Port", "__2": "Vessel", "__3": "Port"}),
        ("$l $e:logs $v", {"l": "Log", "v": "Vessel"}),
    ],
)
def test_types_of_ends_follow_from_hops(block: str, wanted: dict[str, str], catalog: Catalog) -> None:
    assert nodes(block, catalog) == wanted


OUT, IN, BOTH = "out", "in", "both"
HOPS: dict[str, Hop] = {
    "$a follows $b": Hop("a", "b", (HopMember("Follows", OUT),)),
    "$a FOLLOWS $b".replace("FOLLOWS", '"FOLLOWS"'): Hop("a", "b", (HopMember("Follows", OUT),)),
    "$a <follows> $b": Hop("a", "b", (HopMember("Follows", BOTH),)),
    "$a follows{2,5} $a": Hop("a", "a", (HopMember("Follows", OUT),), 2, 5),
    "$v: Vessel  $v callsAt{1,1} $p": Hop("v", "p", (HopMember("CallsAt", OUT),)),
    "$p: Port  $p callsAt $v": Hop("p", "v", (HopMember("CallsAt", IN),)),
    '$v: Vessel  $v "in" $p': Hop("v", "p", (HopMember("In", OUT),)),
    "$v: Vessel  $v (callsAt | hosts | callsAt) $p": Hop(
        "v", "p", (HopMember("CallsAt", OUT), HopMember("Hosts", IN)), kind="alternation"
    ),
    "$a <follows | tows>{1,2} $b": Hop(
        "a", "b", (HopMember("Follows", BOTH), HopMember("Tows", BOTH)), 1, 2, kind="alternation"
    ),
    "$a: Vessel  $b: Vessel  $a * $b": Hop(
        "a", "b", (HopMember("Follows", OUT), HopMember("Tows", OUT), HopMember("Marks", OUT)), kind="wildcard"
    ),
    "$a: Vessel  $a <*> $a": Hop(
        "a", "a", (HopMember("Follows", BOTH), HopMember("Tows", BOTH), HopMember("Marks", BOTH)), kind="wildcard"
    ),
    "$v: Vessel  $p: Port  $v $e:* $p": Hop(
        "v",
        "p",
        (HopMember("CallsAt", OUT), HopMember("Hosts", IN), HopMember("In", OUT)),
        edge_var="e",
        kind="wildcard",
    ),
    "$s: Sailor  $p: Port  $s * $p": Hop("s", "p", (), kind="wildcard"),
    "$a $e:<follows> $b": Hop("a", "b", (HopMember("Follows", BOTH),), edge_var="e"),
    "$a $_:follows $b": Hop("a", "b", (HopMember("Follows", OUT),)),
    "$_ follows $_": Hop("__1", "__2", (HopMember("Follows", OUT),)),
}


@pytest.mark.parametrize("block", HOPS)
def test_hops_know_their_members_and_which_way_each_is_crossed(block: str, catalog: Catalog) -> None:
    assert match(block, catalog).pattern.hops == (HOPS[block],)


def test_a_binding_match_is_a_filter(catalog: Catalog) -> None:
    pattern = match(
        '$v: Vessel { imo: 1, tags: "night", status: $s, built: date("2024-01-01") }', catalog, "$s: String?"
    )
    imo, tags, status, built = pattern.pattern.filters
    assert imo == Compare("=", PropertyRef("v", "imo", scalar(Scalar.U32)), Constant(1, I64), BOOL)
    assert tags == InList(Constant("night", STRING), TAGS, BOOL_NULL)
    assert status == Compare("=", PropertyRef("v", "status", STATUS), Param("s", STRING_NULL), BOOL_NULL)
    assert isinstance(built, Compare)
    assert built.right == Constant(dt.date(2024, 1, 1), scalar(Scalar.DATE))


def test_filters_are_taken_apart_at_and(catalog: Catalog) -> None:
    pattern = match(
        "$v: Vessel  $v.imo = 1 and ($v.imo = 2 and $v.imo = 3) and $v.imo = 4  $v.imo = 5", catalog
    ).pattern
    assert [compared_with(f) for f in pattern.filters] == [1, 2, 3, 4, 5]


def test_a_property_of_a_bound_edge_over_a_selection_is_what_the_members_agree_on(catalog: Catalog) -> None:
    def property_type(block: str, name: str) -> ValueType:
        query = read(f"query q() {{ match {{ {block} }} return {{ $e.{name} as x }} }}", catalog)
        typed = query.items[0].expr
        assert isinstance(typed, PropertyRef)
        return typed.type

    assert property_type("$v $e:callsAt $p", "berth") == STRING_NULL
    assert property_type("$v $e:(callsAt | hosts) $p", "berth") == STRING_NULL
    assert property_type("$l $e:logs $v", "level") == scalar(Scalar.I32)


def test_enums_of_a_selection_are_united_and_beside_a_string_are_one() -> None:
    catalog = compile_schema(
        """
        node A { x: String }
        edge One: A -> A { kind: enum(red, green)  both: enum(a)  n: I32  v: Vector(2) }
        edge Two: A -> A { kind: enum(blue, green)?  both: String  n: I32?  v: Vector(3) }
        """,
        mint=counter(),
    )
    query = read("query q() { match { $a $e:(one | two) $b } return { $e.kind, $e.both, $e.n } }", catalog)
    assert [i.expr.type for i in query.items if isinstance(i.expr, PropertyRef)] == [
        ValueType("enum", Scalar.STRING, True, ("blue", "green", "red")),
        STRING,
        scalar(Scalar.I32, True),
    ]
    assert refused("query q() { match { $a $e:(one | two) $b } return { $e.v } }", catalog).code == "T68"


def test_system_fields_are_strings(catalog: Catalog) -> None:
    query = read(
        "query q() { match { $s: Sailor  $p: Port  $s $e:* $p } "
        "return { $s.@id, $e.@id, $e.@src, $e.@dst, $e.@type } }",
        catalog,
    )
    assert [i.expr for i in query.items] == [
        SystemRef("s", "id", STRING),
        SystemRef("e", "id", STRING),
        SystemRef("e", "src", STRING),
        SystemRef("e", "dst", STRING),
        SystemRef("e", "type", STRING),
    ]
    assert [i.name for i in query.items] == ["s.@id", "e.@id", "e.@src", "e.@dst", "e.@type"]


# --- correlated blocks


def test_a_block_binds_its_own_variables_and_names_the_outer_ones(catalog: Catalog) -> None:
    (block,) = match("$v: Vessel  not { $v callsAt $p  $p.title = $v.title }", catalog).pattern.blocks
    assert block.negated
    assert block.func is None
    assert block.outer == ("v",)
    assert block.pattern.nodes == (NodeVar("p", "Port"),)
    assert len(block.pattern.hops) == len(block.pattern.filters) == 1


def test_re_declaring_an_outer_variable_constrains_it(catalog: Catalog) -> None:
    (block,) = match('$v: Vessel  exists { $v: Vessel { status: "active" } }', catalog).pattern.blocks
    assert not block.negated
    assert block.outer == ("v",)
    assert block.pattern.nodes == ()
    assert len(block.pattern.filters) == 1


def test_what_a_nested_block_uses_from_far_outside_passes_through(catalog: Catalog) -> None:
    (outer,) = match(
        "$v: Vessel  $s: Sailor  not { $v callsAt $p  exists { $s servesOn $w  $w callsAt $p } }", catalog
    ).pattern.blocks
    assert outer.outer == ("s", "v")
    (inner,) = outer.pattern.blocks
    assert inner.outer == ("p", "s")
    assert inner.pattern.nodes == (NodeVar("w", "Vessel"),)


def test_variables_of_a_block_are_not_visible_outside_it(catalog: Catalog) -> None:
    query = match("$v: Vessel  not { $v callsAt $p }  exists { $p servesOn $v }", catalog)
    types = [block.pattern.nodes[0].type_name for block in query.pattern.blocks]
    assert types == ["Port", "Sailor"]


def test_an_outer_type_serves_hops_of_a_block(catalog: Catalog) -> None:
    (block,) = match("$p hosts $v  not { $x callsAt $p }", catalog).pattern.blocks
    assert block.pattern.hops == (Hop("x", "p", (HopMember("CallsAt", OUT),)),)


def test_a_wildcard_in_a_block_takes_declarations_from_outside(catalog: Catalog) -> None:
    (block,) = match("$s: Sailor  $v: Vessel  not { $s * $v }", catalog).pattern.blocks
    assert block.pattern.hops[0].members == (HopMember("ServesOn", OUT),)


def test_a_name_bound_later_in_the_block_itself_is_fine(catalog: Catalog) -> None:
    assert nodes("$p.title = $v.title  $v callsAt $p  $v: Vessel", catalog) == {"v": "Vessel", "p": "Port"}


# --- expressions

EXPRESSIONS: dict[str, tuple[object, str]] = {
    "$v.tonnage > 600": (Compare(">", TONNAGE, Constant(600, I64), BOOL_NULL), ""),
    '$v.title = "a"': (Compare("=", TITLE, Constant("a", STRING), BOOL), ""),
    "$v.title != $t": (Compare("!=", TITLE, Param("t", STRING_NULL), BOOL_NULL), "$t: String?"),
    '$v.status = "sunk"': (Compare("=", PropertyRef("v", "status", STATUS), Constant("sunk", STRING), BOOL), ""),
    "18446744073709551615 = 9223372036854775807": (
        Compare("=", Constant(2**64 - 1, scalar(Scalar.U64)), Constant(2**63 - 1, I64), BOOL),
        "",
    ),
    "9007199254740993 = 9007199254740992.0": (
        Compare("=", Constant(9007199254740993, I64), Constant(9007199254740992.0, F64), BOOL),
        "",
    ),
    "$b": (Param("b", BOOL), "$b: Bool"),
    "true": (Constant(True, BOOL), ""),
    "not $b": (Not(Param("b", BOOL_NULL), BOOL_NULL), "$b: Bool?"),
    "not not $b": (Param("b", BOOL), "$b: Bool"),
    "not not not $b": (Not(Param("b", BOOL), BOOL), "$b: Bool"),
    "$b or true": (Or(Param("b", BOOL_NULL), Constant(True, BOOL), BOOL_NULL), "$b: Bool?"),
    "$v.note is null": (IsNull(PropertyRef("v", "note", STRING_NULL), False, BOOL), ""),
    "$v.hull is not null": (
        IsNull(PropertyRef("v", "hull", ValueType("vector", Scalar.F32, True, dimension=2)), True, BOOL),
        "",
    ),
    '"ferry" in $v.tags': (InList(Constant("ferry", STRING), TAGS, BOOL_NULL), ""),
    "$v.title in $l": (InList(TITLE, Param("l", ValueType("list", Scalar.STRING)), BOOL), "$l: [String]"),
    "$v.imo in [1, 2.5]": (
        InList(PropertyRef("v", "imo", scalar(Scalar.U32)), Constant((1, 2.5), ValueType("list", Scalar.F64)), BOOL),
        "",
    ),
    "$v.title in []": (InList(TITLE, Constant((), ValueType("list", Scalar.STRING)), BOOL), ""),
    "$v.imo in []": (
        InList(PropertyRef("v", "imo", scalar(Scalar.U32)), Constant((), ValueType("list", Scalar.U32)), BOOL),
        "",
    ),
    "$v.imo in [1, $n]": (
        InList(
            PropertyRef("v", "imo", scalar(Scalar.U32)),
            ListOf((Constant(1, I64), Param("n", scalar(Scalar.I32, True))), ValueType("list", Scalar.I64)),
            BOOL,
        ),
        "$n: I32?",
    ),
    'contains($v.title, "a")': (TextTest("contains", TITLE, Constant("a", STRING), BOOL), ""),
    'starts_with($v.status, "a")': (
        TextTest("starts_with", PropertyRef("v", "status", STATUS), Constant("a", STRING), BOOL),
        "",
    ),
    "$q contains $v.title": (TextTest("contains", Param("q", STRING), TITLE, BOOL), "$q: String"),
    '$v.tags contains "a"': (InList(Constant("a", STRING), TAGS, BOOL_NULL), ""),
    '$v.title starts_with "a"': (TextTest("starts_with", TITLE, Constant("a", STRING), BOOL), ""),
    'now() > datetime("2024-03-01T00:30:00+02:00")': (
        Compare(
            ">",
            Now(DATETIME),
            Constant(dt.datetime(2024, 2, 29, 22, 30, tzinfo=dt.UTC), DATETIME),
            BOOL,
        ),
        "",
    ),
}


@pytest.mark.parametrize("written", EXPRESSIONS)
def test_expressions_are_typed(written: str, catalog: Catalog) -> None:
    typed, params = EXPRESSIONS[written]
    assert where(written, catalog, params) == typed


def test_negative_zero_stays_what_it_is(catalog: Catalog) -> None:
    typed = item("-0.0", catalog)
    assert isinstance(typed, Constant)
    assert str(typed.value) == "-0.0"


@pytest.mark.parametrize(
    ("elements", "of"),
    [
        ("1, 2", "I64"),
        ("1, 18446744073709551615", "U64"),
        ("-1, 18446744073709551615", "F64"),
        ("1, 2.0", "F64"),
        ('"a", $t', "String"),
        ("$n, $n", "I32"),
        ("$n, $u", "I64"),
        ("18446744073709551615, $u", "U64"),
        ("$n, 18446744073709551615", "F64"),
        ("true, 1 = 2", "Bool"),
        ("now()", "DateTime"),
        ("", "String"),
    ],
)
def test_a_list_has_the_common_type_of_its_elements(elements: str, of: str, catalog: Catalog) -> None:
    typed = item(f"[{elements}]", catalog, "$t: String, $n: I32, $u: U32")
    assert isinstance(typed, Constant | ListOf)
    assert typed.type == ValueType("list", Scalar(of))


def test_a_long_chain_of_and_or_is_a_shallow_tree(catalog: Catalog) -> None:
    def depth(expr: object) -> int:
        return 1 + max(depth(expr.left), depth(expr.right)) if isinstance(expr, And | Or) else 0

    typed = where(" or ".join(f"$v.imo = {n}" for n in range(1000)), catalog)
    assert depth(typed) == 10
    leaves: list[object] = []
    pending: list[object] = [typed]
    while pending:
        node = pending.pop()
        if isinstance(node, Or):
            pending += [node.right, node.left]
        else:
            leaves.append(node)
    assert [compared_with(leaf) for leaf in leaves] == list(range(1000))


@pytest.mark.parametrize("depth", [24, 99])
def test_the_deepest_expression_checks_without_a_deep_stack(depth: int, catalog: Catalog) -> None:
    expression = "(true or (false and not " * (depth // 2) + "true" + ") = true)" * (depth // 2)
    assert where(expression, catalog)


def test_99_nested_blocks_check(catalog: Catalog) -> None:
    opening = "".join(f"not {{ $v{n} follows $v{n + 1} " for n in range(98))
    query = match(f"$v0: Vessel {opening} {'}' * 98}", catalog)
    pattern, depth = query.pattern, 0
    while pattern.blocks:
        pattern, depth = pattern.blocks[0].pattern, depth + 1
    assert depth == 98


# --- results


def test_aggregates_have_their_types(catalog: Catalog) -> None:
    query = read(
        "query q() { match { $v: Vessel } return { $v.status, count($v), count($v.tags) as t, sum($v.imo), "
        "avg($v.tonnage), min($v.built), max($v.status), max($v.title), min($v.imo = 1) as b } }",
        catalog,
    )
    assert query.aggregated
    assert [(i.name, i.expr.type) for i in query.items if not isinstance(i.expr, NodeRef)] == [
        ("v.status", STATUS),
        ("count(v)", I64),
        ("t", I64),
        ("sum(v.imo)", F64_NULL),
        ("avg(v.tonnage)", F64_NULL),
        ("min(v.built)", scalar(Scalar.DATE, True)),
        ("max(v.status)", STATUS.with_nullable(True)),
        ("max(v.title)", STRING_NULL),
        ("b", BOOL_NULL),
    ]
    assert query.items[1].expr == Aggregate("count", NodeRef("v", "Vessel"), I64)


def test_items_keep_their_order_and_names(catalog: Catalog) -> None:
    query = read(
        'query q($q: String?) { match { $v: Vessel } return { $v, $q, 1, 1.0, "x", now(), [1], $v.tonnage > 6 as big } }',
        catalog,
    )
    assert [i.name for i in query.items] == ["v", "q", "1", "1.0", '"x"', "now()", "[1]", "big"]
    assert query.items[0].expr == NodeRef("v", "Vessel")
    assert not query.aggregated


def test_order_keys_find_their_items(catalog: Catalog) -> None:
    query = read(
        "query q() { match { $v: Vessel } return { $v.title as t, $v, $v.tonnage > 600 as big } "
        "order { t desc, $v asc, ($v.tonnage > 600), $v.title, $v.imo desc, $v.@id, $v.tags } limit 0 }",
        catalog,
    )
    big = query.items[2].expr
    assert query.order == (
        OrderKey(TITLE, True, 0),
        OrderKey(NodeRef("v", "Vessel"), False, 1),
        OrderKey(big, False, 2),
        OrderKey(TITLE, False, 0),
        OrderKey(PropertyRef("v", "imo", scalar(Scalar.U32)), True),
        OrderKey(SystemRef("v", "id", STRING), False),
        OrderKey(TAGS, False),
    )
    assert query.limit == 0


def test_an_aggregated_answer_is_ordered_by_its_columns(catalog: Catalog) -> None:
    query = read(
        "query q($n: U32) { match { $v: Vessel } return { $v.status, count($v) as n, max($v.imo) } "
        "order { n desc, $v.status, max($v.imo), count($v) } limit $n }",
        catalog,
    )
    assert [key.item for key in query.order] == [1, 0, 2, 1]
    assert query.limit == Param("n", scalar(Scalar.U32))


def test_an_alias_may_be_any_word_that_is_not_reserved(catalog: Catalog) -> None:
    query = read("query q() { match { $v: Vessel } return { $v.imo as asc } order { asc desc } }", catalog)
    assert query.order == (OrderKey(PropertyRef("v", "imo", scalar(Scalar.U32)), True, 0),)


def test_a_query_keeps_its_text_and_descriptions(catalog: Catalog) -> None:
    source = (
        '// é\nquery one(@description("which") $t: [DateTime]?, $h: Vector(3)) @description("d") @instruction("i")\n'
        "{ match { $v: Vessel } return { $v } }\nquery two() { delete Sailor where true }"
    )
    one, two = check(source, catalog)
    assert (one.name, one.description, one.instruction) == ("one", "d", "i")
    assert one.text == source[source.index("query one") : source.index("\nquery two")]
    assert two.text == source[source.index("query two") :]
    assert [(p.name, p.type, p.description) for p in one.params] == [
        ("t", ValueType("list", Scalar.DATETIME, True), "which"),
        ("h", ValueType("vector", Scalar.F32, dimension=3), None),
    ]


# --- mutations


def test_an_insert_assigns_constants_in_the_type_of_the_property(catalog: Catalog) -> None:
    (insert,) = write(
        'insert Vessel { imo: 7, title: "Dora", status: "laid-up", tonnage: 3, draught: 0.1, built: date("2024-01-01") '
        'hull: [1, 2.5], tags: ["a"], papers: "base64:AAE=" }',
        catalog,
    ).statements
    assert isinstance(insert, Insert)
    assert (insert.kind, insert.type_name) == ("node", "Vessel")
    constants = {a.property: a.value for a in insert.assignments if isinstance(a.value, Constant)}
    assert {name: (constant.value, constant.type.spelling()) for name, constant in constants.items()} == {
        "imo": (7, "U32"),
        "title": ("Dora", "String"),
        "status": ("laid-up", "enum(active, laid-up, scrapped)"),
        "tonnage": (3.0, "F64"),
        "draught": (0.10000000149011612, "F32"),
        "built": (dt.date(2024, 1, 1), "Date"),
        "hull": ((1.0, 2.5), "Vector(2)"),
        "tags": (("a",), "[String]"),
        "papers": ("base64:AAE=", "Blob"),
    }
    assert type(constants["tonnage"].value) is float


def test_an_edge_needs_its_ends_and_nothing_that_may_be_null(catalog: Catalog) -> None:
    (insert,) = write('insert CallsAt { from: $a, to: "2" }', catalog, "$a: String").statements
    assert isinstance(insert, Insert)
    assert insert.kind == "edge"
    assert [(a.property, a.value) for a in insert.assignments] == [
        ("from", Param("a", STRING)),
        ("to", Constant("2", STRING)),
    ]


@pytest.mark.parametrize(
    ("param", "assignment"),
    [
        ("String?", "title: $p"),
        ("String", "status: $p"),
        ("String", "papers: $p"),
        ("Blob", "papers: $p"),
        ("U64", "tonnage: $p"),
        ("F32", "tonnage: $p"),
        ("F64", "draught: $p"),
        ("Vector(2)", "hull: $p"),
        ("[String]", "tags: $p"),
        ("String", 'tags: ["a", $p]'),
        ("F64", "hull: [1, $p]"),
        ("Date?", "built: $p"),
    ],
)
def test_parameters_are_assigned_by_the_table(param: str, assignment: str, catalog: Catalog) -> None:
    (update,) = write(f"update Vessel set {{ {assignment} }} where true", catalog, f"$p: {param}").statements
    assert isinstance(update, Update)
    assert update.assignments[0].value is not None


def test_where_sees_properties_bare_and_the_ends_under_both_names(catalog: Catalog) -> None:
    (delete,) = write('delete CallsAt where @src = "1" and to = $p and berth is null', catalog, "$p: String").statements
    assert isinstance(delete, Delete)
    assert delete.kind == "edge"
    ends = And(
        Compare("=", SystemRef("", "src", STRING), Constant("1", STRING), BOOL),
        Compare("=", SystemRef("", "dst", STRING), Param("p", STRING), BOOL),
        BOOL,
    )
    assert delete.where == And(ends, IsNull(PropertyRef("", "berth", STRING_NULL), False, BOOL), BOOL)


def test_a_boolean_property_is_assigned_a_comparison(catalog: Catalog) -> None:
    (update,) = write(
        'update Log set { done: $a > 3 and not $b }  where text = "x"', catalog, "$a: I64, $b: Bool"
    ).statements
    assert isinstance(update, Update)
    assert isinstance(update.assignments[0].value, And)


def test_several_statements_keep_their_order(catalog: Catalog) -> None:
    query = write(
        'insert Sailor { name: "a" } update Sailor set { joined: now() } where rank in [1, $n]', catalog, "$n: I32"
    )
    insert, update = query.statements
    assert isinstance(insert, Insert)
    assert isinstance(update, Update)
    assert isinstance(insert.assignments[0], Assignment)
    assert update.assignments[0].value == Now(DATETIME)


# --- files


def test_a_branch_statement_is_no_query(catalog: Catalog) -> None:
    assert check("branch list", catalog) == []


def test_a_text_of_nothing_holds_no_query(catalog: Catalog) -> None:
    assert check("", catalog) == []


def test_a_parsed_file_is_checked_as_its_text_is(catalog: Catalog) -> None:
    source = "query q() { match { $v: Vessel } return { $v } }"
    assert check_file(parse_file(source), catalog) == check(source.encode(), catalog)


def test_what_is_explained_and_what_stands_below_settings_is_checked(catalog: Catalog) -> None:
    assert refused("explain query q() { match { $v: Vesel } return { $v } }", catalog).code == "T1"
    assert refused("set traversal = auto; query q() { match { $v: Vesel } return { $v } }", catalog).code == "T1"
    assert (
        refused("query q() { match { $v: Vessel  count { $v follows $w } > 1 } return { $w } }", catalog).code == "T6"
    )
