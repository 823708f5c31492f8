"""Request bodies and query parameters: collected whole within limits, decoded strictly, checked against a model.

JSON: UTF-8, no repeated key, no `NaN` or `Infinity`, nothing after the value, at most 64 deep; keys that the model does
not have are refused.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeVar, cast

from fastapi import Request
from pydantic import BaseModel, ValidationError

from omnigraph.errors import InvalidRequest, OmnigraphError

M = TypeVar("M", bound=BaseModel)

JSON_BYTES_MAX = 1 << 20
LOAD_BYTES_MAX = 32 << 20
BODY_SECONDS_MAX = 30.0
_DEPTH_MAX = 64


class BodyRefused(OmnigraphError):
    """A body that was not read to its end, or is of the wrong kind."""

    default_code = "body_too_large"
    default_status = 413
    default_retry = "fix"


async def collected(request: Request, content_type: str, limit: int) -> bytes:
    """The whole body. Raises BodyRefused (`unsupported_media_type`, `body_too_large`, `body_timeout`)."""
    given = request.headers.get("content-type", content_type).split(";", 1)[0].strip().lower()
    if given != content_type:
        raise BodyRefused(f"This route takes {content_type}.", code="unsupported_media_type", status=415)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise BodyRefused("Encoded bodies are not taken.", code="unsupported_media_type", status=415)
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise BodyRefused(f"The body may have {limit:,} bytes.")
    try:
        return await asyncio.wait_for(_read(request, limit), BODY_SECONDS_MAX)
    except TimeoutError:
        raise BodyRefused(
            "The body was not complete in time; nothing was admitted.", code="body_timeout", status=408, retry="retry"
        ) from None


async def _read(request: Request, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyRefused(f"The body may have {limit:,} bytes.")
        parts.append(part)
    return b"".join(parts)


async def json_body(request: Request, model: type[M], limit: int = JSON_BYTES_MAX) -> M:
    """The body as a model. Raises InvalidRequest (`bad_request`), BodyRefused."""
    return checked(model, strict_json(await collected(request, "application/json", limit)))


def checked(model: type[M], value: Any) -> M:
    """Raises InvalidRequest with `invalid_fields`, a JSON pointer and a message each."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fields = [
            {"path": "/" + "/".join(str(part) for part in each["loc"]), "message": each["msg"]}
            for each in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        first = fields[0]
        raise InvalidRequest(
            f"{first['path']}: {first['message']}", detail_key="invalid_fields", details=fields
        ) from None


def query_parameters(request: Request, model: type[M]) -> M:
    """The query parameters as a model; one that is repeated or unknown is refused."""
    seen: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in seen:
            raise InvalidRequest(f"The query parameter '{name}' is repeated.")
        seen[name] = value
    return checked(model, seen)


def strict_json(data: bytes) -> Any:
    """Raises InvalidRequest for anything but one strict JSON value."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_refused_constant)
    except RecursionError:
        raise InvalidRequest(f"The JSON is more than {_DEPTH_MAX} deep.") from None
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    _check_depth(value)
    return value


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidRequest(f"The key '{key}' is repeated.")
            seen.add(key)
    return fields


def _refused_constant(name: str) -> Any:
    raise InvalidRequest(f"{name} is not JSON.")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEPTH_MAX + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise InvalidRequest(f"The JSON is more than {_DEPTH_MAX} deep.")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []
