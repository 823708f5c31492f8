"""What a route demands of a request besides its body: which query parameters there are, whether an idempotency key or a
commit condition has a place, whether a body has one. Checked once the route is known and before a graph is looked up.

A condition or key on a route without one is refused, so that neither can be ignored, and so is every other header or
preference of OmniGraph's own that the route does not have. Headers of anybody else are no business of this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from omnigraph.errors import InvalidRequest
from omnigraph.manifest.ids import CommitId
from omnigraph.server.wire import NoParameters

CONDITION = "omnigraph-if-graph-commit"
KEY = "idempotency-key"
INT64_AS_TEXT = "omnigraph-int64=string"
PROFILE = "omnigraph-profile"

_OWN = "omnigraph-"
_OWN_HEADERS = frozenset({CONDITION, "omnigraph-http-api"})

_KEY = re.compile(r"[!-~]{1,128}")
_CONDITION = re.compile(r"[!#-)+-+\--~]+")  # visible ASCII without the `"`, `*` and `,` of other conditions
_HEADER_SAFE = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '%"*,')


@dataclass(frozen=True)
class Rules:
    """A dependency of every route. `body`: the model of a JSON body, or the media type of another. `rows`: the answer has
    rows, whose spelling the caller may prefer.
    """

    parameters: type[BaseModel] = NoParameters
    write: bool = False
    key: bool = False
    condition: bool = False
    rows: bool = False
    body: type[BaseModel] | str | None = None

    async def __call__(self, request: Request) -> None:
        """Raises InvalidRequest: `condition_misplaced`, `idempotency_key_invalid`, `bad_request`."""
        self._check_condition(request.headers.getlist(CONDITION))
        self._check_key(request.headers.getlist(KEY))
        self._check_own(request.headers)
        self._check_parameters(request.query_params.multi_items())
        if self.body is None and _has_body(request.headers):
            raise InvalidRequest("This route takes no body.")

    def _check_condition(self, given: list[str]) -> None:
        if given and not self.condition:
            raise _misplaced("A commit condition has no place on this route.")
        if self.condition and (len(given) != 1 or _commit_id(given[0]) is None):
            raise _misplaced("This route needs Omnigraph-If-Graph-Commit with exactly one commit id.")

    def _check_key(self, given: list[str]) -> None:
        if given and not self.key:
            raise InvalidRequest("This route takes no idempotency key.", code="idempotency_key_invalid")
        if len(given) > 1 or (given and not _KEY.fullmatch(given[0])):
            raise InvalidRequest(
                "An idempotency key is 1 to 128 visible ASCII characters, given once.", code="idempotency_key_invalid"
            )

    def _check_own(self, headers: Headers) -> None:
        for name in headers:
            if name.startswith(_OWN) and name not in _OWN_HEADERS:
                raise _header(name, "there is no such header of a request")
        for preference in preferences(headers):
            if not preference.startswith(_OWN) or (self.rows and preference in (INT64_AS_TEXT, PROFILE)):
                continue
            raise _header("Prefer", f"there is no preference {_shown(preference)} here")

    def _check_parameters(self, given: Iterable[tuple[str, str]]) -> None:
        known = {field.alias or name for name, field in self.parameters.model_fields.items()}
        seen: set[str] = set()
        for name, _ in given:
            if name not in known:
                raise _parameter(name, "there is no such query parameter here")
            if name in seen:
                raise _parameter(name, "a query parameter is given once")
            seen.add(name)


def preferences(headers: Headers) -> list[str]:
    """What the `Prefer` headers ask for, without parameters, in small letters."""
    given = ",".join(headers.getlist("prefer"))
    return [part.split(";", 1)[0].strip().lower() for part in given.split(",")]


def condition_of(request: Request) -> str:
    """The commit id that a conditional request names; its route has checked that there is one."""
    condition = _commit_id(request.headers[CONDITION])
    assert condition is not None
    return condition


def in_header(commit_id: str) -> str:
    """A commit id as a header carries it: what is no visible ASCII, or would read as another condition, is
    percent-encoded.

    >>> in_header("größe@2-0011223344556677")
    'gr%C3%B6%C3%9Fe@2-0011223344556677'
    """
    return quote(commit_id, safe=_HEADER_SAFE)


def _commit_id(given: str) -> str | None:
    if not _CONDITION.fullmatch(given):
        return None
    try:
        named = CommitId.parse(unquote(given, errors="strict"))
    except ValueError:
        return None
    return None if "@" in named.branch else str(named)


def _misplaced(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="condition_misplaced")


def _parameter(name: str, message: str) -> InvalidRequest:
    shown = _shown(name)
    return InvalidRequest(
        f"{shown}: {message}", detail_key="invalid_fields", details=[{"path": shown, "message": message}]
    )


def _header(name: str, message: str) -> InvalidRequest:
    return InvalidRequest(f"{_shown(name)}: {message}.")


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:80])


def _has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""


# --- from a request to its route


def rules(route: BaseRoute | None) -> Rules:
    """The rules of a route; those of a route that demands nothing, if it has none."""
    if isinstance(route, APIRoute):
        for each in route.dependencies:
            if isinstance(each.dependency, Rules):
                return each.dependency
    return Rules()


def rules_of(scope: Scope, routes: Iterable[BaseRoute]) -> Rules:
    """The rules of the route that would take this request."""
    taking = (r for r in routes if isinstance(r, APIRoute) and r.matches(scope)[0] is Match.FULL)
    return rules(next(taking, None))


def methods_of(scope: Scope, routes: Iterable[BaseRoute]) -> list[str]:
    """The methods that the path has."""
    found: set[str] = set()
    for route in routes:
        if isinstance(route, APIRoute) and route.matches(scope)[0] is not Match.NONE:
            found.update(route.methods or ())
    return sorted(found)
