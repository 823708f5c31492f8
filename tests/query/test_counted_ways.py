"""What is counted or grouped without being looked at one by one gives what looking would have given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import LimitExceeded
from omnigraph.lang.query.check import check
from omnigraph.lang.query.typed import Expr, ReadQuery
from omnigraph.query.codes import distinct, numbered
from omnigraph.query.limits import QuerySettings
from omnigraph.query.measures import Measures
from omnigraph.query.output import QueryOutput
from omnigraph.query.relational.aggregates import aggregate
from omnigraph.query.run import run_read
from query.conftest import NOW
from support.memory_graphs import MemoryGraph, catalog_of

Ask = Callable[..., QueryOutput]

SCHEMA = """
node Person { handle: String @key  city: String?  weight: F64? }
edge Follows: Person -> Person
"""
CITIES = ["x", "y", None, "x"]
WEIGHTS = [0.0, -0.0, None, 1.5]
PAIRS = [(a, b) for a in range(4) for b in range(4) if (a, b) != (3, 3)] + [(0, 1), (0, 1)]  # 0 follows 1 three times


@pytest.fixture
def people() -> MemoryGraph:
    """Three who follow everybody, themselves too, and one who does but for that; and one whom nobody knows."""
    graph = MemoryGraph(catalog_of(SCHEMA))
    nodes = {f"p{i}": {"handle": f"p{i}", "city": CITIES[i], "weight": WEIGHTS[i]} for i in range(4)}
    nodes["p9"] = {"handle": "p9", "city": "z", "weight": None}
    edges = {f"e{i}": (f"p{a}", f"p{b}", {}) for i, (a, b) in enumerate(PAIRS)}
    graph.put({"Person": nodes}, {"Follows": edges})
    return graph


@pytest.mark.parametrize(
    ("pattern", "counted", "expected"),
    [
        ("$a follows $b", "$b", 15),
        ("$a $e:follows $b", "$b", 17),
        ("$a $e:follows $b", "$e.@id", 17),
        ("$a <follows> $b", "$b", 15),
        ("$a $e:<follows> $b", "$b", 31),  # a loop once, another edge from both its ends
        ("$a follows $b  $b follows $c", "$c", 57),
        ('$a follows $b  $b.city = "x"', "$a", 7),
        ("$a follows{1,2} $b", "$b", 15),
        ("$a follows{2,3} $b", "$b", 0),
        ("$a <follows>{1,3} $b", "$b", 15),
        ('$a follows{1,2} $b  $b.city = "x"', "$b", 7),
    ],
)
def test_ways_are_counted_as_they_would_be_walked(
    ask: Ask, people: MemoryGraph, pattern: str, counted: str, expected: int
) -> None:
    rows = ask(people, f"match {{ $a: Person  {pattern} }} return {{ count({counted}) as n }}").table.to_pylist()
    assert rows == [{"n": expected}]


@pytest.mark.parametrize(
    ("block", "handles"),
    [
        ("not { $a follows $_ }", ["p9"]),
        ("exists { $a follows{1,3} $b }", ["p0", "p1", "p2", "p3"]),
        ("exists { $a follows{2,3} $b }", []),
        ("not { $a <follows> $_ }", ["p9"]),
        ('exists { $a follows $b  $b.city = "y" }', ["p0", "p1", "p2", "p3"]),
        ("count { $a $e:follows $b } > 4", ["p0"]),
        ("count { $a follows $b } > 3", ["p0", "p1", "p2"]),
    ],
)
def test_a_block_asks_whether_there_are_any(ask: Ask, people: MemoryGraph, block: str, handles: list[str]) -> None:
    rows = ask(people, f"match {{ $a: Person  {block} }} return {{ $a.handle as a }} order {{ $a.handle }}")
    assert rows.table.column("a").to_pylist() == handles


def test_ways_that_are_only_counted_spend_what_walking_them_would(ask: Ask, people: MemoryGraph) -> None:
    text = "match { $a: Person  $a $e:follows $b } return { count($b) as n }"
    assert ask(people, text, QuerySettings(traversal_work_limit=17)).table.to_pylist() == [{"n": 17}]
    with pytest.raises(LimitExceeded):
        ask(people, text, QuerySettings(traversal_work_limit=16))


def test_many_assignments_are_grouped_by_what_their_nodes_hold(ask: Ask, people: MemoryGraph) -> None:
    def groups(key: str) -> dict[object, int]:
        text = f"match {{ $a: Person  $a $e:follows $b }} return {{ {key} as k, count($a) as n }}"
        found = ask(people, text).table
        assert len(set(found.column("k").to_pylist())) == found.num_rows
        return dict(zip(found.column("k").to_pylist(), found.column("n").to_pylist(), strict=True))

    assert groups("$b.city") == {"x": 7, "y": 6, None: 4}
    assert groups("$b.weight") == {0.0: 10, None: 4, 1.5: 3}  # both zeros are one group
    assert groups("$b.handle") == groups("$b.@id") == {"p0": 4, "p1": 6, "p2": 4, "p3": 3}


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_distinct_numbers_ascend(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))


def test_the_mean_of_integers_is_exact() -> None:
    values = pa.array([2**31 - 1, -(2**31), 2**31 - 1, None], pa.int32())
    group = np.array([0, 0, 0, 1])
    assert aggregate("avg", values, group, 2).to_pylist() == [(2**31 - 2) / 3, None]
    assert aggregate("sum", values, group, 2).to_pylist() == [float(2**31 - 2), None]
    wide = pa.array([2**32 - 1] * 3, pa.uint32())
    assert aggregate("sum", wide, np.zeros(3, np.int64), 1).to_pylist() == [3.0 * (2**32 - 1)]


ALL = '["p0", "p1", "p2", "p3", "p9"]'


class FromA:
    """Numbers by which a plan begins with the people of `ALL`."""

    def node_rows(self, type_name: str) -> float:
        return 1_000

    def edge_rows(self, edge_type: str) -> float:
        return 1_000

    def key_of(self, type_name: str) -> tuple[str, ...]:
        return ("handle",)

    def list_length(self, expr: Expr) -> float:
        return 1 if "p0" in str(expr) else 100


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ('$a follows $b  $b.city = "x"', 7),
        ('$a $e:follows $b  $b.city = "y"', 6),
        ('$a <follows> $b  $b.city = "x"', 7),
        ('$a $e:<follows> $b  $b.city = "x"', 15),  # a loop once
        ('$a follows $b  $b follows $c  $c.city = "x"', 28 - 1),
        ('$a follows $b  $b.handle in ["p3", "p9"]', 3),
        ('$b follows $a  $b.city = "y"', 4),
    ],
)
def test_a_hop_walked_from_its_far_end_gives_the_same(
    people: MemoryGraph, monkeypatch: pytest.MonkeyPatch, pattern: str, expected: int
) -> None:
    def asked() -> tuple[set[str], list[str]]:
        text = f"match {{ $a: Person  $a.handle in {ALL}  {pattern} }} return {{ $a.handle as a }}"
        query = check(f"query q() {{ {text} }}", people.catalog)[0]
        assert isinstance(query, ReadQuery)
        measures = Measures(lambda: 0.0)
        table = run_read(query, people.snapshot(), {}, now=NOW, statistics=FromA(), watch=measures).table
        return {each.way for each in measures.of.values() if each.way}, sorted(table.column("a").to_pylist())

    ahead, rows = asked()
    assert len(rows) == expected
    assert ahead == {"indexed"}
    monkeypatch.setattr("omnigraph.query.match._FAR_LEAST", 0)
    monkeypatch.setattr("omnigraph.query.match._FAR_SHARE", 0)
    behind, again = asked()
    assert "reversed" in behind
    assert again == rows


@pytest.mark.parametrize(
    ("hop", "joined"),
    [("$a follows $b", 15), ("$a <follows> $b", 15), ("$b follows $a", 15), ("$a follows{1,2} $b", 15)],
)
def test_many_questions_about_few_edges_are_answered_as_one_by_one(
    ask: Ask, people: MemoryGraph, hop: str, joined: int
) -> None:
    strangers = {f"s{i}": {"handle": f"s{i}", "city": None, "weight": None} for i in range(40)}
    people.put({"Person": strangers})
    for block, expected in (("exists", joined), ("not", 45 * 45 - joined)):
        rows = ask(people, f"match {{ $a: Person  $b: Person  {block} {{ {hop} }} }} return {{ count($a) as n }}")
        assert rows.table.to_pylist() == [{"n": expected}]


def test_numbers_stand_for_equal_numbers_whatever_their_range() -> None:
    for codes in ([], [5], [3, 3, 3], [7, -2, 7, 0], [0, 2**62, -(2**62), 2**62], [-(2**63), 2**63 - 1, 1]):
        numbers, places = numbered(np.array(codes, np.int64))
        assert [sorted(set(codes))[n] for n in numbers] == codes
        assert [codes[at] for at in places] == sorted(set(codes))
