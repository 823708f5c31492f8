"""Which names an expression or a hop can see, and what they are (languages.md 8.2).

A scope belongs to one block. What the enclosing blocks have bound before the block is visible in it; a name that they
bind only after it is refused (`T62`), since elsewhere it would silently be a different variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name, type_fault
from omnigraph.lang.query.typed import Param
from omnigraph.lang.schema.catalog import EdgeType, NodeType

ANONYMOUS = "_"


@dataclass(frozen=True, slots=True)
class EdgeVariable:
    """A bound edge: the types it can be of. Several, or none, only over a selection."""

    members: tuple[EdgeType, ...]


Bound = NodeType | EdgeVariable | Param


@dataclass(slots=True)
class Fresh:
    """Names for anonymous variables: `__1`, `__2`, … within one query."""

    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"__{self.count}"


@dataclass(slots=True)
class Scope:
    """`nodes` and `edges` hold the names of this block and the visible ones of the enclosing blocks.

    `outer` are the names bound outside and visible here, `later` those that the enclosing blocks bind only after it,
    `used` the outer ones that this block itself has used.
    """

    params: Mapping[str, Param]
    fresh: Fresh
    nodes: dict[str, NodeType] = field(default_factory=dict[str, NodeType])
    edges: dict[str, EdgeVariable] = field(default_factory=dict[str, EdgeVariable])
    outer: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set[str])

    def use(self, name: str, span: Span) -> None:
        """Note that the block uses a name. Raises `Fault` (`T62`) if it is bound only later outside."""
        if name in self.later:
            raise type_fault(
                "T62",
                f"`${name}` is bound outside only after this block",
                span,
                expression=f"${name}",
                expected=f"`${name}` bound before the block, or another name inside it",
            )
        if name in self.outer:
            self.used.add(name)

    def find(self, name: str, span: Span) -> Bound | None:
        """What a variable is, None if it is unbound. Counts as a use."""
        self.use(name, span)
        return self.nodes.get(name) or self.edges.get(name) or self.params.get(name)

    def inner(self, visible: frozenset[str], later: frozenset[str]) -> Scope:
        """The scope that a block nested in this one starts with; `visible` are the names it sees."""
        return Scope(
            params=self.params,
            fresh=self.fresh,
            nodes={name: of for name, of in self.nodes.items() if name in visible},
            edges={name: of for name, of in self.edges.items() if name in visible},
            outer=visible,
            later=later,
        )

    def unbound(self, name: str, span: Span) -> Fault:
        """`T6` for a variable that nothing binds."""
        known = [known for known in self._names() if not known.startswith("__")]
        near = nearest_name(name, known)
        edits = (Replacement(span, f"${near}"),) if near else ()
        if name == ANONYMOUS:
            message, near, edits = "`$_` names nothing: it can only be an end or the edge of a hop", None, ()
        else:
            message = f"`${name}` is bound nowhere"
        return type_fault(
            "T6",
            message,
            span,
            expression=f"${name}",
            expected=f"a variable or parameter: {listing(f'${known}' for known in known)}",
            fix=f"${near}" if near else None,
            edits=edits,
        )

    def _names(self) -> Iterator[str]:
        yield from self.nodes
        yield from self.edges
        yield from self.params
