"""Branch statements as a whole query text (languages.md 14): `branch create n from p`, `delete n`, `merge s into t`, `list`.

A statement takes no parameters, no target and no condition. `list` belongs to the read door, the others to the write door.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from omnigraph.errors import InvalidRequest
from omnigraph.lang.query.parse import parse_file
from omnigraph.lang.query.syntax import BranchStatement

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.receipts import Branch

_BEGINS = re.compile(r"\ufeff?(?:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*branch\b", re.DOTALL)


def branch_statement(source: str) -> BranchStatement | None:
    """The statement, if the text is one. Raises InvalidQuery for a malformed one."""
    if not _BEGINS.match(source):
        return None
    statement = parse_file(source).statement
    return statement if isinstance(statement, BranchStatement) else None


def names_table(branches: list[Branch]) -> pa.Table:
    """What `branch list` answers: names in byte order."""
    import pyarrow as pa

    return pa.table({"name": pa.array(sorted((b.name for b in branches), key=str.encode), pa.string())})


def refuse_company(*, params: object, target: object, condition: object = None, name: object = None) -> None:
    """Raises InvalidRequest if something stands beside a statement that takes nothing."""
    for given, what in (
        (params, "parameters"),
        (target, "a branch or snapshot"),
        (condition, "a condition"),
        (name, "a query name"),
    ):
        if given:
            raise InvalidRequest(f"A branch statement takes no {what.removeprefix('a ')}.", effects="none")


def wrong_door(statement: BranchStatement, door: str) -> InvalidRequest:
    other = "query" if door == "mutate" else "mutate"
    return InvalidRequest(f"`branch {statement.verb}` goes to {other}.", code="wrong_verb", effects="none")
