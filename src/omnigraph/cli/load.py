"""`omnigraph load`: load records as one commit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import click

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.progress import progress
from omnigraph.cli.receipts import emit_receipt, loaded_text
from omnigraph.cli.session import Session
from omnigraph.cli.source import check_readable, named

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph


@command("load", takes="any", writes=True)
@options.uri
@click.option(
    "--data", metavar="FILE", required=True, help="NDJSON records, gzip or not; .parquet .arrow .csv with --type."
)
@click.option("--mode", type=click.Choice(["overwrite", "append", "merge"]), required=True, help="Never guessed.")
@options.branch
@click.option("--from", "from_", metavar="BASE", help="Fork the branch from BASE if it does not exist.")
@click.option("--type", "type_name", metavar="NAME", help="The type of a .parquet, .arrow or .csv file's rows.")
@options.message
@options.idempotency_key
def load(
    session: Session,
    uri: str | None,
    data: str,
    mode: str,
    branch: str | None,
    from_: str | None,
    type_name: str | None,
    message: str | None,
    idempotency_key: str | None,
) -> None:
    """Load records into a branch, all or nothing. - is stdin."""
    session.source_name = named(data)
    check_readable(data, "--data")
    if mode == "overwrite":
        session.consent("This replaces all entities of every type that occurs in the data", uri=uri)
    with session.writing(uri) as graph, progress(session, "load", "bytes") as report:
        content = _content(graph, data, type_name, branch if from_ is None else from_)
        key = session.key(idempotency_key)
        result = session.send(
            lambda: graph.load(
                content,
                mode=cast("Any", mode),
                type=type_name,
                branch=branch,
                from_=from_,
                progress=report,
                message=message,
                idempotency_key=key,
            )
        )
    emit_receipt(session, result, loaded_text(result))


def _content(graph: Graph, path: str, type_name: str | None, branch: str | None) -> Any:
    """What the engine's load takes: a path, standard input, or columns."""
    from omnigraph.cli.frames import is_frame, read_frame_file

    if is_frame(path):
        if type_name is None:
            raise UsageRefused("A file of columns does not say of which type its rows are: add --type NAME.")
        catalog = graph.on(graph.branch if branch is None else branch).schema.types
        return read_frame_file(path, catalog.nodes.get(type_name) or catalog.edge_by_word(type_name))
    if type_name is not None:
        raise UsageRefused("--type goes with .parquet, .arrow and .csv files; records name their types themselves.")
    return sys.stdin.buffer if path == "-" else path
