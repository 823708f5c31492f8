"""A query that fits the present schema and not that of the past: which name the thing had then (history.md 3).

Types and properties keep their ids through renames, so the present schema says what a name means and the past one what
that was called. Nothing here makes a query legal.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.diagnostics import Diagnostic, Edit, Sought, SourceText, Suggestion
from omnigraph.lang.query.hops import edge_word
from omnigraph.lang.schema.catalog import Catalog


def with_past_name(refused: Diagnostic, source: str, past: Catalog, present: Catalog) -> Diagnostic:
    """The diagnostic of a query that the past schema refused, with the name of that time as its suggestion; unchanged if no
    rename explains the refusal.
    """
    sought = refused.sought
    name = None if sought is None else _past_name(sought, past, present)
    if sought is None or name is None:
        return refused
    start, end = SourceText(source).positions(sought.span)
    return replace(
        refused,
        message=f"{refused.message}; it was called `{name}` then",
        fix=f"{sought.prefix}{name}",
        suggestion=Suggestion("needs_review", (Edit(start.byte, end.byte, name),)),
    )


def _past_name(sought: Sought, past: Catalog, present: Catalog) -> str | None:
    if sought.kind == "property":
        now, then = present.by_id(sought.type_id), past.by_id(sought.type_id)
        meant = None if now is None else now.property(sought.name)
        if meant is None or then is None:
            return None
        return next((each.name for each in then.properties if each.id == meant.id), None)
    of = present.nodes.get(sought.name) if sought.kind == "node" else present.edge_by_word(sought.name)
    then = None if of is None else past.by_id(of.id)
    if then is None:
        return None
    return then.name if sought.kind == "node" else edge_word(then.name)
