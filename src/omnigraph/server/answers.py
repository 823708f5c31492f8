"""Answers: JSON objects, results in the format that the caller accepts, and the one error body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from omnigraph.engine.answers import json_bytes, result_json, result_metadata
from omnigraph.engine.result import Result
from omnigraph.errors import OmnigraphError
from omnigraph.query.encode import Spelling, arrow_stream, csv, ndjson

JSON = "application/json"
NDJSON = "application/x-ndjson"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"

JSON_RESULT_BYTES_MAX = 64 << 20


class NotAcceptable(OmnigraphError):
    default_code = "not_acceptable"
    default_status = 406
    default_retry = "fix"


class ResultTooLarge(OmnigraphError):
    default_code = "result_too_large"
    default_status = 413
    default_retry = "fix"


def json_answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json_bytes(value), status_code=status, media_type=JSON, headers=headers)


def error_answer(error: OmnigraphError, request_id: str) -> Response:
    """The error body of interfaces.md 4.1, which every status from 400 up carries."""
    error.request_id = request_id
    headers = {"Omnigraph-Error-Code": error.code}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return json_answer(error.to_dict(), status=error.status, headers=headers)


def accepted_format(request: Request) -> str:
    """The first offered media type that the caller accepts, by quality. Raises NotAcceptable."""
    ranges = request.headers.get("accept") or "*/*"
    wanted: list[tuple[float, int, str]] = []
    for place, part in enumerate(ranges.split(",")):
        name, *options = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for option in options:
            if option.startswith("q="):
                try:
                    quality = float(option[2:])
                except ValueError:
                    quality = 0.0
        if quality > 0:
            wanted.append((-quality, place, name.lower()))
    for _, _, name in sorted(wanted):
        for offered in (JSON, ARROW, NDJSON, CSV):
            if name in (offered, "*/*", offered.split("/")[0] + "/*"):
                return offered
    raise NotAcceptable(f"This route offers {JSON}, {ARROW}, {NDJSON} and {CSV}.")


def result_answer(result: Result, form: str, *, int64_as_text: bool) -> Response:
    """Rows in one of the four formats; the streamed ones carry commit and query name as headers.

    Raises ResultTooLarge for a JSON answer above 64 MiB.
    """
    spelling = Spelling(int64_as_text=int64_as_text)
    headers = {"Omnigraph-Graph-Commit": result.commit_id}
    if form == JSON:
        return Response(_buffered(result, spelling), media_type=JSON, headers=headers)
    headers["Omnigraph-Query-Name"] = result.query_name
    if form == ARROW:
        pieces = arrow_stream(result.table, result_metadata(result))
    else:
        pieces = ndjson(result.table, spelling) if form == NDJSON else csv(result.table, spelling)
    return StreamingResponse(pieces, media_type=form, headers=headers)


def _buffered(result: Result, spelling: Spelling) -> bytes:
    parts: list[bytes] = []
    size = 0
    for piece in result_json(result, spelling):
        size += len(piece)
        if size > JSON_RESULT_BYTES_MAX:
            raise ResultTooLarge(
                f"The answer has more than {JSON_RESULT_BYTES_MAX:,} bytes of JSON: ask for {NDJSON} or {ARROW}, or narrow it."
            )
        parts.append(piece)
    return b"".join(parts)


def stream_answer(pieces: Iterator[bytes], commit_id: str) -> Response:
    return StreamingResponse(pieces, media_type=NDJSON, headers={"Omnigraph-Graph-Commit": commit_id})
