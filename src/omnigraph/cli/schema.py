"""`omnigraph schema`: show the accepted schema, plan a change, apply one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.cli import options
from omnigraph.cli.command import command, group
from omnigraph.cli.errors import Exit, UsageRefused
from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.progress import steps
from omnigraph.cli.scope import cluster_around
from omnigraph.cli.session import Session
from omnigraph.cli.source import schema_text
from omnigraph.cli.state import State
from omnigraph.escaping import safe_text

schema = group("schema", "The schema: show it, plan a change, apply one.")


@command("show", takes="any")
@options.uri
@options.snapshot
@options.as_of
def show(session: Session, uri: str | None, snapshot: str | None, as_of: int | None) -> None:
    """The accepted schema text of main, now or at a time, or of a commit."""
    state = State(None, snapshot, as_of).asked()
    with session.reading(uri) as graph:
        from omnigraph.engine.reading.answers import schema_answer
        from omnigraph.engine.reading.selectors import Selector, pinned

        answer = schema_answer(graph.core, pinned(graph.core, Selector.asked(**state), graph.branch))
    if session.json:
        emit_json(answer)
    else:
        emit_text(str(answer["schema_source"]).rstrip("\n"))


@command("plan", takes="direct")
@options.uri
@options.schema
@options.allow_data_loss
def plan(session: Session, uri: str | None, schema: str, allow_data_loss: bool) -> int:
    """The steps from the accepted schema to a file, refused ones included. Changes nothing; exit 1 for a refused step.

    With --allow-data-loss, steps that drop rows or values are no refusals.
    """
    text = schema_text(session, schema)
    with session.reading(uri) as graph:
        result = graph.schema.plan(text)
    refusal = None
    if not result.supported:
        refusal = "a step can't be applied"
    elif _losses(result.steps) and not allow_data_loss:
        refusal = "rows or values would be dropped; allow it with --allow-data-loss"
    if session.json:
        emit_json(result.to_dict())
    else:
        refused = () if refusal is None else (f"refused: {refusal}",)
        emit_text("\n".join([_steps_text(result.steps), *refused]))
    return Exit.DONE if refusal is None else Exit.FAILED


@command("apply", takes="store", writes=True)
@options.uri
@options.schema
@options.allow_data_loss
@options.message
def apply(session: Session, uri: str | None, schema: str, allow_data_loss: bool, message: str | None) -> None:
    """Apply a schema file to a graph that stands alone, as one commit.

    A cluster's graphs take their schema from its folder: omnigraph cluster apply.
    """
    root = session.root(uri)
    text = schema_text(session, schema)
    if cluster_around(root.uri) is not None:
        raise UsageRefused("This graph belongs to a cluster: change its schema with omnigraph cluster apply.")

    def dropped() -> str:
        with session.reading(uri) as graph:
            return ": " + (", ".join(_losses(graph.schema.plan(text).steps)) or "none as it stands")

    if allow_data_loss:
        deed = f"This applies the schema to {root.uri} and may drop rows or values that exist"
        session.consent(deed, even_locally=True, detail=dropped)
    with session.writing(uri) as graph, steps(session, "schema", "steps") as report:
        report(0)
        result = session.send(lambda: graph.schema.apply(text, allow_data_loss=allow_data_loss, message=message))
        report(len(result.steps), len(result.steps))
    if session.json:
        emit_json(result.to_dict())
        return
    done = "nothing to change" if result.commit is None else f"applied; commit {result.commit.graph_commit_id}"
    emit_text("\n".join([_steps_text(result.steps), done]) if result.steps else done)


def _losses(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the steps drop that holds rows or values."""
    return list(dict.fromkeys(str(step["entity"]) for step in steps if step["severity"] == "warning"))


def _steps_text(steps: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(step_text(step) for step in steps) or "no steps: the schema is the accepted one"


def step_text(step: Mapping[str, Any]) -> str:
    """One step of a migration in a line: what counts of it, of what, why."""
    code = f" {step['code']}" if "code" in step else ""
    renamed = f" (was {step['renamed_from']})" if "renamed_from" in step else ""
    return safe_text(f"{step['severity']}{code} {step['kind']} {step['entity']}{renamed}: {step['reason']}")


for _each in (show, plan, apply):
    schema.add_command(_each)
