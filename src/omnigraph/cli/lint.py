"""`omnigraph lint`: do query files parse and check against a schema, and do they say what was meant?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import command
from omnigraph.cli.errors import Exit, UsageRefused
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.session import Session
from omnigraph.cli.source import exact_text, named
from omnigraph.cli.terminal import say

if TYPE_CHECKING:
    from omnigraph.cli.linting import Linted
    from omnigraph.lang.query.lint.findings import Finding
    from omnigraph.lang.schema.catalog import Catalog


@command("lint", takes="direct")
@click.option("--query", "files", metavar="FILE", multiple=True, required=True, help="A .gq file; may be repeated.")
@click.option("--schema", metavar="FILE|URI", help="A .pg file, or the graph whose schema counts.")
def lint(session: Session, files: tuple[str, ...], schema: str | None) -> int:
    """Check query files against a schema file or a graph's schema; reads no data. Exit 1 if one is at fault.

    What is legal and probably not meant is told by warnings and infos (codes L201 to L210), which change no exit code.
    """
    from omnigraph.cli.linting import linted

    used = _used_schema(session, schema)
    reports = [linted(exact_text(file, "--query"), named(file), used.catalog, used.findings) for file in files]
    if session.json:
        objects = [{"status": r.status, "schema_source": used.about, **r.to_dict()} for r in reports]
        emit_json(objects[0] if len(objects) == 1 else {"files": objects})
    else:
        for report in reports:
            _say(report)
        for finding in used.findings:  # once, however many files there are
            say(finding.render(used.name))
    return Exit.DONE if all(report.status == "ok" for report in reports) else Exit.FAILED


@dataclass(frozen=True, slots=True)
class _UsedSchema:
    """Where a schema is from, what it means, and what the rules find in it. `name`: that of its file, if it has one."""

    about: dict[str, Any]
    catalog: Catalog
    findings: tuple[Finding, ...]
    name: str | None


def _used_schema(session: Session, schema: str | None) -> _UsedSchema:
    """Raises InvalidSchema, UsageRefused, and what opening a graph raises."""
    from omnigraph.lang.query.lint.findings import in_order
    from omnigraph.lang.query.lint.rules import schema_findings
    from omnigraph.lang.schema.compile import compile_schema
    from omnigraph.lang.schema.parse import parse_schema

    graph_named = schema is not None and ("://" in schema or os.path.isdir(schema))
    if schema is not None and not graph_named:
        if any(session.given.get(name) for name in ("store", "cluster", "server", "profile", "graph")):
            raise UsageRefused("--schema FILE and the address of a graph exclude each other.")
        session.source_name = named(schema)
        name, text = named(schema), exact_text(schema, "--schema")
        catalog = compile_schema(text, mint=_no_identity)
        about: dict[str, Any] = {"kind": "file", "path": name}
    else:
        with session.reading(schema if graph_named else None) as graph:
            name, text, catalog = None, graph.schema.source, graph.schema.types
            about = {"kind": "graph", "graph_commit_id": graph.head.graph_commit_id}
    return _UsedSchema(about, catalog, in_order(schema_findings(parse_schema(text), catalog)), name)


def _no_identity() -> str:
    """The catalog is looked at and never stored, so its types need no identity."""
    return "0" * 16


def _say(report: Linted) -> None:
    told = ["1 query" if report.queries == 1 else f"{report.queries} queries", f"{len(report.faults)} at fault"]
    for word, count in (("warning", report.count("warning")), ("info", report.count("info"))):
        if count:
            told.append(f"{count} {word}{'' if count == 1 else 's'}")
    emit_text(f"{report.path}: {', '.join(told)}")
    for fault in report.faults:
        say(fault.render(report.path, caret=False))
    for finding in report.findings:
        if not finding.in_schema:
            say(finding.render(report.path))
