"""Storage settings from the environment, read once when a store is opened.

The only place that knows the names of the variables. Sends nothing and imports no storage client.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import InvalidRequest

REQUEST_TIMEOUT_SECONDS = 30
"""Default of OMNIGRAPH_STORAGE_REQUEST_TIMEOUT_SECONDS."""

REQUEST_TIMEOUT_SECONDS_MAX = 600

LocalSync = Literal["full", "off"]


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`local_sync` full: an answered local write survives a power cut. `request_timeout_seconds` holds per request."""

    request_timeout_seconds: int = REQUEST_TIMEOUT_SECONDS
    local_sync: LocalSync = "full"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> StoreSettings:
        """Raises InvalidRequest (`invalid_setting`, `invalid_retry_setting`) naming the variable and what it may be."""
        variables = os.environ if environ is None else environ
        check_retry_setting(variables)
        return cls(_request_timeout(variables), _local_sync(variables))


def check_retry_setting(environ: Mapping[str, str]) -> None:
    """Refuses a client setting under which a conditional write could be sent twice behind the product's back."""
    if environ.get("OBJECT_STORE_CLIENT_MAX_RETRIES", "") not in ("", "0"):
        raise InvalidRequest(
            "OBJECT_STORE_CLIENT_MAX_RETRIES must be unset or 0: storage clients must not repeat requests by themselves",
            code="invalid_retry_setting",
        )


def _request_timeout(environ: Mapping[str, str]) -> int:
    name = "OMNIGRAPH_STORAGE_REQUEST_TIMEOUT_SECONDS"
    text = environ.get(name, "")
    if not text:
        return REQUEST_TIMEOUT_SECONDS
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= REQUEST_TIMEOUT_SECONDS_MAX:
        raise InvalidRequest(
            f"{name} must be a whole number from 1 to {REQUEST_TIMEOUT_SECONDS_MAX}", code="invalid_setting"
        )
    return int(text)


def _local_sync(environ: Mapping[str, str]) -> LocalSync:
    match environ.get("OMNIGRAPH_LOCAL_SYNC", ""):
        case "" | "full":
            return "full"
        case "off":
            return "off"
        case _:
            raise InvalidRequest("OMNIGRAPH_LOCAL_SYNC must be full or off", code="invalid_setting")
