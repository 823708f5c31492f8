"""A naive evaluator of typed reads: a graph in dictionaries, and assignments enumerated literally as languages.md 8 says.

Too simple to be wrong, and too slow for anything but tests: it is the second implementer of the chapter. It shares
nothing with the planner, the residency or the kernels; numbers are Python's, which compare integers with floats exactly.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from omnigraph.lang.query import typed as q
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import FLOATS, NUMBERS, Scalar, ValueType
from omnigraph.tables.analysis import TERMS, WORDS, tokens

Env = dict[str, Any]  # variable -> ("node", type, id) or ("edge", type, id)


@dataclass(frozen=True)
class Graph:
    catalog: Catalog
    nodes: Mapping[str, Mapping[str, Mapping[str, Any]]]
    edges: Mapping[str, Mapping[str, tuple[str, str, Mapping[str, Any]]]]


@dataclass(frozen=True)
class Oracle:
    graph: Graph
    params: Mapping[str, Any]
    now: dt.datetime

    # --- match

    def assignments(self, pattern: q.Pattern, outer: Env) -> list[Env]:
        """All assignments of the block that, together with `outer`, make every clause hold."""
        found = [dict(outer)]
        for node in pattern.nodes:
            found = [
                {**env, node.name: ("node", node.type_name, key)}
                for env in found
                for key in self.graph.nodes.get(node.type_name, {})
            ]
        for hop in pattern.hops:
            if hop.edge_var is None:
                found = [env for env in found if self._hop_holds(hop, env)]
            else:
                found = [{**env, hop.edge_var: edge} for env in found for edge in self._edges_between(hop, env)]
        return [
            env
            for env in found
            if all(self.value(each, env) is True for each in pattern.filters)
            and all(self._block_holds(block, env) for block in pattern.blocks)
        ]

    def _edges_between(self, hop: q.Hop, env: Env) -> Iterator[tuple[str, str, str]]:
        left, right = env[hop.left][2], env[hop.right][2]
        directions: dict[str, set[str]] = {}
        for member in hop.members:
            directions.setdefault(member.edge_type, set()).add(member.direction)
        for edge_type, ways in directions.items():
            for key, (src, dst, _) in self.graph.edges.get(edge_type, {}).items():
                out = (src, dst) == (left, right) and bool(ways & {"out", "both"})
                into = (dst, src) == (left, right) and bool(ways & {"in", "both"})
                if out or into:
                    yield ("edge", edge_type, key)

    def _step(self, hop: q.Hop, at: str, from_left: bool) -> set[str]:
        """The ids one step away."""
        found: set[str] = set()
        for member in hop.members:
            out = member.direction == "both" or (member.direction == "out") == from_left
            into = member.direction == "both" or (member.direction == "in") == from_left
            for src, dst, _ in self.graph.edges.get(member.edge_type, {}).values():
                if out and src == at:
                    found.add(dst)
                if into and dst == at:
                    found.add(src)
        return found

    def _hop_holds(self, hop: q.Hop, env: Env) -> bool:
        left, right = env[hop.left], env[hop.right]
        same = left == right
        distance = math.inf
        if same:
            distance = 1 if right[2] in self._step(hop, left[2], True) else math.inf
        else:
            reached, frontier = {left[2]}, {left[2]}
            for steps in range(1, hop.high + 1):
                frontier = {b for a in frontier for b in self._step(hop, a, True)}
                if right[2] in frontier and (left[1] != right[1] or right[2] not in reached):
                    distance = steps
                    break
                reached |= frontier
        return hop.low <= distance <= hop.high

    def _block_holds(self, block: q.Block, env: Env) -> bool:
        inner = self.assignments(block.pattern, env)
        if block.func is None:
            return bool(inner) != block.negated
        assert block.op is not None
        assert block.right is not None
        values: list[Any] = [True for _ in inner]
        if block.argument is not None:
            values = [self.value(block.argument, each) for each in inner]
        kind = None if block.argument is None or isinstance(block.argument, q.NodeRef) else block.argument.type
        folded = fold(block.func, values, kind)
        return compared(block.op, folded, self.value(block.right, {})) is True

    # --- expressions

    def value(self, expr: q.Expr, env: Env) -> Any:
        match expr:
            case q.Constant():
                return expr.value
            case q.ListOf():
                return tuple(self.value(each, env) for each in expr.items)
            case q.Param():
                return self.params.get(expr.name)
            case q.Now():
                return self.now
            case q.PropertyRef():
                return self._properties(env[expr.var]).get(expr.name)
            case q.SystemRef():
                kind, type_name, key = env[expr.var]
                if expr.field == "id":
                    return key
                if expr.field == "type":
                    return type_name
                assert kind == "edge"
                return self.graph.edges[type_name][key][0 if expr.field == "src" else 1]
            case q.NodeRef():
                return env[expr.var]
            case q.Compare():
                return compared(expr.op, self.value(expr.left, env), self.value(expr.right, env))
            case q.And():
                return conjunction(self.value(expr.left, env), self.value(expr.right, env))
            case q.Or():
                left, right = self.value(expr.left, env), self.value(expr.right, env)
                return negation(conjunction(negation(left), negation(right)))
            case q.Not():
                return negation(self.value(expr.operand, env))
            case q.IsNull():
                return (self.value(expr.operand, env) is None) != expr.negated
            case q.InList():
                item, items = self.value(expr.item, env), self.value(expr.items, env)
                if item is None or items is None:
                    return None
                return any(each is not None and compared("=", item, each) for each in items)
            case q.TextTest():
                text, part = self.value(expr.text, env), self.value(expr.part, env)
                if text is None or part is None:
                    return None
                return part in text if expr.kind == "contains" else text.startswith(part)
            case q.TextSearch():
                return self._holds(expr, env)
            case q.Aggregate() | q.Nearest() | q.Bm25() | q.Fused():
                raise AssertionError("an aggregate or a rank is no value of one row")

    # --- search

    def _holds(self, expr: q.TextSearch, env: Env) -> bool | None:
        text, query = self.value(expr.text, env), self.value(expr.query, env)
        if text is None or query is None:
            return None
        if expr.call != "fuzzy":
            return not set(tokens(text, TERMS)).isdisjoint(tokens(query, TERMS))
        edits = 2 if expr.edits is None else self.value(expr.edits, env)
        words = tokens(text, WORDS)
        return any(distance(a, b) <= edits for a in tokens(query, WORDS) for b in words)

    def scores(self, rank: q.Rank, found: Sequence[Env], limit: int | None) -> dict[str, float]:
        """By id of the ranked node, of those that have one."""
        match rank:
            case q.Nearest():
                return self._distances(rank, found)
            case q.Bm25():
                return self._relevance(rank, found)
            case q.Fused():
                fused: dict[str, float] = {}
                for arm in (rank.first, rank.second):
                    scores = self.scores(arm, found, limit)
                    near = isinstance(arm, q.Nearest)
                    ranked = sorted(scores, key=lambda each: (scores[each] if near else -scores[each], each.encode()))
                    for place, each in enumerate(ranked[: limit if near else None], start=1):
                        fused[each] = fused.get(each, 0.0) + 1 / (self.value(rank.k, {}) + place)
                return fused

    def _distances(self, rank: q.Nearest, found: Sequence[Env]) -> dict[str, float]:
        query = self.value(rank.query, {})
        scores: dict[str, float] = {}
        for env in found:
            vector = self.value(rank.vector, env)
            if vector is not None:
                scores[env[rank.vector.var][2]] = f32(sum((a - b) ** 2 for a, b in zip(vector, query, strict=True)))
        return scores

    def _relevance(self, rank: q.Bm25, found: Sequence[Env]) -> dict[str, float]:
        """BM25 over all values of the type that hold a term."""
        type_name = next((env[rank.text.var][1] for env in found), None)
        if type_name is None:
            return {}
        every = {key: tokens(row.get(rank.text.name) or "", TERMS) for key, row in self.graph.nodes[type_name].items()}
        filled = {key: terms for key, terms in every.items() if terms}
        average = sum(map(len, filled.values())) / max(len(filled), 1)
        scores: dict[str, float] = {}
        for key in {env[rank.text.var][2] for env in found}:
            asked = tokens(self.value(rank.query, {}), TERMS)
            if set(asked).isdisjoint(every[key]):
                continue
            score = 0.0
            for term in asked:
                f, holders = every[key].count(term), sum(term in terms for terms in filled.values())
                idf = math.log(1 + (len(filled) - holders + 0.5) / (holders + 0.5))
                score += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(every[key]) / average))
            scores[key] = f32(score)
        return scores

    def _properties(self, entity: tuple[str, str, str]) -> Mapping[str, Any]:
        kind, type_name, key = entity
        return self.graph.nodes[type_name][key] if kind == "node" else self.graph.edges[type_name][key][2]

    # --- return, order

    def all_rows(self, query: q.ReadQuery) -> list[dict[str, Any]]:
        """All rows before `limit`, in the one order there is if the query has an order."""
        found = self.assignments(query.pattern, {})
        keyed = self._grouped(query, found) if query.aggregated else self._plain(query, found)
        if query.order:
            keyed.sort(key=lambda pair: pair[1])
        return [row for row, _ in keyed]

    def limit(self, query: q.ReadQuery) -> int | None:
        return self.params[query.limit.name] if isinstance(query.limit, q.Param) else query.limit

    def _plain(self, query: q.ReadQuery, found: list[Env]) -> list[tuple[dict[str, Any], Any]]:
        rows: list[tuple[dict[str, Any], Any]] = []
        rank = query.order[0].expr if query.order else None
        scores: dict[str, float] | None = None
        if isinstance(rank, q.Nearest | q.Bm25 | q.Fused):
            scores = self.scores(rank, found, self.limit(query))
        for env in found:
            score = None
            keys: list[Any] = []
            if scores is not None:
                score = scores.get(env[ranked(rank)][2])
                if score is None:
                    continue
                keys.append(Directed((1, score), not isinstance(rank, q.Nearest)))
            keys += [
                Directed(order_key(self.value(key.expr, env), _type(key.expr)), key.descending)
                for key in query.order[0 if scores is None else 1 :]
            ]
            names = sorted((name for name in env if not name.startswith("__")), key=str.encode)
            ids = [
                (env[n][1].encode(), env[n][2].encode()) if env[n][0] == "edge" else env[n][2].encode() for n in names
            ]
            shown = {
                item.name: score if item.expr == rank and score is not None else self._shown(item.expr, env)
                for item in query.items
            }
            rows.append((shown, (keys, ids)))
        return rows

    def _grouped(self, query: q.ReadQuery, found: list[Env]) -> list[tuple[dict[str, Any], Any]]:
        plain = [item for item in query.items if not isinstance(item.expr, q.Aggregate)]
        groups: dict[Any, list[Env]] = {} if plain else {(): []}
        for env in found:
            key = tuple(order_key(self.value(item.expr, env), _type(item.expr)) for item in plain)
            groups.setdefault(key, []).append(env)
        rows: list[tuple[dict[str, Any], Any]] = []
        for key, members in groups.items():
            row: dict[str, Any] = {}
            orders: dict[str, Any] = {}
            for item in query.items:
                if isinstance(item.expr, q.Aggregate):
                    values = [self.value(item.expr.argument, env) for env in members]
                    kind = None if isinstance(item.expr.argument, q.NodeRef) else item.expr.argument.type
                    row[item.name] = fold(item.expr.func, values, kind)
                    orders[item.name] = order_key(row[item.name], item.expr.type)
                else:
                    row[item.name] = positive_zero(self._shown(item.expr, members[0]))
                    orders[item.name] = key[[i.name for i in plain].index(item.name)]
            by = [Directed(orders[self._item(query, k).name], k.descending) for k in query.order]
            rows.append((row, (by, [orders[item.name] for item in plain])))
        return rows

    def _item(self, query: q.ReadQuery, key: q.OrderKey) -> q.ReturnItem:
        return query.items[key.item] if key.item is not None else next(i for i in query.items if i.expr == key.expr)

    def _shown(self, expr: q.Expr, env: Env) -> Any:
        if not isinstance(expr, q.NodeRef):
            value = self.value(expr, env)
            return list(value) if isinstance(value, tuple) else value
        _, type_name, key = env[expr.var]
        shown: dict[str, Any] = {"@id": key}
        for each in self.graph.catalog.nodes[type_name].properties:
            if each.type.kind != "vector" and each.type.scalar is not Scalar.BLOB:
                value = self.graph.nodes[type_name][key].get(each.name)
                shown[each.name] = list(value) if isinstance(value, (tuple, list)) else value
        return shown


def ranked(rank: Any) -> str:
    """The variable of a rank."""
    match rank:
        case q.Nearest():
            return rank.vector.var
        case q.Bm25():
            return rank.text.var
        case _:
            return ranked(rank.first)


def distance(a: str, b: str) -> int:
    """Levenshtein."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def _type(expr: q.Expr) -> ValueType | None:
    return None if isinstance(expr, q.NodeRef) else expr.type


