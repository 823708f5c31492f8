"""Random queries over the harbour: whatever checks is consistent with the schema, whatever does not is refused in order.

The judge reads the typed tree with a few lines of its own and shares nothing with the checker. Queries come from seeds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from omnigraph.errors import InvalidQuery
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.query.check import check
from omnigraph.lang.query.operation import describe
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.printer import file_text
from omnigraph.lang.query.typed import (
    Aggregate,
    And,
    Block,
    Bm25,
    Fused,
    Nearest,
    NodeRef,
    Pattern,
    PropertyRef,
    Rank,
    ReadQuery,
    SystemRef,
    TextSearch,
)
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import Scalar
from support import cases

EDGES = ["callsAt", "follows", "tows", "servesOn", "hosts", "marks", "logs", "*", "<follows>", "<*>"]
EDGES += ["(callsAt | hosts)", "(follows | tows | marks)", "<follows | tows>", '"in"', "bogus"]
NODES = ["Vessel", "Vessel", "Port", "Sailor", "Log"]
PROPERTIES = [
    "title",
    "imo",
    "tonnage",
    "status",
    "tags",
    "hull",
    "built",
    "name",
    "rank",
    "lag",
    "berth",
    "papers",
    "done",
]
CONSTANTS = ["1", "-2.5", '"a"', "true", "$p", "$n", "now()", 'date("2024-01-01")', "[1, 2.0]", '["a", $p]', "[]"]
SIGNS = ["=", "!=", "<", "<=", ">", ">="]


# What a random part may meet; parse errors, reserved names and the codes of mutations are not among them.
CODES = {
    f"T{number}"
    for number in (
        *(*range(1, 10), 15, 17, *range(19, 26), 27, 32, 33, *range(35, 40), *range(41, 46)),
        *(50, 52, 53, 60, 62, 63, 66, 68),
    )
}


class Writer:
    """Writes one random query; most of it fits the schema."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.names = ["$a", "$b", "$c", "$d"]

    def one(self, *choices: str) -> str:
        return self.rnd.choice(choices)

    def some(self, made: Callable[[], str]) -> list[str]:
        """Nothing, mostly, or one."""
        return [made()] if self.rnd.random() < 0.3 else []

    def name(self) -> str:
        return self.rnd.choice(self.names)

    def operand(self) -> str:
        kind = self.rnd.randrange(6)
        if kind < 3:
            return f"{self.name()}.{self.rnd.choice(PROPERTIES)}"
        if kind == 3:
            return f"{self.one(self.name(), '$e')}.{self.one('@id', '@src', '@type', 'lag')}"
        return self.rnd.choice(CONSTANTS)

    def test(self, depth: int = 2) -> str:
        kind = self.rnd.randrange(10)
        if kind == 9:
            return self.predicate()
        if kind == 0 and depth:
            return f"not ({self.test(depth - 1)})"
        if kind == 1 and depth:
            return f"({self.test(depth - 1)} {self.one('and', 'or')} {self.test(depth - 1)})"
        if kind == 2:
            return f"{self.operand()} is {self.one('', 'not ')}null"
        if kind == 3:
            return f"{self.operand()} in {self.operand()}"
        if kind == 4:
            return f"{self.one('contains', 'starts_with')}({self.operand()}, {self.operand()})"
        return f"{self.operand()} {self.rnd.choice(SIGNS)} {self.operand()}"

    def searched(self) -> str:
        return self.operand() if self.rnd.random() < 0.2 else f"{self.name()}.{self.one('title', 'title', 'hull')}"

    def predicate(self) -> str:
        words = self.one('"a"', '"b c"', "$p", "$n") if self.rnd.random() < 0.9 else self.operand()
        edits = self.one("", "", ", 1", ", 3", ", $n")
        call = self.one("search", "match_text", "fuzzy")
        text = f"{call}({self.searched()}, {words}{edits if call == 'fuzzy' else ''})"
        return text + self.one("", "", "", " = true", " = false")

    def rank(self) -> str:
        if self.rnd.random() < 0.5:
            return f"nearest({self.name()}.{self.one('hull', 'hull', 'title')}, {self.one('[0, 1]', '$p', '[1]')})"
        return f"bm25({self.searched()}, {self.one('$p', '$n', self.operand())})"

    def first_key(self) -> str:
        if self.rnd.random() < 0.3:
            return f"rrf({self.rank()}, {self.rank()}{self.one('', ', 7', ', $n', ', 0')})"
        return self.rank()

    def clause(self, depth: int) -> str:
        kind = self.rnd.randrange(10)
        if kind < 3:
            pair = (
                f" {{ {self.rnd.choice(PROPERTIES)}: {self.rnd.choice(CONSTANTS)} }}" if self.rnd.random() < 0.3 else ""
            )
            return f"{self.name()}: {self.rnd.choice(NODES)}{pair}"
        if kind < 7:
            binding = self.one("", "", "", "$e:", "$_:")
            bounds = self.one("", "", "", "{1,2}", "{2,2}")
            left, right = self.one(self.name(), self.name(), "$_"), self.one(self.name(), self.name(), "$_")
            return f"{left} {binding}{self.rnd.choice(EDGES)}{bounds} {right}"
        if kind == 7 and depth:
            return f"{self.one('not', 'exists')} {{ {self.block(depth - 1)} }}"
        return self.test()

    def block(self, depth: int) -> str:
        return "  ".join(self.clause(depth) for _ in range(self.rnd.randint(1, 4)))

    def item(self) -> str:
        kind = self.rnd.randrange(6)
        if kind == 5:
            return self.one(self.rank(), self.predicate(), f"max({self.rank()})")
        if kind == 0:
            return self.name()
        if kind == 1:
            return f"{self.one('count', 'sum', 'min', 'max', 'avg')}({self.one(self.name(), self.operand())})"
        if kind == 2:
            return f"{self.test()} as x"
        return self.operand()

    def order(self) -> str:
        if self.rnd.random() < 0.2:
            return self.rank()
        return self.one("x", self.operand(), self.test()) + self.one("", " desc")


