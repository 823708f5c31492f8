"""What is to be shown and how: values that the commands make and the output writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.cli import terminal
from omnigraph.cli.operator_config import Output, TableSettings


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is to look, and where it goes. `out` None is stdout."""

    output: Output
    out: str | None = None
    meta: bool = False
    color: terminal.Color = "auto"
    table: TableSettings = TableSettings()
    neutralize_formulas: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of like things: `answer` is the wire's object, `rows` its items, `shown` which of their fields a table has."""

    answer: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    shown: Sequence[str]
