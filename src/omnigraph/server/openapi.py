"""The description of the interface: OpenAPI 3.1 of exactly the routes that there are.

Made from what checks requests (`rules`, `wire`) and from the shapes that answers are held against (`shapes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel

from omnigraph.server.answers import ARROW, CSV, JSON, NDJSON
from omnigraph.server.rules import INT64_AS_TEXT, PROFILE, Rules, rules
from omnigraph.server.shapes import ErrorBody

_TEXT = {"type": "string"}
_COMMON_HEADERS = {
    "Omnigraph-Http-Api": {"description": "the contract in force", "schema": {"const": "1", **_TEXT}},
    "X-Request-Id": {"description": "as given, or made", "schema": _TEXT},
}
_ERROR_HEADERS = {
    "Omnigraph-Error-Code": {"description": "the body's `code`", "schema": _TEXT},
    "Retry-After": {"description": "whole seconds", "schema": {"type": "integer"}},
}
_PREFERENCES = (
    f"`{INT64_AS_TEXT}`: 64-bit integers as text; `{PROFILE}`: with JSON and Arrow, what each step of the run did"
)
_COMMIT_HEADER = {
    "Omnigraph-Graph-Commit": {"description": "the commit whose state was read, percent-encoded", "schema": _TEXT}
}


def answers(
    model: type[BaseModel], *, status: int = 200, also: dict[int, type[BaseModel]] | None = None
) -> dict[Any, Any]:
    """What a route of JSON answers, for its decorator."""
    given = {status: model, **(also or {})}
    return {number: {"model": each} for number, each in given.items()} | {"default": {"model": ErrorBody}}


def result_answers(model: type[BaseModel]) -> dict[Any, Any]:
    """What a route of results answers: JSON or one of the streams."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (ARROW, NDJSON, CSV)}
    return {
        200: {"model": model, "content": content, "headers": _COMMIT_HEADER},
        "default": {"model": ErrorBody},
    }


def record_answers() -> dict[Any, Any]:
    """What a route of load records answers."""
    content = {NDJSON: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"content": content, "headers": _COMMIT_HEADER}, "default": {"model": ErrorBody}}


def document_answers() -> dict[Any, Any]:
    """What the route of this document answers."""
    return {
        200: {"content": {JSON: {"schema": {"type": "object"}}}},
        304: {"description": "Not changed"},
        "default": {"model": ErrorBody},
    }


def described(app: FastAPI) -> dict[str, Any]:
    """The document. No operation demands a token in this version, so none names a security scheme."""
    document = get_openapi(title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes)
    operations: dict[str, dict[str, dict[str, Any]]] = document["paths"]
    for route in app.routes:
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            operation = operations[route.path_format][method.lower()]
            operation["parameters"] = [*operation.get("parameters", []), *_headers(rules(route))]
            operation["responses"] = {status: _with_headers(status, answer) for status, answer in _statuses(operation)}
            body = rules(route).body
            if body is not None:
                operation["requestBody"] = {"required": True, "content": _content(body, document)}
    return document


def _statuses(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for status, answer in cast("dict[str, dict[str, Any]]", operation["responses"]).items():
        if answer.get("content", {}).get(JSON) == {"schema": {}}:  # what the framework supposes if nothing is said
            del answer["content"][JSON]
        yield status, answer


def _with_headers(status: str, answer: dict[str, Any]) -> dict[str, Any]:
    errors = _ERROR_HEADERS if status == "default" else {}
    description = {"default": "Refused or failed", "200": "Done"}.get(status, answer["description"])
    return {**answer, "description": description, "headers": {**answer.get("headers", {}), **errors, **_COMMON_HEADERS}}


def _headers(demanded: Rules) -> list[dict[str, Any]]:
    found = [
        _header("Omnigraph-Http-Api", "the contract that the caller speaks", {"const": "1", **_TEXT}),
        _header("X-Request-Id", "1 to 128 visible ASCII characters", _TEXT),
        *([_header("Prefer", _PREFERENCES, _TEXT)] if demanded.rows else []),
    ]
    if demanded.key:
        bounded = {"minLength": 1, "maxLength": 128, **_TEXT}
        found.append(_header("Idempotency-Key", "repeating a request with its key never does it twice", bounded))
    if demanded.condition:
        found.append(_header("Omnigraph-If-Graph-Commit", "the commit that the head must be", _TEXT, required=True))
    return found


def _header(name: str, description: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def _content(body: type[BaseModel] | str, document: dict[str, Any]) -> dict[str, Any]:
    if isinstance(body, str):
        return {body: {"schema": {"type": "string", "format": "binary"}}}
    schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
    components = document.setdefault("components", {}).setdefault("schemas", {})
    components.update(schema.pop("$defs", {}))
    components[body.__name__] = schema
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}
