"""`omnigraph snapshot`: tables and counts of one state."""

from __future__ import annotations

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.forms import Listing
from omnigraph.cli.output import emit_listing
from omnigraph.cli.session import Session
from omnigraph.cli.state import State


@command("snapshot", takes="any")
@options.uri
@options.branch
@options.snapshot
@options.as_of
@options.list_format
def snapshot(
    session: Session,
    uri: str | None,
    branch: str | None,
    snapshot: str | None,
    as_of: int | None,
    output: str | None,
) -> None:
    """Tables and counts of a branch's head, of a commit, or of a branch at a time."""
    form = session.form(output)
    state = State(branch, snapshot, as_of).asked()
    with session.reading(uri) as graph:
        found = graph.summary(**state)
    answer = found.to_dict()
    shown = ("entity_kind", "type_name", "entity_count")
    emit_listing(Listing(answer, answer["datasets"], shown), form)
    if form.output == "table":
        session.note(f"at {found.graph_commit_id}")
