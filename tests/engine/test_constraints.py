"""Constraints on columns (languages.md 4.4): every rule, and which of several violations is named."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.engine import constraints
from omnigraph.engine.constraints import Violation
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.tables.columns import DST, ID, SRC, arrow_type
from support.records import harbour
from support.schemas import counter

HARBOUR = harbour()


def rows(entity: EntityType, *records: dict[str, Any], numbered: bool = True, first_line: int = 1) -> pa.Table:
    """Rows in stored columns, from property names (and `@id`, `@src`, `@dst`); what is not named is null."""
    ends = {"@src": SRC, "@dst": DST} if entity.kind == "edge" else {}
    columns = {
        column: pa.array([r.get(name) for r in records], pa.string()) for name, column in {"@id": ID, **ends}.items()
    }
    for each in entity.properties:
        columns[each.column] = pa.array([r.get(each.name) for r in records], arrow_type(each.type))
    if numbered:
        columns["line_number"] = pa.array(range(first_line, first_line + len(records)), pa.int64())
    return pa.table(columns)


def node(schema: str) -> EntityType:
    return compile_schema(f"node N {{ {schema} }}", mint=counter()).nodes["N"]


def codes(violation: Violation | None) -> tuple[str, str | None, int | None] | None:
    return None if violation is None else (violation.code, violation.property, violation.line_number)


# --- values


@pytest.mark.parametrize(
    ("schema", "good", "bad", "code", "constraint"),
    [
        ("x: String", ["", "a"], [None], "W001", "required"),
        ("x: [I32]", [[], [None]], [None], "W001", "required"),
        ("x: enum(active, laid-up)?", ["active", "laid-up", None], ["Active", "", "laid"], "W002", "enum"),
        ("x: F64? @range(x, 0..)", [0.0, -0.0, 1e300, None], [-1e-300], "W003", "range"),
        ("x: F64? @range(x, ..1.5)", [1.5, -1e300, None], [1.5000001], "W003", "range"),
        ("x: I32? @range(x, -10..-3)", [-10, -3, None], [-11, -2], "W003", "range"),
        ("x: U64? @range(x, 9223372036854775808..)", [2**63, 2**64 - 1], [0, 2**63 - 1], "W003", "range"),
        ("x: F32? @range(x, 0..0.1)", [0.1, 0.0], [0.11], "W003", "range"),
        ('x: String? @check(x, "^[A-Z]{3}$")', ["BGO", None], ["BGO\n", "bgo", "BGOX", ""], "W004", "check"),
        ('x: String? @check(x, "b")', ["abc", "b"], ["ac", ""], "W004", "check"),
        ('x: String? @check(x, "^\\\\p{Lu}")', ["Ä", "A"], ["ä", "1"], "W004", "check"),
        ('x: enum(ab, cd)? @check(x, "^a")', ["ab", None], ["cd"], "W004", "check"),
        ("x: F64?", [1e308, None], [float("nan"), float("inf"), float("-inf")], "W009", "range"),
        ("x: F32?", [1e38, None], [float("nan"), float("inf")], "W009", "range"),
        ("x: [F64]?", [[], [None, 1.0], None], [[1.0, float("nan")]], "W009", "range"),
        ("x: Vector(2)?", [[0, 1], None], [[0, float("inf")]], "W009", "range"),
        ("x: String @key", ["a", " "], [""], "W008", "key"),
        ("x: String @key", ["a"], [None], "W008", "key"),
    ],
)  # fmt: skip
def test_each_rule_refuses_what_breaks_it_and_nothing_else(
    schema: str, good: list[Any], bad: list[Any], code: str, constraint: str
) -> None:
    entity = node(schema)
    passing = [{"x": value} for value in good]
    assert constraints.value_violation(entity, rows(entity, *passing)) is None
    for value in bad:
        found = constraints.value_violation(entity, rows(entity, *passing, {"x": value}))
        assert codes(found) == (code, "x", len(good) + 1)
        assert found is not None
        assert found.constraint == constraint
        assert found.message.startswith(f"line {len(good) + 1}: N.x: ")


@pytest.mark.parametrize("kind", ["Date", "DateTime", "[Date]", "[DateTime]"])
def test_times_outside_the_years_1_to_9999_are_refused(kind: str) -> None:
    entity = node(f"x: {kind}?")
    column = entity.properties[0].column
    stored = arrow_type(entity.properties[0].type)
    item = stored.value_type if kind.startswith("[") else stored
    days = item == pa.date32()
    first, last = (-719_162, 2_932_896) if days else (-62_135_596_800_000, 253_402_300_799_999)
    for raw, fits in ((first, True), (last, True), (first - 1, False), (last + 1, False)):
        values = pa.array([raw], pa.int32() if days else pa.int64()).cast(item)
        array = pa.ListArray.from_arrays([0, 1], values) if kind.startswith("[") else values
        table = pa.table({ID: ["a"], column: array})
        found = constraints.value_violation(entity, table)
        assert (found is None) == fits
        assert found is None or (found.code, found.entity_id) == ("W009", "a")


def test_sliced_and_chunked_columns_are_judged_alike() -> None:
    entity = node("x: [F64]?  v: Vector(2)?")
    table = rows(
        entity, {"x": [float("nan")]}, {"x": None}, {"x": [], "v": [1, 2]}, {"v": [1, float("inf")]}, {"x": [1.0]}
    )
    assert codes(constraints.value_violation(entity, table)) == ("W009", "x", 1)
    assert constraints.value_violation(entity, table.slice(1, 2)) is None
    chunked = pa.concat_tables([table.slice(1, 2), table.slice(3, 1), table.slice(4)])
    assert codes(constraints.value_violation(entity, chunked)) == ("W009", "v", 4)


def test_a_given_id_must_be_the_keys_and_a_missing_one_is_no_fault() -> None:
    port = HARBOUR.nodes["Port"]
    good = {"country": "NO", "code": "BGO", "title": "Bergen"}
    assert constraints.value_violation(port, rows(port, good, {**good, "@id": '["BGO","NO"]'})) is None
    found = constraints.value_violation(port, rows(port, good, {**good, "@id": '["NO","BGO"]'}))
    assert codes(found) == ("W008", None, 2)
    assert found is not None
    assert found.message.endswith(r'the id "[\"NO\",\"BGO\"]" is not the one that the key gives: "[\"BGO\",\"NO\"]"')


def test_an_embedded_vector_may_be_missing_only_if_it_comes_later() -> None:
    entity = node('t: String?  v: Vector(2) @embed("t")')
    table = rows(entity, {"t": "x"})
    assert codes(constraints.value_violation(entity, table)) == ("W001", "v", 1)
    assert constraints.value_violation(entity, table, embedded_later=True) is None


def test_the_first_line_wins_then_key_then_properties_as_declared() -> None:
    vessel = HARBOUR.nodes["Vessel"]
    good = {"imo": 1, "title": "A", "status": "active"}
    worst = {"@id": "x", "imo": None, "title": None, "status": "no", "tonnage": -1}
    order = [
        worst,
        {**worst, "imo": 1},
        {**worst, "imo": 1, "@id": "1"},
        {**good, "status": "no", "title": None},
        {**good, "title": None},
    ]
    expected = [("W008", "imo"), ("W008", None), ("W003", "tonnage"), ("W002", "status"), ("W001", "title")]
    for first, (code, name) in enumerate(expected):
        later = [order[first], *order[:first]]
        table = rows(vessel, good, *later)
        assert codes(constraints.value_violation(vessel, table)) == (code, name, 2)
        backwards = table.take(pa.array(range(len(table) - 1, -1, -1)))
        assert codes(constraints.value_violation(vessel, backwards)) == (code, name, 2)


def test_rows_without_lines_are_named_by_the_lowest_id() -> None:
    sailor = HARBOUR.nodes["Sailor"]
    table = rows(sailor, {"@id": "s3"}, {"@id": "s1"}, {"@id": "s2", "name": "x"}, numbered=False)
    found = constraints.value_violation(sailor, table)
    assert found is not None
    assert (found.entity_id, found.line_number) == ("s1", None)
    assert found.message == 'Sailor.name of "s1": a value is required'


def test_no_rows_break_nothing() -> None:
    vessel = HARBOUR.nodes["Vessel"]
    assert constraints.value_violation(vessel, rows(vessel)) is None
    assert constraints.unique_violation(vessel, ("imo",), rows(vessel)) is None
    assert constraints.repeated_id(vessel, rows(vessel)) is None
    assert len(constraints.last_of_each_id(rows(vessel))) == 0


def test_the_error_carries_what_a_client_needs() -> None:
    sailor = HARBOUR.nodes["Sailor"]
    found = constraints.value_violation(sailor, rows(sailor, {"@id": "s1"}, first_line=7))
    assert found is not None
    error = found.error()
    assert error.code == "constraint_violation"
    assert (error.status, error.effects, error.line_number) == (400, "none", 7)
    assert error.details == {
        "code": "W001",
        "line_number": 7,
        "entity_kind": "node",
        "type_name": "Sailor",
        "entity_id": "s1",
        "property": "name",
        "constraint": "required",
        "message": "line 7: Sailor.name: a value is required",
    }


def test_of_violations_in_several_types_the_first_line_then_type_then_id_is_named() -> None:
    def at(line: int | None, type_name: str, entity_id: str) -> Violation:
        return Violation("W001", "required", "node", type_name, "", entity_id=entity_id, line_number=line)

    found = [None, at(None, "A", "a"), at(9, "A", "a"), at(3, "B", "b"), at(3, "B", "a"), at(3, "C", "a")]
    assert constraints.first(found) == at(3, "B", "a")
    assert constraints.first([None, at(None, "B", "a"), at(None, "A", "z")]) == at(None, "A", "z")
    assert constraints.first([None]) is None


# --- unique


SAILORS = compile_schema(
    """
    node S { name: String?  rank: I32?  size: F64?  day: Date?  @unique(name, rank) @unique(size) @unique(day) }
    edge E: S -> S { lag: I32?  @unique(@src, lag) }
    """,
    mint=counter(),
)


def unique(
    group: tuple[str, ...], new: list[dict[str, Any]], old: list[dict[str, Any]] | None = None, kind: str = "S"
) -> Any:
    entity: EntityType = SAILORS.nodes[kind] if kind == "S" else SAILORS.edges[kind]
    others = None if old is None else rows(entity, *old, numbered=False)
    return constraints.unique_violation(entity, group, rows(entity, *new), others)


def test_equal_tuples_are_refused_and_tuples_with_a_null_are_exempt() -> None:
    group = ("name", "rank")
    otto, ines = {"name": "Otto"}, {"name": "Ines", "rank": 3}
    assert unique(group, [otto, otto, ines, {"name": "Ines", "rank": 4}, {"rank": 3}, {"rank": 3}]) is None
    found = unique(group, [otto, ines, ines, ines])
    assert codes(found) == ("W005", "name, rank", 3)
    assert 'line 3: S: @unique(name, rank): "Ines", 3' in found.message.replace(".name, rank", "")
    assert "line 2" in found.message


def test_stored_rows_count_too() -> None:
    old = [{"@id": f"o{n}", "name": "x", "rank": n} for n in range(50)]
    assert unique(("name", "rank"), [{"name": "x", "rank": 50}, {"name": "y", "rank": 1}], old) is None
    found = unique(("name", "rank"), [{"name": "z", "rank": 1}, {"name": "x", "rank": 7}], old)
    assert codes(found) == ("W005", "name, rank", 2)
    assert 'node "o7"' in found.message


def test_minus_zero_equals_zero() -> None:
    assert codes(unique(("size",), [{"size": 0.0}, {"size": -0.0}])) == ("W005", "size", 2)
    old = [{"@id": "o", "size": -0.0}] + [{"@id": str(n), "size": float(n + 1)} for n in range(40)]
    assert codes(unique(("size",), [{"size": 0.0}], old)) == ("W005", "size", 1)


def test_the_ends_of_edges_may_be_members() -> None:
    edges = [{"@src": "a", "lag": 1}, {"@src": "b", "lag": 1}, {"@src": "a", "lag": 1}]
    assert codes(unique(("@src", "lag"), edges, kind="E")) == ("W005", "@src, lag", 3)


def test_two_rows_may_swap_their_values() -> None:
    assert (
        unique(("day",), [{"@id": "a", "day": dt.date(2024, 1, 2)}, {"@id": "b", "day": dt.date(2024, 1, 1)}], [])
        is None
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_unique_agrees_with_a_dictionary(data: st.DataObject) -> None:
    values = st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b", None]), "rank": st.sampled_from([1, 2, 3, None])}
    )
    new, old = data.draw(st.lists(values, max_size=6)), data.draw(st.lists(values, max_size=30))
    seen: dict[tuple[Any, Any], str] = {}
    kept: list[dict[str, Any]] = []
    for n, row in enumerate(old):  # what is stored is unique already
        key = (row["name"], row["rank"])
        if None in key or key not in seen:
            seen.setdefault(key, f"o{n}")
            kept.append({"@id": f"o{n}", **row})
    expected = None
    for line, row in enumerate(new, 1):
        key = (row["name"], row["rank"])
        if None in key:
            continue
        if key in seen:
            expected = line
            break
        seen[key] = "new"
    found = unique(("name", "rank"), new, kept)
    assert (None if found is None else found.line_number) == expected


# --- endpoints and cardinality


def booleans(*values: bool | None) -> pa.Array:
    return pa.array(values, pa.bool_())


def test_the_first_edge_without_an_end_is_named() -> None:
    calls = HARBOUR.edges["CallsAt"]
    table = rows(calls, *[{"@id": f"c{n}", "@src": "1", "@dst": "BGO"} for n in range(3)])
    check = constraints.endpoint_violation
    assert check(calls, table, booleans(True, True, True), booleans(True, True, True)) is None
    found = check(calls, table, booleans(True, True, False), booleans(True, False, False))
    assert codes(found) == ("W006", "@dst", 2)
    assert found is not None
    assert 'there is no Port with the id "BGO"' in found.message
    both = check(calls, table, booleans(True, False, True), booleans(True, False, True))
    assert codes(both) == ("W006", "@src", 2)


@pytest.mark.parametrize(
    ("card", "counts", "broken"),
    [
        ("0..1", [0, 1], None),
        ("0..1", [1, 2], "s1"),
        ("2..", [2, 9], None),
        ("2..", [1, 2], "s0"),
        ("1..2", [3, 0], "s0"),
    ],
)
def test_cardinality_is_judged_for_the_sources_that_are_given(card: str, counts: list[int], broken: str | None) -> None:
    edge = compile_schema(f"node N {{ a: String }} edge E: N -> N @card({card})", mint=counter()).edges["E"]
    sources = pa.table({SRC: [f"s{n}" for n in range(len(counts))], "count": counts})
    found = constraints.cardinality_violation(edge, sources)
    assert (None if found is None else found.entity_id) == broken
    if found is not None:
        assert (found.code, found.constraint, found.line_number) == ("W007", "cardinality", None)
        with_lines = sources.append_column("line_number", pa.array([5, 4]))
        again = constraints.cardinality_violation(edge, with_lines)
        assert again is not None
        assert again.message.startswith("line ")


# --- ids


def conflict(call: Callable[[EntityType, pa.Table], Any], *ids: str, numbered: bool = True) -> Any:
    entity = HARBOUR.nodes["Vessel"]
    return call(entity, rows(entity, *[{"@id": each} for each in ids], numbered=numbered))


def test_an_id_that_comes_twice_is_named_with_both_lines() -> None:
    assert conflict(constraints.repeated_id, "a", "b", "c") is None
    error = conflict(constraints.repeated_id, "a", "b", "c", "b", "a", "b")
    assert (error.code, error.status, error.line_number) == ("key_conflict", 409, 4)
    assert error.details == {"entity_kind": "node", "type_name": "Vessel", "entity_id": "b", "line_number": 4}
    assert "lines 2 and 4" in error.message
    assert "line" not in conflict(constraints.repeated_id, "a", "a", numbered=False).message


def test_an_id_that_exists_is_a_conflict_of_an_append() -> None:
    def existing(*found: bool) -> Any:
        return conflict(lambda entity, table: constraints.existing_id(entity, table, booleans(*found)), "a", "b", "c")

    assert existing(False, False, False) is None
    error = existing(False, True, True)
    assert (error.details["entity_id"], error.line_number) == ("b", 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abcd"), max_size=12), st.randoms(use_true_random=False))
def test_of_rows_with_one_id_a_merge_keeps_the_last_line(ids: list[str], random: Any) -> None:
    entity = HARBOUR.nodes["Vessel"]
    table = rows(entity, *[{"@id": each} for each in ids])
    places = list(range(len(ids)))
    random.shuffle(places)
    table = table.take(pa.array(places, pa.int64()))
    kept = constraints.last_of_each_id(table)
    found = dict(zip(kept.column(ID).to_pylist(), kept.column("line_number").to_pylist(), strict=True))
    assert found == {each: line for line, each in enumerate(ids, 1)}
    assert len(kept) == len(found)
