"""`omnigraph snapshot`: tables and counts of one state."""

from __future__ import annotations

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.forms import Listing
from omnigraph.cli.output import emit_listing
from omnigraph.cli.session import Session


@command("snapshot", takes="any")
@options.uri
@options.branch
@options.snapshot
@options.list_format
def snapshot(session: Session, uri: str | None, branch: str | None, snapshot: str | None, output: str | None) -> None:
    """Tables and counts of a branch's head or of a commit."""
    form = session.form(output)
    with session.reading(uri) as graph:
        found = graph.summary(branch=branch, snapshot=snapshot)
    answer = found.to_dict()
    shown = ("entity_kind", "type_name", "entity_count")
    emit_listing(Listing(answer, answer["datasets"], shown), form)
    if form.output == "table":
        session.note(f"at {found.graph_commit_id}")
