"""Which state a command reads: --branch or --snapshot, --as-of with a branch (interfaces.md 9.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.values import moment


class Time(click.ParamType[int]):
    """Microseconds of RFC 3339 text with an offset, or of an integer."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from omnigraph.engine.reading.selectors import TIMES, parse_as_of
        from omnigraph.engine.receipts import as_datetime
        from omnigraph.errors import InvalidRequest

        try:
            found = parse_as_of(moment(value))
            as_datetime(found)
            return found
        except (InvalidRequest, OverflowError):
            self.fail(f"a time is {TIMES}", param, ctx)


@dataclass(frozen=True, slots=True)
class State:
    """The options as given; `as_of` in microseconds."""

    branch: str | None = None
    snapshot: str | None = None
    as_of: int | None = None

    def asked(self) -> dict[str, Any]:
        """The engine's keywords. Raises UsageRefused for options that exclude each other, or a time to come."""
        named = {"--branch": self.branch, "--as-of": self.as_of}
        beside = [name for name, value in named.items() if value is not None]
        if self.snapshot is not None and beside:
            raise UsageRefused(f"--snapshot and {beside[0]} exclude each other.")
        if self.as_of is not None and self.as_of > _now():
            raise UsageRefused("--as-of lies in the future: the answer could still change.")
        return {"branch": self.branch, "snapshot": self.snapshot, "as_of": self.as_of}


def _now() -> int:
    from omnigraph.ambient import SystemClock

    return SystemClock().now_us()
