"""Those of the chapter's forty cases (languages.md 22) that parsing and checking decide, by number."""

from __future__ import annotations

import pytest

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import IsNull, Not, Or, ReadQuery, TextTest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import BOOL

T_TITLE = "return { $v.title }"
REFUSED: dict[int, tuple[str, str, str]] = {
    # number: query, code, the text at fault
    7: ("match { $v: Vessel  not { $v callsAt $p }  $p: Port } return { $v.title }", "T62", "$p }"),
    8: ("match { $v: Vessel  not { $w: Vessel { imo: 2 } } } return { $v.title }", "T9", "not"),
    11: ("match { $v: Vessel  $v.note = null } return { $v.title }", "Q001", "null"),
    12: ("match { $v: Vessel  $v.tonnage > 100 and $v.title } return { $v.title }", "T41", "$v.title }"),
    17: ("match { $v: Vessel } return { $v.tonnage > 600 }", "T43", "$v.tonnage > 600"),
    18: ("match { $v: Vessel } return { $v.title, $v.title }", "T25", "$v.title }"),
    21: ("match { $s: Sailor } return { count($s.rank) as n } order { max($s.rank) }", "T42", "max($s.rank)"),
    24: ("match { $v: Vessel } return { $v.title } order { nearest($v.hull, [0, 1]) }", "T17", "nearest"),
    25: ('match { $v: Vessel  search($v.title, "alma") or $v.imo = 3 } return { $v.title }', "T38", "search"),
    27: ('match { $v: Vessel } return { $v.title, bm25($v.title, "a") as s } order { $v.title }', "T33", "bm25"),
    32: ('update Port set { code: "OSL" } where code = "BGO"', "T64", 'code: "OSL"'),
    34: ('insert Sailor { name: "x" } delete Sailor where name = "x"', "T65", "delete"),
}


@pytest.mark.parametrize("number", REFUSED)
def test_a_case_is_refused(number: int, catalog: Catalog) -> None:
    body, code, at = REFUSED[number]
    source = f"query q() {{ {body} }}"
    with pytest.raises(InvalidQuery) as caught:
        check(source, catalog)
    found = caught.value.diagnostic
    assert isinstance(found, Diagnostic)
    assert found.code == code
    assert found.position is not None
    assert source[found.position.byte :].startswith(at)


def test_case_11_has_its_fix(catalog: Catalog) -> None:
    with pytest.raises(InvalidQuery) as caught:
        check("query q() { match { $v: Vessel  $v.note = null } return { $v.title } }", catalog)
    assert isinstance(caught.value.diagnostic, Diagnostic)
    assert caught.value.diagnostic.fix == "$v.note is null"


def test_case_12_names_both_types(catalog: Catalog) -> None:
    with pytest.raises(InvalidQuery) as caught:
        check(f"query q() {{ match {{ $v: Vessel  $v.tonnage > 100 and $v.title }} {T_TITLE} }}", catalog)
    assert "`Bool?` and `String`" in caught.value.message


def checked(body: str, catalog: Catalog, params: str = "") -> ReadQuery:
    (query,) = check(f"query q({params}) {{ {body} }}", catalog)
    assert isinstance(query, ReadQuery)
    return query


def test_case_9_not_binds_tighter_than_or(catalog: Catalog) -> None:
    query = checked(f"match {{ $v: Vessel  not ($v.tonnage > 600) or $v.tonnage is null }} {T_TITLE}", catalog)
    (tree,) = query.pattern.filters
    assert isinstance(tree, Or)
    assert isinstance(tree.left, Not)
    assert isinstance(tree.right, IsNull)


def test_case_13_not_covers_the_whole_test(catalog: Catalog) -> None:
    (tree,) = checked(f'match {{ $v: Vessel  not "ferry" in $v.tags }} {T_TITLE}', catalog).pattern.filters
    assert isinstance(tree, Not)


def test_case_14_is_a_string_test_because_of_the_dot(catalog: Catalog) -> None:
    query = checked(f"match {{ $v: Vessel  $q contains $v.title }} {T_TITLE}", catalog, "$q: String")
    (tree,) = query.pattern.filters
    assert isinstance(tree, TextTest)
    assert query.pattern.hops == ()


def test_case_17_with_an_alias_is_a_nullable_bool(catalog: Catalog) -> None:
    (item,) = checked("match { $v: Vessel } return { $v.tonnage > 600 as big }", catalog).items
    assert item.name == "big"
    assert getattr(item.expr, "type", None) == BOOL.with_nullable(True)


def test_case_18_names_columns_by_variable(catalog: Catalog) -> None:
    query = checked("match { $v: Vessel  $p: Port } return { $v.title, $p.title }", catalog)
    assert [item.name for item in query.items] == ["v.title", "p.title"]


@pytest.mark.parametrize(
    "body",
    [
        "match { $a follows{1,3} $a } return { $a.title }",  # 1
        "match { $a: Vessel { imo: 3 }  $a follows{2,2} $b } return { $b.title }",  # 2
        "match { $a $e:follows $b } return { count($a) }",  # 3
        "match { $a $e:<follows> $b } return { count($e.@id) as n }",  # 4
        'match { $p: Port { code: "BGO" }  $_ callsAt $p  $_ callsAt $p } return { $p.title }',  # 5
        'match { $v: Vessel  not { $v callsAt $p  $p.title = "Bergen" } } return { $v.title }',  # 6
        "match { $v: Vessel  $v.tonnage = $t } return { $v.title }",  # 10
        "match { $v: Vessel { draught: 0.1 } } return { $v.title }",  # 15
        "match { $v: Vessel  $v.imo = 9007199254740992.0 } return { $v.title }",  # 16
        "match { $v: Vessel } return { $v.title } order { $v.tonnage desc } limit 2",  # 19
        "match { $s: Sailor } return { $s.rank as r, count($s) as n } order { n desc }",  # 20
        "match { $v: Vessel { imo: 99 } } return { sum($v.tonnage) as t, $v.status }",  # 22
        "match { $v: Vessel } return { $v.title } order { $v.title } limit 0",  # 23
        "match { $v: Vessel } return { $v.title } order { nearest($v.hull, [0, 1]) } limit 9",  # 24
        'match { $v: Vessel  fuzzy($v.title, "Crovo", 2) } return { $v.title }',  # 26
        'match { $v: Vessel  fuzzy($v.title, "Crovo", 1) } return { $v.title }',  # 26
        'insert Vessel { imo: 1, title: "Alma", status: "active" }',  # 28
        'insert Tows { from: "1", to: "2", since: date("2024-01-01") }',  # 29
        'insert CallsAt { from: "1", to: "[\\"BGO\\",\\"NO\\"]" }',  # 30
        'insert CallsAt { from: "1", to: "BGO" }',  # 31
        "delete Vessel where imo = 1",  # 33
        'insert ServesOn { from: "s1", to: "2" }',  # 35
    ],
)
def test_cases_that_only_running_decides_check(body: str, catalog: Catalog) -> None:
    assert len(check(f"query q($t: F64?) {{ {body} }}", catalog)) == 1
