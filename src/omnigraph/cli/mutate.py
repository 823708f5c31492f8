"""`omnigraph mutate`: run a mutation as one commit."""

from __future__ import annotations

import click

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.progress import waiting
from omnigraph.cli.receipts import emit_receipt, written_text
from omnigraph.cli.session import Session
from omnigraph.cli.source import query_params, query_text
from omnigraph.cli.values import pairs


@command("mutate", takes="any", writes=True)
@options.source
@options.branch
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="A setting; the source's own lines win.")
@click.option("--if-commit", metavar="ID", help="Only if the branch's head is this commit; else exit 4.")
@options.message
@options.idempotency_key
def mutate(
    session: Session,
    name: str | None,
    file: str | None,
    text: str | None,
    params: str | None,
    params_file: str | None,
    single: tuple[str, ...],
    branch: str | None,
    settings: tuple[str, ...],
    if_commit: str | None,
    message: str | None,
    idempotency_key: str | None,
) -> None:
    """Run a mutation of a .gq source. NAME says which, if the source holds several."""
    source = query_text(session, file, text, name)
    values = query_params(source, name, file=params_file, text=params, single=single)
    asked = dict(pairs(settings, "--set"))
    with session.writing() as graph, waiting(session, "mutate"):
        key = session.key(idempotency_key)
        result = session.send(
            lambda: graph.mutate(
                source,
                values,
                query_name=name,
                branch=branch,
                settings=asked,
                if_commit=if_commit,
                message=message,
                idempotency_key=key,
                door="json",
            )
        )
    emit_receipt(session, result, written_text(result))
