"""Options that several commands share, one decorator each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from omnigraph.cli.operator_config import OUTPUTS
from omnigraph.cli.state import Time

F = TypeVar("F", bound=Callable[..., Any])

uri = click.argument("uri", required=False)
schema = click.option("--schema", metavar="FILE", required=True, help="A .pg file; - is stdin.")
branch = click.option("--branch", metavar="NAME", help="The branch, instead of main.")
snapshot = click.option("--snapshot", metavar="COMMIT", help="A commit id, instead of a branch's head.")
as_of = click.option(
    "--as-of", type=Time(), metavar="TIME", help="The branch at a time: RFC 3339 with an offset, or microseconds."
)
message = click.option("-m", "--message", metavar="TEXT", help="A note in the commit, at most 1,024 bytes.")
idempotency_key = click.option(
    "--idempotency-key", metavar="KEY", help="Repeating a write under its key is safe; one is made up otherwise."
)
allow_data_loss = click.option("--allow-data-loss", is_flag=True, help="Let the change drop rows or values that exist.")
out = click.option("--out", metavar="PATH", help="Write to a file, whole or not at all.")


def source(function: F) -> F:
    """The source of a query and its parameters."""
    for option in reversed(
        (
            click.argument("name", required=False),
            click.option("--query", "file", metavar="FILE", help="A .gq file; - is stdin."),
            click.option("-e", "--query-string", "text", metavar="GQ", help="The source itself."),
            click.option("--params", metavar="JSON", help="Parameters as one JSON object."),
            click.option("--params-file", metavar="FILE", help="The same from a file; --params wins."),
            click.option(
                "-p",
                "single",
                metavar="KEY=VALUE",
                multiple=True,
                help="One parameter, read by its declared type; wins over both.",
            ),
        )
    ):
        function = option(function)
    return function


def format_of(*outputs: str) -> Callable[[F], F]:
    """--format with these forms."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(outputs or OUTPUTS),
        help="Form of the answer: a table on a terminal, else jsonl.",
    )


list_format = format_of("table", "kv", "json", "jsonl")
result_format = format_of(*OUTPUTS)
