"""`omnigraph commit`: the log, one commit, what became of an attempted one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from omnigraph.cli import options
from omnigraph.cli.command import command, group
from omnigraph.cli.errors import WaitOver
from omnigraph.cli.forms import Listing
from omnigraph.cli.output import emit_json, emit_listing, emit_text
from omnigraph.cli.session import Session
from omnigraph.cli.state import Time

if TYPE_CHECKING:
    import datetime as dt


commit = group("commit", "Commits: the log, one commit, the outcome of an attempted one.")


@command("list", takes="any")
@options.branch
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, metavar="N", help="At most so many."
)
@click.option("--since", type=Time(), metavar="TIME", help="RFC 3339 with an offset, or microseconds.")
@click.option("--until", type=Time(), metavar="TIME", help="The same.")
@options.list_format
def list_(
    session: Session, branch: str | None, limit: int, since: int | None, until: int | None, output: str | None
) -> None:
    """Commits of a branch, newest first, merged-in ones included."""
    form = session.form(output)
    with session.reading() as graph:
        from omnigraph.engine.reading.answers import commits_answer

        answer = commits_answer(graph.commits.list(branch, limit=limit, since=_time(since), until=_time(until)))
    shown = ("graph_commit_id", "kind", "actor_id", "created_at", "message")
    emit_listing(Listing(answer, answer["commits"], shown), form)


def _time(microseconds: int | None) -> dt.datetime | None:
    if microseconds is None:
        return None
    from omnigraph.engine.receipts import as_datetime

    return as_datetime(microseconds)


@command("show", takes="any")
@click.argument("commit_id", metavar="ID")
def show(session: Session, commit_id: str) -> None:
    """The receipt of one commit."""
    with session.reading() as graph:
        _emit(session, graph.commits.get(commit_id).to_dict())


@command("outcome", takes="any")
@click.argument("commit_id", metavar="ID")
@click.option("--wait", is_flag=True, help="Until it is final, or --timeout is over (exit 5).")
def outcome(session: Session, commit_id: str, wait: bool) -> None:
    """What became of an attempted commit: published, superseded or undetermined.

    The first two are final. Undetermined turns final with the branch's next write.
    """
    with session.reading() as graph:
        limit = math.inf if session.timeout_seconds is None else session.timeout_seconds
        found = graph.commits.outcome(commit_id, wait=limit if wait else None)
    if wait and found.outcome == "undetermined":
        raise WaitOver(f"{commit_id} is still undetermined.", found.to_dict())
    _emit(session, found.to_dict())


def _emit(session: Session, answer: dict[str, object]) -> None:
    if session.json:
        emit_json(answer)
        return
    from omnigraph.cli.table import fields_text

    emit_text(fields_text(answer))


for _each in (list_, show, outcome):
    commit.add_command(_each)
