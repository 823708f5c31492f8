"""Inserts, updates and deletes (languages.md 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.lang.query.constant_places import ConstantPlace, WherePlace
from omnigraph.lang.query.expressions import require_boolean, typed_expression
from omnigraph.lang.query.faults import Fault, Replacement, listing, nearest_name, type_fault
from omnigraph.lang.query.fit import assigned_value
from omnigraph.lang.query.places import declared_property
from omnigraph.lang.query.printer import expression_text
from omnigraph.lang.query.syntax import (
    DeleteSyntax,
    Expression,
    InsertSyntax,
    Pair,
    UpdateSyntax,
    Word,
    WriteSyntax,
)
from omnigraph.lang.query.typed import Assignment, Constant, Delete, Expr, Insert, Param, Update
from omnigraph.lang.query.value_types import spelled, value_type
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.lang.types import Scalar

_ENDS = ("from", "to")


def check_statements(
    statements: Sequence[WriteSyntax], params: Mapping[str, Param], catalog: Catalog
) -> tuple[Insert | Update | Delete, ...]:
    """The typed statements of a mutation. Raises `Fault`: `T65` first, then by statement in the order of 16.1."""
    deletes = isinstance(statements[0], DeleteSyntax)
    for statement in statements:
        if isinstance(statement, DeleteSyntax) != deletes:
            kind = "deletes" if deletes else "inserts and updates"
            raise type_fault(
                "T65",
                f"a mutation holds inserts and updates, or deletes, not both: this one began with {kind}",
                statement.span,
                expected="two mutations, one after the other",
            )
    check = _StatementCheck(params, catalog)
    return tuple(check.checked(statement) for statement in statements)


@dataclass(frozen=True, slots=True)
class _StatementCheck:
    params: Mapping[str, Param]
    catalog: Catalog

    def checked(self, statement: WriteSyntax) -> Insert | Update | Delete:
        target = self._target(statement.type_name)
        if isinstance(statement, DeleteSyntax):
            return Delete(target.kind, target.name, self._where(statement.where, target), statement.span)
        if isinstance(statement, UpdateSyntax) and isinstance(target, EdgeType):
            raise type_fault(
                "T16",
                f"`{target.name}` is an edge type, and edges are not updated",
                statement.type_name.span,
                expected="an insert of the same key, or a delete and an insert",
                type_name=target.name,
            )
        assignments = self._assignments(statement, target)
        if isinstance(statement, UpdateSyntax):
            return Update(target.name, assignments, self._where(statement.where, target), statement.span)
        _check_complete(statement, target, {assignment.property for assignment in assignments})
        return Insert(target.kind, target.name, assignments, statement.span)

    def _target(self, name: Word) -> EntityType:
        """The node type of a name, else the edge type."""
        target = self.catalog.nodes.get(name.text) or self.catalog.edges.get(name.text)
        if target is not None:
            return target
        known = [*self.catalog.nodes, *self.catalog.edges]
        near = nearest_name(name.text, known)
        raise type_fault(
            "T10",
            f"there is no type `{name.text}`",
            name.span,
            expected=f"a node or edge type: {listing(known)}",
            fix=near,
            edits=(Replacement(name.span, near),) if near else (),
            type_name=name.text,
        )

    def _where(self, where: Expression, target: EntityType) -> Expr:
        typed = typed_expression(where, WherePlace(self.params, target))
        require_boolean(typed, where)
        return typed

    def _assignments(self, statement: InsertSyntax | UpdateSyntax, target: EntityType) -> tuple[Assignment, ...]:
        if not statement.assignments:
            raise type_fault(
                "T10",
                "a statement assigns at least one property",
                statement.type_name.span,
                expected="`name: value`",
                type_name=target.name,
            )
        assigned: set[str] = set()
        assignments: list[Assignment] = []
        for pair in statement.assignments:
            if pair.name.text in assigned:
                raise type_fault(
                    "T13",
                    f"`{pair.name.text}` is assigned twice",
                    pair.name.span,
                    expected="each property once",
                    type_name=target.name,
                    property_name=pair.name.text,
                )
            assigned.add(pair.name.text)
            assignments.append(self._assignment(pair, target, update=isinstance(statement, UpdateSyntax)))
        return tuple(assignments)

    def _assignment(self, pair: Pair, target: EntityType, *, update: bool) -> Assignment:
        place = ConstantPlace(self.params, "assignment")
        if isinstance(target, EdgeType) and pair.name.text in _ENDS:
            return Assignment(pair.name.text, _end(pair, target, typed_expression(pair.value, place)), pair.span)
        if pair.name.text == "id" and target.property("id") is None:
            raise _no_id(pair, target)
        wanted = declared_property("T11", target, pair.name, pair.name.span)
        if update and wanted.name in target.key:
            raise type_fault(
                "T64",
                f"`{wanted.name}` is part of the key of `{target.name}`, which never changes",
                pair.name.span,
                expected="a property that is not in the key",
                type_name=target.name,
                property_name=wanted.name,
            )
        value = typed_expression(pair.value, place)
        return Assignment(wanted.name, assigned_value(target, wanted, pair, value), pair.span)


def _no_id(pair: Pair, target: EntityType) -> Fault:
    how = "follows from the key" if target.key else "is given to each new entity"
    return type_fault(
        "T11",
        f"`{target.name}` has no property `id`; the id of an entity {how} and is not assigned",
        pair.name.span,
        expected=f"a property of `{target.name}`: {listing(known.name for known in target.properties)}",
        type_name=target.name,
        property_name="id",
    )


def _end(pair: Pair, target: EdgeType, value: Expr) -> Expr:
    """An end of an inserted edge: the String id of a node. Raises `Fault`: `T3` for a literal, `T7` for the rest."""
    of = value_type(value)
    if of is not None and of.kind == "scalar" and of.scalar is Scalar.STRING:
        return value
    fix = None
    if isinstance(value, Constant) and isinstance(value.value, int) and not isinstance(value.value, bool):
        fix = f'"{value.value}"'
    raise type_fault(
        "T3" if isinstance(value, Constant) else "T7",
        f"`{pair.name.text}` is the id of a node, a String, not `{spelled(value)}`",
        pair.value.span,
        expression=expression_text(pair.value),
        expected="a String",
        fix=fix,
        edits=(Replacement(pair.value.span, fix),) if fix else (),
        type_name=target.name,
        property_name=pair.name.text,
    )


def _check_complete(statement: InsertSyntax, target: EntityType, assigned: set[str]) -> None:
    """Raises `Fault` (`T12`) for the first end or required property that an insert does not assign."""
    ends = _ENDS if isinstance(target, EdgeType) else ()
    required = [p.name for p in target.properties if not p.type.nullable and p.embed is None]
    missing = [name for name in (*ends, *required) if name not in assigned]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise type_fault(
            "T12",
            f"an insert of `{target.name}` needs {names}",
            statement.type_name.span,
            expected=names,
            type_name=target.name,
            property_name=missing[0],
        )
