"""Answers: JSON objects, results in the format that the caller accepts, and the one error body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import Request
from starlette.responses import Response

from omnigraph.engine.reading.answers import json_bytes, result_json, result_metadata
from omnigraph.engine.result import Result
from omnigraph.errors import InternalError, InvalidRequest, LimitExceeded, OmnigraphError
from omnigraph.query.encode import Spelling, arrow_stream, csv, ndjson

JSON = "application/json"
NDJSON = "application/x-ndjson"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
RESULT_FORMATS = (JSON, ARROW, NDJSON, CSV)


def json_answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_bytes(value), status_code=status, media_type=JSON, headers=headers)


def error_answer(error: OmnigraphError, request_id: str) -> Response:
    """The error body of interfaces.md 4.1, which every status from 400 up carries."""
    error.request_id = request_id
    return json_answer(error.to_dict(), status=error.status, headers=error_headers(error))


def unexpected_failure() -> InternalError:
    """What is said of a fault of this program, beside what is known of its effects."""
    return InternalError("The server met a fault of its own.")


def error_headers(error: OmnigraphError) -> dict[str, str]:
    headers = {"Omnigraph-Error-Code": error.code}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return headers


def accepted_format(request: Request) -> str:
    """The offered media type that the caller likes best; JSON among equals. Raises InvalidRequest (`not_acceptable`)."""
    ranges = [
        _range(part) for part in ",".join(request.headers.getlist("accept") or ["*/*"]).split(",") if part.strip()
    ]
    quality, form = max(((_quality(form, ranges), form) for form in RESULT_FORMATS), key=lambda pair: pair[0])
    if quality <= 0:
        raise InvalidRequest(f"This route offers {', '.join(RESULT_FORMATS)}.", code="not_acceptable", status=406)
    return form


def _range(text: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in text.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return name, 0.0
    return name, 1.0


def _quality(form: str, ranges: list[tuple[str, float]]) -> float:
    """What the most exact range that covers a format says of it."""
    for cover in (form, f"{form.split('/')[0]}/*", "*/*"):
        said = [quality for name, quality in ranges if name == cover]
        if said:
            return max(said)
    return 0.0


def buffered_result(result: Result, spelling: Spelling, bytes_max: int) -> bytes:
    """The JSON answer of a query. Raises LimitExceeded (`result_too_large`)."""
    parts: list[bytes] = []
    size = 0
    for piece in result_json(result, spelling):
        size += len(piece)
        if size > bytes_max:
            raise LimitExceeded(
                f"The answer has more than {bytes_max:,} bytes of JSON: ask for {NDJSON} or {ARROW}, or narrow it.",
                code="result_too_large",
                resource="json_result_bytes",
                limit=bytes_max,
                actual=size,
            )
        parts.append(piece)
    return b"".join(parts)


def streamed_result(result: Result, form: str, spelling: Spelling) -> Iterator[bytes]:
    """The rows in one of the streamed formats, piece by piece."""
    if form == ARROW:
        return arrow_stream(result.table, result_metadata(result))
    return ndjson(result.table, spelling) if form == NDJSON else csv(result.table, spelling)
