"""Hops: which edge types one follows, which way, and what types its ends have (languages.md 8.2, 8.4, 8.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.diagnostics import Sought, Span
from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name, type_fault
from omnigraph.lang.query.printer import clause_text, is_plain_name
from omnigraph.lang.query.scope import ANONYMOUS, EdgeVariable, Scope
from omnigraph.lang.query.syntax import TEXT_TESTS, HopClause, Word
from omnigraph.lang.query.typed import Hop, HopMember
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class HopEnds:
    """A hop clause and the names of its ends, fresh ones for `$_`."""

    clause: HopClause
    left: str
    right: str


def infer_types(hops: Sequence[HopEnds], scope: Scope, catalog: Catalog) -> None:
    """Give every end of a hop that has a type to have one: add to `scope.nodes` what the declared types imply.

    Over the hops in written order, as long as one has a typed end and gives the other its type; when only hops without
    a typed end are left, the first is read as written. A hop that can't be followed is passed over: `checked_hop`
    says what is wrong with it.
    """
    pending = [(hop, edge) for hop in hops if (edge := _representative(hop.clause, catalog)) is not None]
    while pending:
        left_over = [(hop, edge) for hop, edge in pending if not _spread(hop, edge, scope.nodes, catalog)]
        if len(left_over) == len(pending):
            hop, edge = left_over.pop(0)
            scope.nodes.setdefault(hop.left, catalog.nodes[edge.source])
            scope.nodes.setdefault(hop.right, catalog.nodes[edge.target])
        pending = left_over


def _representative(clause: HopClause, catalog: Catalog) -> EdgeType | None:
    """An edge type whose ends stand for the whole selection: the first, if all join the same pair of node types."""
    members = [catalog.edge_by_word(word.text) for word in clause.selection.words]
    if not members or members[0] is None:
        return None
    pair = {members[0].source, members[0].target}
    agree = all(member is not None and {member.source, member.target} == pair for member in members)
    return members[0] if agree else None


def _spread(hop: HopEnds, edge: EdgeType, types: dict[str, NodeType], catalog: Catalog) -> bool:
    """Type the untyped end of a hop with a typed one. False if neither end is typed."""
    left, right = types.get(hop.left), types.get(hop.right)
    if left is None and right is None:
        return False
    known = left or right
    if known is not None and (left is None or right is None):
        other = {edge.source: edge.target, edge.target: edge.source}.get(known.name)
        if other is not None:
            types[hop.right if right is None else hop.left] = catalog.nodes[other]
    return True


def checked_hop(hop: HopEnds, scope: Scope, catalog: Catalog, declared: Mapping[str, NodeType], seen: set[str]) -> Hop:
    """The typed hop. `declared` are the variables with a declaration, here or outside, `seen` the names that earlier
    clauses of the block have bound; a bound edge is added to the scope.

    Raises `Fault`: `T62`, `T23`, `T4`, `T15`, `T60`, `T68`, `T22`, `T5`, `T63`, in this order.
    """
    clause = hop.clause
    for end in (clause.left, clause.right):
        scope.use(end.text, end.span)
        if end.text in scope.edges:
            raise _role(end, f"`${end.text}` is an edge and cannot be the end of a hop")
    edges = _named_edges(clause, catalog)
    _check_binding(hop, scope, seen | set(declared))
    _check_bounds(clause)
    if clause.selection.wildcard:
        members = _wildcard_members(clause, catalog, declared)
    else:
        members = _selected_members(hop, edges, scope)
    if clause.bounds is not None and clause.bounds.high != 1 and _changes_type(hop, scope):
        raise type_fault(
            "T63",
            "several hops need the same node type at both ends",
            clause.bounds.span,
            expression=clause_text(clause),
            expected="`{1,1}`, or an edge from a type to itself",
        )
    bound = clause.binding if clause.binding is not None and clause.binding.text != ANONYMOUS else None
    if bound is not None:
        scope.edges[bound.text] = EdgeVariable(tuple(catalog.edges[member.edge_type] for member in members))
    return Hop(
        left=hop.left,
        right=hop.right,
        members=members,
        low=1 if clause.bounds is None else clause.bounds.low,
        high=1 if clause.bounds is None else clause.bounds.high or 1,
        edge_var=None if bound is None else bound.text,
        kind=_kind(clause),
    )


def _kind(clause: HopClause) -> Literal["named", "alternation", "wildcard"]:
    if clause.selection.wildcard:
        return "wildcard"
    return "alternation" if len(clause.selection.words) > 1 else "named"


def _named_edges(clause: HopClause, catalog: Catalog) -> list[tuple[Word, EdgeType]]:
    """The words with their edge types, one word for each type. Raises `Fault` (`T4`)."""
    edges: dict[str, tuple[Word, EdgeType]] = {}
    for word in clause.selection.words:
        edge = catalog.edge_by_word(word.text)
        if edge is None:
            raise _unknown_edge(word, clause, catalog)
        edges.setdefault(edge.name, (word, edge))
    return list(edges.values())


def _unknown_edge(word: Word, clause: HopClause, catalog: Catalog) -> Fault:
    known = sorted(edge_word(edge.name) for edge in catalog.edges.values())
    near = nearest_name(word.text, known)
    expected = f"an edge: {listing(known)}"
    fix, edits = (near, (Replacement(word.span, near),)) if near else (None, ())
    if word.text in TEXT_TESTS:
        fix, expected = text_test_fix(clause)
        edits = (Replacement(clause.span, fix),)
    return type_fault(
        "T4",
        f"there is no edge type `{word.text}`",
        word.span,
        expression=clause_text(clause),
        expected=expected,
        fix=fix,
        edits=edits,
        sought=Sought("edge", word.text, word.span),
    )


def edge_word(name: str) -> str:
    """How a query usually spells an edge type: with a small first letter, in quotes if it is no name."""
    word = name[:1].lower() + name[1:]
    return word if is_plain_name(word) else f'"{word}"'


def text_test_fix(clause: HopClause) -> tuple[str, str]:
    """What a hop over an edge `contains` or `starts_with` was meant to be, and both spellings for `expected`."""
    word, left, right = clause.selection.words[0].text, clause.left.text, clause.right.text
    call = f"{word}(${left}, ${right})"
    if word == "contains":
        return call, f"the test `{call}`, or for a list `${right} in ${left}`"
    return call, f"the test `{call}`"


def _check_binding(hop: HopEnds, scope: Scope, taken: set[str]) -> None:
    binding, bounds = hop.clause.binding, hop.clause.bounds
    if binding is None:
        return
    scope.use(binding.text, binding.span)
    ends = {hop.clause.left.text, hop.clause.right.text}
    if binding.text != ANONYMOUS and (binding.text in ends or binding.text in taken or binding.text in scope.outer):
        raise _role(binding, f"`${binding.text}` is bound already, and the edge of a hop needs a name of its own")
    if bounds is not None:
        raise type_fault(
            "T23",
            "the edge of a hop has a name only over one step",
            bounds.span,
            expression=clause_text(hop.clause),
            expected="no bounds",
            edits=(Replacement(bounds.span, ""),),
        )


def _check_bounds(clause: HopClause) -> None:
    bounds = clause.bounds
    if bounds is None or (bounds.high is not None and 1 <= bounds.low <= bounds.high):
        return
    message = "a hop has an upper bound" if bounds.high is None else "the bounds of a hop are 1 <= m <= n"
    raise type_fault("T15", message, bounds.span, expression=clause_text(clause), expected="`{m,n}` with 1 <= m <= n")


def _wildcard_members(clause: HopClause, catalog: Catalog, declared: Mapping[str, NodeType]) -> tuple[HopMember, ...]:
    """Every edge type that fits the ends. Raises `Fault` (`T60`, `T22`)."""
    for end in (clause.left, clause.right):
        if end.text not in declared:
            raise type_fault(
                "T60",
                "both ends of `*` have a declared type",
                end.span,
                expression=clause_text(clause),
                expected=f"a declaration: `${end.text}: …`",
            )
    left, right = declared[clause.left.text].name, declared[clause.right.text].name
    if left == right:
        way: Literal["both", "out"] = "both" if clause.selection.undirected else "out"
        fitting = [edge for edge in catalog.edges.values() if edge.source == edge.target == left]
        return tuple(HopMember(edge.name, way) for edge in fitting)
    if clause.selection.undirected:
        raise _two_types(clause, left, right)
    return tuple(
        HopMember(edge.name, "out" if edge.source == left else "in")
        for edge in catalog.edges.values()
        if (edge.source, edge.target) in ((left, right), (right, left))
    )


def _selected_members(hop: HopEnds, edges: list[tuple[Word, EdgeType]], scope: Scope) -> tuple[HopMember, ...]:
    """The members with the way each is crossed. Raises `Fault` (`T68`, `T22`, `T5`)."""
    clause, (_, first) = hop.clause, edges[0]
    for word, edge in edges[1:]:
        if {edge.source, edge.target} != {first.source, first.target}:
            message = (
                f"`{edge.name}` joins `{edge.source}` and `{edge.target}`, not `{first.source}` and `{first.target}`"
            )
            raise _disagreement(clause, word.span, message)
    if clause.selection.undirected and first.source != first.target:
        raise _two_types(clause, first.source, first.target)
    left, right = scope.nodes.get(hop.left), scope.nodes.get(hop.right)
    misfit = _misfit(first, left, right)
    if misfit is not None:
        word, found = (clause.left, left) if misfit == "left" else (clause.right, right)
        name = "no type" if found is None else f"`{found.name}`"
        message = f"`${word.text}` is {name}, and `{first.name}` joins `{first.source}` and `{first.target}`"
        if len(edges) > 1:
            raise _disagreement(clause, word.span, message)
        raise type_fault("T5", message, word.span, expression=clause_text(clause), expected=_fitting_ends(first))
    if first.source == first.target:
        way: Literal["both", "out"] = "both" if clause.selection.undirected else "out"
        return tuple(HopMember(edge.name, way) for _, edge in edges)
    assert left is not None
    return tuple(HopMember(edge.name, "out" if edge.source == left.name else "in") for _, edge in edges)


def _misfit(edge: EdgeType, left: NodeType | None, right: NodeType | None) -> Literal["left", "right"] | None:
    """The end whose type an edge does not have there; where both could be meant, the left one if it is at neither."""
    ends = (None if left is None else left.name, None if right is None else right.name)
    if ends in ((edge.source, edge.target), (edge.target, edge.source)):
        return None
    return "left" if ends[0] not in (edge.source, edge.target, None) or ends[1] is None else "right"


def _fitting_ends(edge: EdgeType) -> str:
    if edge.source == edge.target:
        return f"`{edge.source}` at both ends"
    return f"`{edge.source}` at one end and `{edge.target}` at the other"


def _changes_type(hop: HopEnds, scope: Scope) -> bool:
    return scope.nodes[hop.left].name != scope.nodes[hop.right].name


def _disagreement(clause: HopClause, span: Span, message: str) -> Fault:
    return type_fault(
        "T68", message, span, expression=clause_text(clause), expected="edge types that join the same two node types"
    )


def _two_types(clause: HopClause, left: str, right: str) -> Fault:
    return type_fault(
        "T22",
        f"an undirected hop joins nodes of one type, not `{left}` and `{right}`",
        clause.selection.span,
        expression=clause_text(clause),
        expected="an edge from a type to itself, or no angle brackets",
    )


def _role(word: Word, message: str) -> Fault:
    return type_fault("T23", message, word.span, expression=f"${word.text}", expected="a name of its own")
