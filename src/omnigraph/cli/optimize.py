"""`omnigraph optimize`: build the search indexes that the schema declares over what they do not cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.errors import Exit, UsageRefused
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.progress import steps
from omnigraph.cli.receipts import counted
from omnigraph.cli.session import Session
from omnigraph.errors import OmnigraphError
from omnigraph.escaping import safe_text

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.maintenance.optimize import Report
    from omnigraph.engine.maintenance.receipts import OptimizedType, OptimizeResult

_REASONS = {
    "small": "not needed: without one answers are as quick, and exact",
    "unbuildable": "nothing to build: no row has a value",
    "few_rows": "left as it is: few rows are not covered, and they are searched without it",
}


@command("optimize", takes="direct", writes=True)
@options.uri
@options.branch
@click.option("--all-branches", is_flag=True, help="Every live branch, one after the other.")
@click.option("--type", "types", metavar="NAME", multiple=True, help="Only this type; may be repeated.")
@click.option("--full", is_flag=True, help="One segment an index, built over everything.")
def optimize(
    session: Session, uri: str | None, branch: str | None, all_branches: bool, types: tuple[str, ...], full: bool
) -> int:
    """Build the search indexes that the schema declares, and have them cover the rows that came since.

    One commit a branch, or none if there is nothing to do. What the graph holds stays as it is, and others may go on writing: a type that they change meanwhile is left for the next run. Exit 1 if the indexes of a type could not be built.
    """
    if branch is not None and all_branches:
        raise UsageRefused("--branch and --all-branches exclude each other.")
    done: list[OptimizeResult | _Failed] = []
    with session.writing(uri) as graph:
        names = [each.name for each in graph.branches.list()] if all_branches else [branch or graph.branch]
        for name in names:
            with steps(session, f"optimize {name}", "types") as report:
                report(0)
                try:
                    done.append(_sent(session, graph, name, types, full, report))
                except OmnigraphError as error:
                    if not any(done):
                        raise
                    done.append(_Failed(name, error))  # and not raised: what it proves is not true of the whole command
    if session.json:
        emit_json({"branches": [each.to_dict() for each in done]} if all_branches else done[0].to_dict())
    else:
        emit_text("\n".join(_text(each) for each in done))
    return Exit.FAILED if any(each.failed for each in done) else Exit.DONE


def _sent(
    session: Session, graph: Graph, branch: str, types: tuple[str, ...], full: bool, report: Report
) -> OptimizeResult:
    upkeep = graph.maintenance
    return session.send(lambda: upkeep.optimize(branch, list(types) or None, full, progress=report))


@dataclass(frozen=True)
class _Failed:
    """A branch that failed after another one was published."""

    branch: str
    error: OmnigraphError
    failed = True

    def __bool__(self) -> bool:
        return False

    def to_dict(self) -> dict[str, Any]:
        return {"branch": self.branch, "error": self.error.to_dict()}


def _text(result: OptimizeResult | _Failed) -> str:
    """A line for each index, then what became of the branch."""
    if isinstance(result, _Failed):
        return safe_text(f"{result.branch}: {result.error.code}: {result.error.message}")
    lines = [line for each in result.types for line in _type_lines(each)]
    what = "nothing to do" if result.commit is None else f"commit {result.commit.graph_commit_id}"
    if result.commit is None and (result.failed or any(each.skipped for each in result.types)):
        what = "nothing was published"
    return "\n".join(safe_text(each) for each in [*lines, f"{result.branch}: {what}"])


def _type_lines(told: OptimizedType) -> list[str]:
    name = told.type_name
    lines = [
        f"{name}.{each.property}: {counted(each.rows_indexed, 'row')} indexed,"
        f" {counted(each.segments_before, 'segment')} before and {each.segments_after} now"
        for each in told.indexes
    ]
    lines += [f"{name}.{each.property}: {_REASONS.get(each.reason, each.reason)}" for each in told.pending]
    if told.skipped is not None:
        lines.append(f"{name}: skipped, since others changed it meanwhile; run it again")
    if told.error is not None:
        lines.append(f"{name}: failed: {told.error.message}")
    return lines