def query_of(clauses: list[str], items: list[str], keys: list[str]) -> str:
    order = f"order {{ {', '.join(keys)} }}" if keys else ""
    match = "  ".join(clauses)
    return f"query q($p: String?, $n: I64) {{ match {{ {match} }} return {{ {', '.join(items)} }} {order} limit $n }}"


def refusal_of(source: str, catalog: Catalog) -> Diagnostic | None:
    try:
        check(source, catalog)
    except InvalidQuery as error:
        return cast("Diagnostic", error.diagnostic)
    return None


def nodes_of(tree: Any) -> Iterator[Any]:
    """Every dataclass inside a tree, blocks left out."""
    if is_dataclass(tree):
        yield tree
        for field in fields(tree):
            value = getattr(tree, field.name)
            for part in value if isinstance(value, tuple) else (value,):
                if not isinstance(part, Block):
                    yield from nodes_of(part)


def judge(pattern: Pattern, catalog: Catalog, outside: dict[str, str], bound: dict[str, list[str]]) -> set[str]:
    """Check a pattern; the names from outside that it and its blocks use."""
    own = {node.name: node.type_name for node in pattern.nodes}
    assert len(own) == len(pattern.nodes)
    assert not own.keys() & outside.keys()
    types, used = {**outside, **own}, set[str]()
    edges = dict(bound)
    for hop in pattern.hops:
        left, right = types[hop.left], types[hop.right]
        used |= {hop.left, hop.right}
        assert (hop.low, hop.high) == (1, 1) or left == right
        assert len({member.edge_type for member in hop.members}) == len(hop.members)
        for member in hop.members:
            edge = catalog.edges[member.edge_type]
            ends = {"out": (left, right), "in": (right, left), "both": (left, right)}[member.direction]
            assert ends == (edge.source, edge.target)
            assert member.direction != "both" or left == right
            assert member.direction != "in" or left != right
        if hop.edge_var is not None:
            edges[hop.edge_var] = [member.edge_type for member in hop.members]
    for part in [*pattern.filters]:
        assert not isinstance(part, And | Rank)
        assert all(each is part for each in nodes_of(part) if isinstance(each, TextSearch))
        used |= judge_expression(part, catalog, types, edges)
        assert getattr(part, "type").scalar is Scalar.BOOL  # noqa: B009
    for block in pattern.blocks:
        inner = judge(block.pattern, catalog, types, edges)
        assert block.outer
        assert (
            inner <= set(block.outer) <= types.keys() | edges.keys()
        )  # a name that is only declared again is used too
        used |= inner
    return used & (outside.keys() | bound.keys())


def judge_expression(tree: Any, catalog: Catalog, types: dict[str, str], edges: dict[str, list[str]]) -> set[str]:
    used: set[str] = set()
    for part in nodes_of(tree):
        match part:
            case PropertyRef(var=var, name=name, type=of) if var in types:
                found = catalog.nodes[types[var]].property(name)
                assert found is not None
                assert found.type == of
                assert of.scalar is not Scalar.BLOB
            case PropertyRef(var=var, name=name, type=of):
                found = [catalog.edges[edge].property(name) for edge in edges[var]]
                assert all(p is not None and p.type.scalar is of.scalar for p in found)
                assert of.nullable == any(p is not None and p.type.nullable for p in found)
            case SystemRef(var=var, field=field):
                assert field == "id" or var in edges
                assert var in types or var in edges
            case TextSearch(text=text) | Bm25(text=text):
                searched = catalog.nodes[types[text.var]].property(text.name)
                assert searched is not None
                assert searched.indexed
                continue
            case NodeRef(var=var, type_name=name):
                assert types[var] == name
            case _:
                continue
        used.add(part.var)
    return used


