"""How much this process takes on (interfaces.md 6), from the environment.

A value that can't be read is warned about and the default holds: a typo must not close a lane. 0 closes it on purpose.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field

from omnigraph.engine.logs import log_event

_LOGGER = "omnigraph.server"

_MIB = 1 << 20
BODY_SECONDS_MAX = 86_400
READ_THREADS_MAX = 64


def _read_threads() -> int:
    return min(max(4, 2 * (os.cpu_count() or 1)), READ_THREADS_MAX)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Places, bytes and seconds. The name of a field's variable stands in `VARIABLES`."""

    write_ops: int = 64
    write_bytes: int = 256 * _MIB
    write_ingress: int = 64
    write_ingress_bytes: int = 256 * _MIB
    read_ingress: int = 64
    read_ingress_bytes: int = 64 * _MIB
    read_observers: int = 128
    write_observers: int = 64
    streams: int = 8
    body_seconds: int = 30
    json_result_bytes: int = 64 * _MIB
    read_threads: int = dataclass_field(default_factory=_read_threads)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> ServerLimits:
        """Warns about each value that is no whole number or out of bounds."""
        given: dict[str, int] = {}
        for name, variable in VARIABLES.items():
            text = environ.get(variable, "")
            if not text:
                continue
            low, high = _BOUNDS.get(name, (0, 1 << 62))
            if text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high:
                given[name] = int(text)
            else:
                log_event(_LOGGER, "warning", "setting not understood, the default holds", variable=variable)
        return cls(**given)


VARIABLES: Mapping[str, str] = {
    "write_ops": "OMNIGRAPH_GLOBAL_INFLIGHT_MAX",
    "write_bytes": "OMNIGRAPH_GLOBAL_BYTES_MAX",
    "write_ingress": "OMNIGRAPH_INGRESS_INFLIGHT_MAX",
    "write_ingress_bytes": "OMNIGRAPH_INGRESS_BYTES_MAX",
    "read_ingress": "OMNIGRAPH_READ_INGRESS_INFLIGHT_MAX",
    "read_ingress_bytes": "OMNIGRAPH_READ_INGRESS_BYTES_MAX",
    "read_observers": "OMNIGRAPH_READ_OBSERVERS_MAX",
    "write_observers": "OMNIGRAPH_WRITE_OBSERVERS_MAX",
    "streams": "OMNIGRAPH_EXPORT_STREAMS_MAX",
    "body_seconds": "OMNIGRAPH_BODY_TIMEOUT_SECONDS",
    "json_result_bytes": "OMNIGRAPH_JSON_RESULT_BYTES_MAX",
    "read_threads": "OMNIGRAPH_READ_THREADS",
}
_BOUNDS = {
    "body_seconds": (1, BODY_SECONDS_MAX),
    "read_threads": (1, READ_THREADS_MAX),
    "json_result_bytes": (1, 1 << 40),
}

assert VARIABLES.keys() == {field.name for field in fields(ServerLimits)}
