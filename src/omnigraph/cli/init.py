"""`omnigraph init`: make a graph."""

from __future__ import annotations

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.scope import cluster_around
from omnigraph.cli.session import Session
from omnigraph.cli.source import schema_text


@command("init", takes="store", writes=True)
@options.uri
@options.schema
def init(session: Session, uri: str | None, schema: str) -> None:
    """Make a graph at URI with the schema of a file.

    Repeating it after any failure is safe. A cluster makes its own graphs: omnigraph cluster apply.
    """
    root = session.standalone_root(uri)
    text = schema_text(session, schema)
    if cluster_around(root) is not None:
        raise UsageRefused(
            "A cluster makes its graphs itself: use omnigraph cluster apply.", code="cluster_managed_path"
        )
    session.heed_logs()
    from omnigraph.engine.graph import init_graph

    graph = session.send(lambda: init_graph(root, schema=text, actor=session.actor))
    session.echo(graph.uri)
    if session.json:
        emit_json(graph.info().to_dict())
    else:
        emit_text(f"graph {graph.id} made; commit {graph.head.graph_commit_id}")