# --- three-valued logic


def negation(x: bool | None) -> bool | None:
    return None if x is None else not x


def conjunction(x: bool | None, y: bool | None) -> bool | None:
    if x is False or y is False:
        return False
    return None if x is None or y is None else True


def compared(op: str, x: Any, y: Any) -> bool | None:
    if x is None or y is None:
        return None
    if isinstance(x, str):  # by code point, which is not Python's order only for lone surrogates
        x, y = [ord(c) for c in x], [ord(c) for c in y]
    return {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]


# --- order and aggregates


class Directed:
    """A sort key that may run backwards."""

    def __init__(self, key: Any, descending: bool) -> None:
        self.key = key
        self.descending = descending

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Directed) and self.key == other.key

    def __lt__(self, other: Directed) -> bool:
        return other.key < self.key if self.descending else self.key < other.key

    __hash__ = None  # type: ignore[assignment]


def order_key(value: Any, of: ValueType | None) -> Any:
    """Something whose Python order and equality are those of 11.2: null lowest, zeros equal, lists element by element."""
    if value is None:
        return (0,)
    if of is None:  # a node, by id
        return (1, value[2].encode())
    if of.kind in ("list", "vector"):
        return (1, tuple(order_key(each, ValueType("scalar", of.scalar)) for each in value))
    if isinstance(value, str):
        return (1, value.encode("utf-8"))
    return (1, value)


