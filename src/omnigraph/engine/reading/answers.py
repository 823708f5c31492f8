"""Answer objects of the wire that are more than one receipt, as values and as bytes: the same for every door.

The server sends them and the command line prints them, so equal state gives equal bytes. Knows neither of the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.query.encode import Spelling, json_rows

if TYPE_CHECKING:
    from omnigraph.engine.core import GraphCore
    from omnigraph.engine.reading.selectors import Pinned
    from omnigraph.engine.receipts import Branch, Commit
    from omnigraph.engine.result import Result
    from omnigraph.lang.schema.catalog import Catalog, EntityType


def json_bytes(value: Any) -> bytes:
    """One JSON value without blanks, non-ASCII as it is.

    >>> json_bytes({"a": [1, None], "b": "é"}).decode()
    '{"a":[1,null],"b":"é"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def result_json(result: Result, spelling: Spelling) -> Iterator[bytes]:
    """The answer of a query (interfaces.md 9.3) in pieces: everything about the rows, then the rows."""
    yield json_bytes(result.head())[:-1]
    yield b',"rows":'
    yield from json_rows(result.table, spelling)
    yield b"}"


def result_metadata(result: Result) -> dict[str, str]:
    """What an Arrow stream of a result says on its schema (interfaces.md 7)."""
    profile = {} if result.profile is None else {"omnigraph.profile": json.dumps(result.profile)}
    return {
        **profile,
        "omnigraph.query_name": result.query_name,
        "omnigraph.graph_commit_id": result.commit_id,
        "omnigraph.branch": result.target.branch or "",
        "omnigraph.snapshot": result.target.snapshot or "",
        "omnigraph.column_types": json.dumps(list(result.types)),
    }


def branches_answer(found: Iterable[Branch]) -> dict[str, Any]:
    """The list of branches (interfaces.md 9.7)."""
    details = [branch.to_dict() for branch in found]
    return {"branches": [each["name"] for each in details], "details": details}


def commits_answer(found: Iterable[Commit]) -> dict[str, Any]:
    """A page of commits (interfaces.md 9.9); this version has one page."""
    return {"commits": [commit.to_dict() for commit in found], "next_page_token": None}


def schema_answer(core: GraphCore, state: Pinned) -> dict[str, Any]:
    """The accepted schema of one state (interfaces.md 9.8). Raises StorageFailure."""
    digest = state.snapshot.manifest.schema
    return {
        "schema_source": core.schemas.source(digest),
        "schema_digest": digest,
        "graph_commit_id": state.commit_id,
        "system_columns": {"id": "@id", "src": "@src", "dst": "@dst"},
        "types": _types(state.snapshot.catalog),
    }


def _types(catalog: Catalog) -> list[Mapping[str, Any]]:
    kinds: tuple[EntityType, ...] = (*catalog.nodes.values(), *catalog.edges.values())
    return [_type(entity) for entity in kinds]


def _type(entity: EntityType) -> dict[str, Any]:
    body: dict[str, Any] = {"entity_kind": entity.kind, "name": entity.name}
    if entity.kind == "edge":
        body |= {"src": entity.source, "dst": entity.target}
    body["properties"] = [
        {
            "name": p.name,
            "type": p.type.spelling().removesuffix("?"),
            "nullable": p.type.nullable,
            "key": p.name in entity.key,
        }
        for p in entity.properties
    ]
    return body