@pytest.mark.parametrize("seed", range(12))
def test_what_checks_is_consistent_with_the_schema(seed: int, catalog: Catalog) -> None:
    """A query grows by random parts; those that do not check are left out again."""
    writer = Writer(random.Random(seed))
    parts: tuple[list[str], list[str], list[str]] = (["$a: Vessel"], ["$a.title"], [])
    makers = (lambda: writer.clause(2), writer.item, writer.order)
    for step in range(120):
        grown, maker = [(0, 0), (0, 0), (1, 1), (2, 2)][step % 4]
        parts[grown].append(makers[maker]())
        source = query_of(*parts)
        refusal = refusal_of(source, catalog)
        if refusal is None:
            judge_query(source, catalog)
            continue
        assert refusal.code in CODES, source
        parts[grown].pop()
    assert sum(map(len, parts)) > 10


@pytest.mark.parametrize("seed", range(4))
def test_what_checks_of_a_ranked_query_is_consistent_with_the_schema(seed: int, catalog: Catalog) -> None:
    writer = Writer(random.Random(seed))
    judged = 0
    for _ in range(300):
        key = writer.first_key()
        clauses = ["$a: Vessel  $b: Vessel  $c: Port  $d: Sailor", *writer.some(writer.test)]
        scored = [f"{key} as s"] if writer.rnd.random() < 0.3 else []
        items = ["$a.title", *scored, *writer.some(writer.item)]
        source = query_of(clauses, items, [key, *writer.some(writer.order)])
        refusal = refusal_of(source, catalog)
        if refusal is None:
            judged += 1
            judge_query(source, catalog)
        else:
            assert refusal.code in CODES, source
    assert judged > 5


def judge_query(source: str, catalog: Catalog) -> None:
    (query,) = check(source, catalog)
    assert isinstance(query, ReadQuery)
    assert judge(query.pattern, catalog, {}, {}) == set()
    types = {node.name: node.type_name for node in query.pattern.nodes}
    edges = {h.edge_var: [m.edge_type for m in h.members] for h in query.pattern.hops if h.edge_var is not None}
    for item in query.items:
        judge_expression(item.expr, catalog, types, edges)
    assert query.aggregated == any(isinstance(item.expr, Aggregate) for item in query.items)
    assert len({item.name for item in query.items}) == len(query.items)
    for position, key in enumerate(query.order):
        assert key.item is None or query.items[key.item].expr == key.expr
        judge_expression(key.expr, catalog, types, edges)
        ranks = [part for part in nodes_of(key.expr) if isinstance(part, Rank)]
        assert position == 0 or not ranks or key.item is not None
        assert not any(isinstance(part, Fused) for item in query.items for part in nodes_of(item.expr))
        assert not (query.aggregated and ranks)
        assert query.limit is not None or not any(isinstance(part, Nearest) for part in ranks)
    for item in query.items:
        for part in nodes_of(item.expr):
            assert not isinstance(part, TextSearch)
            assert not isinstance(part, Rank) or part == query.order[0].expr
    reads = {ref.type_name for ref in describe(query, catalog).reads}
    assert reads >= {node.type_name for node in query.pattern.nodes}
    assert parse_file(file_text(parse_file(source))) == parse_file(source)


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[$@]?\w+|\S')
HERE = Path(__file__).parent
TEXTS = [
    cases.refusal(case).text for name in ("parse", "check") for case in cases.read_cases(HERE / f"{name}_refused.cases")
]


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_text_is_refused_in_order(seed: int, catalog: Catalog) -> None:
    rnd = random.Random(seed)
    pool = [token for text in TEXTS for token in TOKEN.findall(text)]
    for _ in range(300):
        tokens = TOKEN.findall(rnd.choice(TEXTS))
        for _ in range(rnd.choice([1, 1, 2, 5])):
            at = rnd.randrange(len(tokens) + 1)
            tokens[at : at + rnd.randrange(3)] = rnd.choices(pool, k=rnd.randrange(3))
        source = rnd.choice([" ", " ", "\n", ""]).join(tokens)
        found = refusal_of(source, catalog)
        if found is None:
            continue
        assert found.position is not None
        assert found.end is not None
        assert 0 <= found.position.byte <= found.end.byte <= len(source.encode())
        assert len(found.render("x").splitlines()) <= 6
        assert found.to_dict()["code"] == found.code
