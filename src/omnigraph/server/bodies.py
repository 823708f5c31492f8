"""Request bodies: collected whole within limits, decoded strictly, checked against a model.

JSON: UTF-8, no repeated key, no `NaN` or `Infinity`, nothing after the value, at most 64 deep, numbers and text that can
be held; keys that the model does not have are refused.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from omnigraph.errors import InvalidRequest, OmnigraphError

M = TypeVar("M", bound=BaseModel)

JSON_BYTES_MAX = 1 << 20
LOAD_BYTES_MAX = 32 << 20

_DEPTH_MAX = 64
_DIGITS_MAX = 4_000  # above this Python does not read an integer
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyRefused(OmnigraphError):
    """A body that was not read to its end, or is of the wrong kind."""

    default_code = "body_too_large"
    default_status = 413
    default_retry = "fix"


def check_head(request: Request, content_type: str, bytes_max: int) -> None:
    """What the headers say of a body, before any of it is read. Raises BodyRefused."""
    given = request.headers.getlist("content-type")
    if len(given) != 1 or not _is_type(given[0], content_type):
        raise BodyRefused(
            f"This route takes {content_type}; say so in Content-Type.", code="unsupported_media_type", status=415
        )
    encodings = ",".join(request.headers.getlist("content-encoding"))
    if encodings.strip().lower() not in ("", "identity"):
        raise BodyRefused("Encoded bodies are not taken.", code="unsupported_media_type", status=415)
    length = request.headers.get("content-length", "")
    if length.isdigit() and (len(length) > 15 or int(length) > bytes_max):
        raise _too_large(bytes_max)


def _is_type(given: str, content_type: str) -> bool:
    name, *parameters = (part.strip().lower() for part in given.split(";"))
    charsets = [p.removeprefix("charset=").strip('"') for p in parameters if p.startswith("charset=")]
    return name == content_type and all(charset in ("utf-8", "utf8") for charset in charsets)


def _too_large(bytes_max: int) -> BodyRefused:
    return BodyRefused(f"The body may have {bytes_max:,} bytes.")


async def collected(request: Request, bytes_max: int, *, seconds_max: float, stopping: asyncio.Event) -> bytes | None:
    """The whole body; None if `stopping` was set before it was complete.

    Raises BodyRefused (`body_too_large`, not read further; `body_timeout`), ClientDisconnect.
    """
    reading = asyncio.create_task(_read(request, bytes_max))
    stopped = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({reading, stopped}, timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            return reading.result()
        if stopped.done():
            return None
        raise BodyRefused(
            "The body was not complete in time; nothing was admitted.", code="body_timeout", status=408, retry="retry"
        )
    finally:
        reading.cancel()
        stopped.cancel()


async def _read(request: Request, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > bytes_max:
            raise _too_large(bytes_max)
        parts.append(part)
    return b"".join(parts)


def json_model(data: bytes, model: type[M]) -> M:
    """The body as a model. Raises InvalidRequest (`bad_request`)."""
    value = strict_json(data)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise invalid_fields(error.errors(include_url=False, include_context=False, include_input=False)) from None


def invalid_fields(errors: Sequence[ErrorDetails | Mapping[str, Any]], *, skip: int = 0) -> InvalidRequest:
    """A refusal that names every field that is wrong; of each location the first `skip` parts are left out."""
    fields: dict[str, str] = {}
    for each in errors:
        place = each["loc"][skip:]
        # The models are flat: what follows a field's name is the place in a list, or pydantic's name of an alternative.
        parts = [part for i, part in enumerate(place) if i == 0 or isinstance(part, int)]
        pointer = "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in parts)
        fields.setdefault(_printable(pointer), str(each["msg"]))
    pointer, message = next(iter(fields.items()))
    return InvalidRequest(
        f"{pointer}: {message}",
        detail_key="invalid_fields",
        details=[{"path": path, "message": said} for path, said in fields.items()],
    )


def strict_json(data: bytes) -> Any:
    """Raises InvalidRequest for anything but one strict JSON value."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not UTF-8.") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unrepeated,
            parse_constant=_refused_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except RecursionError:  # the parser stops long before the stack would
        raise InvalidRequest(f"The JSON is more than {_DEPTH_MAX} deep.") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    _check(value, escapes="\\u" in text)
    return value


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidRequest(f"The key '{_printable(key)}' is repeated.")
            seen.add(key)
    return fields


def _refused_constant(name: str) -> Any:
    raise InvalidRequest(f"{name} is not JSON.")


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise InvalidRequest(f"An integer has more than {_DIGITS_MAX:,} digits.")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise InvalidRequest("A number is too large for 64 bits of floating point.")
    return value


def _check(value: Any, *, escapes: bool) -> None:
    """Depth, and text that UTF-8 can't hold: it comes in by an escape only. One level of the value after the other."""
    level: list[Any] = [value]
    for _ in range(_DEPTH_MAX + 1):
        if escapes and any(isinstance(each, str) and _LONE_SURROGATE.search(each) for each in level):
            raise InvalidRequest("A text holds half of a surrogate pair, which no Unicode text does.")
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise InvalidRequest(f"The JSON is more than {_DEPTH_MAX} deep.")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return [*fields, *fields.values()]
    return cast("list[Any]", value) if isinstance(value, list) else []


def _printable(text: str, length_max: int = 80) -> str:
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:length_max])
    return shown if len(text) <= length_max else f"{shown}…"
