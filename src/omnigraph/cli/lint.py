"""`omnigraph lint`: do query files parse, and do they check against a schema?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import command
from omnigraph.cli.errors import Exit, UsageRefused
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.session import Session
from omnigraph.cli.source import named, read_text, schema_text
from omnigraph.cli.terminal import say

if TYPE_CHECKING:
    from omnigraph.cli.linting import Linted
    from omnigraph.lang.schema.catalog import Catalog


@command("lint", takes="direct")
@click.option("--query", "files", metavar="FILE", multiple=True, required=True, help="A .gq file; may be repeated.")
@click.option("--schema", metavar="FILE|URI", help="A .pg file, or the graph whose schema counts.")
def lint(session: Session, files: tuple[str, ...], schema: str | None) -> int:
    """Check query files against a schema file or a graph's schema; reads no data. Exit 1 if one is at fault.

    This version reports errors only; warnings (codes L…) are not part of it.
    """
    from omnigraph.cli.linting import linted

    about, catalog = _catalog(session, schema)
    reports = [linted(read_text(file, "--query"), named(file), catalog) for file in files]
    if session.json:
        objects = [{"status": r.status, "schema_source": about, **r.to_dict()} for r in reports]
        emit_json(objects[0] if len(objects) == 1 else {"files": objects})
    else:
        for report in reports:
            _say(report)
    return Exit.DONE if all(report.status == "ok" for report in reports) else Exit.FAILED


def _catalog(session: Session, schema: str | None) -> tuple[dict[str, Any], Catalog]:
    """Where the schema is from, and what it means. Raises InvalidSchema, UsageRefused, and what opening a graph raises."""
    graph_named = schema is not None and ("://" in schema or os.path.isdir(schema))
    if schema is not None and not graph_named:
        if any(session.given.get(name) for name in ("store", "cluster", "server", "profile", "graph")):
            raise UsageRefused("--schema FILE and the address of a graph exclude each other.")
        from omnigraph.lang.schema.compile import compile_schema

        text = schema_text(session, schema)
        return {"kind": "file", "path": named(schema)}, compile_schema(text, mint=_no_identity)
    with session.reading(schema if graph_named else None) as graph:
        return {"kind": "graph", "graph_commit_id": graph.head.graph_commit_id}, graph.schema.types


def _no_identity() -> str:
    """The catalog is looked at and never stored, so its types need no identity."""
    return "0" * 16


def _say(report: Linted) -> None:
    count = "1 query" if report.queries == 1 else f"{report.queries} queries"
    emit_text(f"{report.path}: {count}, {len(report.faults)} at fault")
    for fault in report.faults:
        say(fault.render(report.path, caret=False))
