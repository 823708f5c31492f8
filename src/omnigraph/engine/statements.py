"""Statements that are a whole text: branches (languages.md 14), `show` and what settings lines bring to a query (19).

A branch statement takes no parameters, no target and no condition. `branch list` and `show` belong to the read door, the
other statements to the write door.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING

from omnigraph.engine.core import GraphCore
from omnigraph.engine.receipts import Branch
from omnigraph.engine.result import Result, Target
from omnigraph.engine.settings import RequestSettings, Shown
from omnigraph.engine.writing.branches import branches
from omnigraph.errors import InvalidQuery, InvalidRequest
from omnigraph.lang.diagnostics import SourceText
from omnigraph.lang.query.check import check_file
from omnigraph.lang.query.faults import invalid_query, without_plan
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.syntax import BranchStatement, ExplainStatement, SettingLine, ShowStatement
from omnigraph.lang.schema.catalog import Catalog

if TYPE_CHECKING:
    import pyarrow as pa

# what was passed over is not tried again (`*+`): many comments could be split in too many ways
_BEGINS = re.compile(r"\ufeff?(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*+(?:branch|show|set|reset|explain)\b", re.DOTALL)
_KEPT = 256


@dataclass(frozen=True, slots=True)
class Around:
    """What a text holds besides queries: settings lines, a statement, or `explain` before its query."""

    settings: tuple[SettingLine, ...] = ()
    statement: BranchStatement | ShowStatement | None = None
    explains: bool = False


def around(source: str) -> Around:
    """Raises InvalidQuery for a malformed text that begins with a settings line or a statement."""
    return _around(source) if _BEGINS.match(source) else _NOTHING


_NOTHING = Around()


@lru_cache(_KEPT)
def _around(source: str) -> Around:
    file = parse_file(source)
    statement = file.statement if isinstance(file.statement, BranchStatement | ShowStatement) else None
    if statement is not None:
        check_file(file, Catalog(nodes={}, edges={}, interfaces={}))
    return Around(tuple(file.settings), statement, isinstance(file.statement, ExplainStatement))


def unexplained(source: str, name: str | None) -> InvalidQuery:
    """The refusal (`Q004`) to explain a text that is a statement, or its mutation of this name."""
    file = parse_file(source)
    if isinstance(file.statement, BranchStatement | ShowStatement):
        fault = without_plan("is a statement", file.statement.span, "`query`")
    else:
        mutation = next(query for query in file.declared if query.name.text == name)
        fault = without_plan("query is a mutation", mutation.body_span, "`match`")
    return invalid_query(fault, SourceText(file.text), name)


def stated(
    core: GraphCore, branch: str, statement: BranchStatement | ShowStatement, settings: RequestSettings
) -> Result:
    """The answer of a statement of the read door, by a handle on this branch. Raises InvalidRequest (`wrong_verb`) for one
    of the write door.
    """
    if isinstance(statement, BranchStatement) and statement.verb != "list":
        raise wrong_door(statement, "query")
    head = str(core.head(branch).manifest.head_commit.id)
    if isinstance(statement, BranchStatement):
        return Result(_names(branches(core)), ("String",), head, "branch list", Target(None))
    table = _shown(settings.shown(statement.name.text))
    return Result(table, ("String",) * table.num_columns, head, "show", Target(None))


def _shown(rows: Sequence[Shown]) -> pa.Table:
    """What `show` answers: a row for each setting."""
    import pyarrow as pa

    names = [each.name for each in fields(Shown)]
    return pa.table({name: pa.array([getattr(row, name) for row in rows], pa.string()) for name in names})


def _names(live: list[Branch]) -> pa.Table:
    """What `branch list` answers: names in byte order."""
    import pyarrow as pa

    return pa.table({"name": pa.array(sorted((b.name for b in live), key=str.encode), pa.string())})


def refuse_company(
    statement: BranchStatement | ShowStatement,
    *,
    params: object,
    target: object,
    condition: object = None,
    name: object = None,
) -> None:
    """Raises InvalidRequest if something stands beside a statement that takes nothing."""
    kind = "branch" if isinstance(statement, BranchStatement) else "`show`"
    for given, what in (
        (params, "parameters"),
        (target, "a branch or snapshot"),
        (condition, "a condition"),
        (name, "a query name"),
    ):
        if given:
            raise InvalidRequest(f"A {kind} statement takes no {what.removeprefix('a ')}.", effects="none")


def wrong_door(statement: BranchStatement, door: str) -> InvalidRequest:
    other = "query" if door == "mutate" else "mutate"
    return InvalidRequest(f"`branch {statement.verb}` goes to {other}.", code="wrong_verb", effects="none")
