"""`omnigraph export`: all entities of one state as load records."""

from __future__ import annotations

import click

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.output import check_writable, emit, emit_json
from omnigraph.cli.progress import progress
from omnigraph.cli.session import Session
from omnigraph.cli.state import State


@command("export", takes="any")
@options.uri
@options.branch
@options.snapshot
@options.as_of
@click.option("--type", "types", metavar="NAME", multiple=True, help="Only this type; may be repeated.")
@options.out
def export(
    session: Session,
    uri: str | None,
    branch: str | None,
    snapshot: str | None,
    as_of: int | None,
    types: tuple[str, ...],
    out: str | None,
) -> None:
    """Write all entities as NDJSON load records, nodes before edges.

    A load of it in overwrite mode gives an equal graph, unless a member of a key was renamed. --json says what was written and goes with --out.
    """
    to_file = out not in (None, "-")
    if session.json and not to_file:
        raise UsageRefused("An export is one record a line on stdout: --json goes with --out PATH.")
    state = State(branch, snapshot, as_of).asked()
    check_writable(out)
    chosen = list(types) or None
    with session.reading(uri) as graph, progress(session, "export", "bytes") as report:
        if not to_file:
            commit_id, pieces = graph.export_stream(types=chosen, **state)
            emit(pieces, None, "json")
            session.note(f"exported {commit_id}")
            return
        assert out is not None
        done = graph.export(out, types=chosen, progress=report, **state)
    if session.json:
        emit_json(done.to_dict())
    else:
        session.note(f"exported {done.entities:,} entities of {done.commit_id}")
