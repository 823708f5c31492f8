"""Which declaration continues which accepted type or property (languages.md 5.2).

By name first: a name that the accepted schema has goes on, and a `@rename_from` beside it says nothing. Otherwise by
the note. A note that leads nowhere is refused with `S012`. A property that an interface brings follows the note of the
interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.lang.schema.catalog import Catalog, EdgeType, Interface, NodeType
from omnigraph.lang.schema.faults import Faults, closest, one_of
from omnigraph.lang.schema.notes import RenameNote
from omnigraph.lang.schema.syntax import EdgeDecl, InterfaceDecl, NodeDecl, Note, PropertyDecl, SchemaSyntax, Value

Names = Mapping[str, str]  # present name -> accepted name; new names are absent


@dataclass(frozen=True, slots=True)
class Pairing:
    """Accepted names by present names: of types per kind, and of properties per present type."""

    interfaces: Names
    nodes: Names
    edges: Names
    interface_properties: Mapping[str, Names]
    node_properties: Mapping[str, Names]
    edge_properties: Mapping[str, Names]


def paired(accepted: Catalog, desired: Catalog, syntax: SchemaSyntax) -> Pairing:
    """The pairing of two schemas. Raises `InvalidSchema` (`S012`)."""
    pairs = _Pairs(accepted, Faults(syntax.text))
    interfaces = {name: name for name in desired.interfaces if name in accepted.interfaces}
    nodes = pairs.types("node", {d.name.text: rename_note(d.notes) for d in syntax.nodes}, accepted.nodes)
    edges = pairs.types("edge", {d.name.text: rename_note(d.notes) for d in syntax.edges}, accepted.edges)
    of_interfaces = {
        d.name.text: pairs.properties(d, accepted.interfaces.get(interfaces.get(d.name.text, "")))
        for d in syntax.interfaces
    }
    of_nodes: dict[str, Names] = {}
    for declaration in syntax.nodes:
        name = declaration.name.text
        before = accepted.nodes.get(nodes.get(name, ""))
        own = pairs.properties(declaration, before, desired.nodes[name])
        of_nodes[name] = own if before is None else {**own, **_brought(before, desired.nodes[name], own, of_interfaces)}
    of_edges = {d.name.text: pairs.properties(d, accepted.edges.get(edges.get(d.name.text, ""))) for d in syntax.edges}
    return Pairing(interfaces, nodes, edges, of_interfaces, of_nodes, of_edges)


def rename_note(notes: Iterable[Note]) -> RenameNote | None:
    """The `@rename_from` among notes that were checked before."""
    for note in notes:
        if note.name == "rename_from" and isinstance(note.argument, Value) and isinstance(note.argument.value, str):
            return RenameNote(note.argument.value, note.span)
    return None


def _brought(before: NodeType, after: NodeType, own: Names, of_interfaces: Mapping[str, Names]) -> dict[str, str]:
    """Names of the properties that interfaces bring to a type, as the accepted type had them."""
    accepted = {declared.name for declared in before.properties}
    present = {declared.name for declared in after.properties}
    names: dict[str, str] = {}
    for declared in after.properties:
        if not declared.injected_by:
            continue
        if declared.name in accepted:
            names[declared.name] = declared.name
            continue
        for interface in declared.injected_by:
            old = of_interfaces[interface].get(declared.name)
            claimed = {*own.values(), *names.values()}
            if old is not None and old in accepted and old not in present and old not in claimed:
                names[declared.name] = old
                break
    return names


class _Pairs:
    """Pairs names and refuses notes, with what the messages need to know."""

    def __init__(self, accepted: Catalog, faults: Faults) -> None:
        self._accepted = accepted
        self._faults = faults

    def types(
        self,
        kind: str,
        notes: Mapping[str, RenameNote | None],
        accepted: Mapping[str, NodeType] | Mapping[str, EdgeType],
    ) -> Names:
        names = {name: name for name in notes if name in accepted}
        for name, note in notes.items():
            if name in names or note is None:
                continue
            if note.old not in accepted:
                other = self._accepted.edges if kind == "node" else self._accepted.nodes
                if note.old in other:
                    message = f"`{note.old}` is no {kind} type, and a type keeps its kind"
                else:
                    message = f"the accepted schema has no {kind} type `{note.old}`"
                raise self._unknown(note, message, accepted)
            self._claim(names, name, note)
        return names

    def properties(
        self,
        declaration: InterfaceDecl | NodeDecl | EdgeDecl,
        accepted: Interface | NodeType | EdgeType | None,
        desired: NodeType | None = None,
    ) -> Names:
        """Names of the declaration's own properties. `desired` adds those that a node type gets from interfaces."""
        known = () if accepted is None else tuple(declared.name for declared in accepted.properties)
        own: dict[str, PropertyDecl] = {d.name.text: d for d in declaration.properties}
        present = set(own) if desired is None else {declared.name for declared in desired.properties}
        names = {name: name for name in own if name in known}
        for name, written in own.items():
            note = rename_note(written.notes)
            if name in names or note is None:
                continue
            if accepted is None:
                message = f"`{declaration.name.text}` is new, so `{name}` continues nothing"
                raise self._faults.refusal("S012", note.span, message, expected="no `@rename_from`", stage="migration")
            if note.old not in known:
                message = f"the accepted `{accepted.name}` has no property `{note.old}`"
                raise self._unknown(note, message, known)
            if note.old in present:
                raise self._twice(note, note.old)
            self._claim(names, name, note)
        return names

    def _claim(self, names: dict[str, str], name: str, note: RenameNote) -> None:
        for other, old in names.items():
            if old == note.old:
                raise self._twice(note, other)
        names[name] = note.old

    def _twice(self, note: RenameNote, other: str) -> Exception:
        message = f"`{note.old}` goes on as `{other}` already"
        return self._faults.refusal("S012", note.span, message, expected="one successor", stage="migration")

    def _unknown(self, note: RenameNote, message: str, known: Iterable[str]) -> Exception:
        near = closest(note.old, known)
        fix = None if near is None else f'@rename_from("{near}")'
        return self._faults.refusal("S012", note.span, message, expected=one_of(known), fix=fix, stage="migration")
