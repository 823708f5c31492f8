"""Rules about a query as a whole, and about all queries of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.lang.query.lint.findings import Found
from omnigraph.lang.query.lint.looks import QueryLooks
from omnigraph.lang.query.syntax import QuerySyntax, ReadBody, UpdateSyntax, Variable, parts_of
from omnigraph.lang.schema.catalog import Catalog


def fixed_values(query: QueryLooks) -> Iterator[Found]:
    """`L203`: a mutation without parameters."""
    if not isinstance(query.syntax.body, ReadBody) and not query.syntax.params:
        message = f"{query.name} takes no parameters: its values are fixed"
        yield Found("L203", message, queries=(query.name,))


def unused_parameters(query: QueryLooks) -> Iterator[Found]:
    """`L206`: a parameter that the query never asks for."""
    body = query.syntax.body
    used = {part.name for look in query.looks for part in parts_of(look.expression) if isinstance(part, Variable)}
    if isinstance(body, ReadBody) and isinstance(body.limit, Variable):
        used.add(body.limit.name)
    for param in query.syntax.params:
        if param.name.text not in used:
            message = f"{query.name} never uses its parameter ${param.name.text}"
            yield Found("L206", message, param.span, queries=(query.name,))


def limit_without_order(query: QueryLooks) -> Iterator[Found]:
    """`L207`: a limit on rows that come in no order."""
    body = query.syntax.body
    if isinstance(body, ReadBody) and body.limit is not None and not body.order:
        message = f"{query.name} has a limit and no order: which rows come is open"
        yield Found("L207", message, body.limit_span, queries=(query.name,))


def never_updated(queries: Sequence[QuerySyntax], catalog: Catalog) -> Iterator[Found]:
    """`L201`: a nullable property, neither key nor `@embed` target, of a node type that some update of a file targets and
    that no update of the file assigns.
    """
    updates = [
        (query.name.text, statement)
        for query in queries
        if not isinstance(query.body, ReadBody)
        for statement in query.body
        if isinstance(statement, UpdateSyntax)
    ]
    assigned = {(update.type_name.text, pair.name.text) for _, update in updates for pair in update.assignments}
    for name in dict.fromkeys(update.type_name.text for _, update in updates):
        of = catalog.nodes.get(name)
        by = tuple(dict.fromkeys(query for query, update in updates if update.type_name.text == name))
        for prop in of.properties if of is not None else ():
            settable = prop.type.nullable and prop.embed is None
            if of is not None and settable and prop.name not in of.key and (name, prop.name) not in assigned:
                message = f"{name}.{prop.name} is never set by an update in this file"
                yield Found("L201", message, queries=by, type_name=name, property_name=prop.name)
