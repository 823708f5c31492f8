"""`omnigraph query`: run a read."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli import options
from omnigraph.cli.command import command
from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.output import emit_result
from omnigraph.cli.progress import waiting
from omnigraph.cli.session import Session
from omnigraph.cli.source import query_params, query_text
from omnigraph.cli.state import State
from omnigraph.cli.values import pairs

_TIMEOUT_SECONDS_MAX = 3_600


@command("query", takes="any")
@options.source
@options.branch
@options.snapshot
@options.as_of
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="A setting; the source's own lines win.")
@click.option("--explain", is_flag=True, help="Answer the plan and run nothing, as if explain stood before the query.")
@click.option("--profile-plan", is_flag=True, help="Tell what each step did: in the answer with json, else on stderr.")
@options.result_format
@options.out
@click.option("--meta", is_flag=True, help="With jsonl: an object about the rows first.")
@click.option("--neutralize-formulas", is_flag=True, help="With csv: make texts inert that a spreadsheet would run.")
def query(
    session: Session,
    name: str | None,
    file: str | None,
    text: str | None,
    params: str | None,
    params_file: str | None,
    single: tuple[str, ...],
    branch: str | None,
    snapshot: str | None,
    as_of: int | None,
    settings: tuple[str, ...],
    explain: bool,
    profile_plan: bool,
    output: str | None,
    out: str | None,
    meta: bool,
    neutralize_formulas: bool,
) -> None:
    """Run a read of a .gq source. NAME says which, if the source holds several."""
    if explain and profile_plan:
        raise UsageRefused("--explain and --profile-plan exclude each other: what is explained is not run.")
    source = query_text(session, file, text, name)
    values = query_params(source, name, file=params_file, text=params, single=single)
    form = session.form(output, out=out, meta=meta, neutralize_formulas=neutralize_formulas)
    asked = _settings(session, settings)
    state = State(branch, snapshot, as_of).asked()
    with session.reading() as graph, waiting(session, "query"):
        ask = graph.explain if explain else graph.query
        result = ask(
            source,
            values,
            query_name=name,
            settings=asked,
            profile=profile_plan,
            door="json",
            **state,
        )
    for warning in result.warnings:
        session.note(f"warning[{warning['code']}]: {warning['message']}")
    emit_result(result, form)
    if profile_plan and form.output != "json" and not form.meta:
        from omnigraph.engine.display import profile_text

        session.note(profile_text(result.profile) if result.profile else "no profile: nothing was run.")


def _settings(session: Session, given: tuple[str, ...]) -> dict[str, Any]:
    """--set; --timeout bounds the read unless a setting does."""
    settings: dict[str, Any] = dict(pairs(given, "--set"))
    if session.timeout_seconds is not None:
        if not 1 <= session.timeout_seconds <= _TIMEOUT_SECONDS_MAX:
            raise UsageRefused("--timeout of a query lies between 1s and 60m.")
        settings.setdefault("query_timeout_ms", session.timeout_seconds * 1_000)
    return settings