def positive_zero(value: Any) -> Any:
    if isinstance(value, float) and value == 0:
        return 0.0
    if isinstance(value, list):
        return [positive_zero(each) for each in value]
    return value


def fold(func: str, values: Sequence[Any], of: ValueType | None) -> Any:
    present = [value for value in values if value is not None]
    if func == "count":
        return len(present)
    if not present:
        return None
    assert of is not None
    if func == "sum":
        return exact_sum(present) if of.scalar in FLOATS else float(sum(present))
    if func == "avg":
        return exact_sum([float(value) for value in present]) / len(present)
    if of.scalar in NUMBERS:
        best = (min if func == "min" else max)(present, key=lambda x: (x, math.copysign(1, x)))
        return best
    key = (lambda x: x.encode("utf-8")) if isinstance(present[0], str) else (lambda x: x)
    return (min if func == "min" else max)(present, key=key)


def exact_sum(values: Sequence[float]) -> float:
    """Rounded once, from the exact sum; `math.fsum` gives up where only a step on the way is too large."""
    if not all(map(math.isfinite, values)):
        return math.fsum(values)
    exact = sum(map(Fraction, values), Fraction())
    try:
        return float(exact)
    except OverflowError:
        return -math.inf if exact < 0 else math.inf


def f32(value: float) -> float:
    """The value as a 32-bit float holds it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def same_cell(left: Any, right: Any) -> bool:
    """Equal values, zeros told apart; sums of floats agree within 1e-12."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isinf(left) or math.isinf(right):
            return left == right
        close = math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-300)
        return close and (left != 0 or math.copysign(1, left) == math.copysign(1, right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same_cell(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_cell(left[k], right[k]) for k in left)
    return type(left) is type(right) and left == right


def cell_text(value: Any) -> str:
    """Something to sort rows by that are compared as multisets."""
    if isinstance(value, float):
        return f"{value:.9e}"
    return repr(value)
