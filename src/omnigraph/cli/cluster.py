"""`omnigraph cluster`: validate a configuration folder, apply it, see what the storage holds."""

from __future__ import annotations

import click

from omnigraph.cli import options
from omnigraph.cli.command import command, group
from omnigraph.cli.errors import Exit, UsageRefused
from omnigraph.cli.forms import Listing
from omnigraph.cli.output import emit_json, emit_listing, emit_text
from omnigraph.cli.progress import steps
from omnigraph.cli.receipts import counted
from omnigraph.cli.scope import ClusterTarget, check_taken, resolve
from omnigraph.cli.session import Session

cluster = group("cluster", "A cluster: validate its folder, apply it, see its graphs.")

config_folder = click.option("--config", metavar="DIR", help="The folder with cluster.yaml, instead of this one.")


@command("validate", takes="cluster")
@config_folder
def validate(session: Session, config: str | None) -> int:
    """Check a configuration folder; all findings at once, exit 1 if there are any. No storage, no secrets."""
    folder = _folder(session, config)
    from omnigraph.cluster.config import InvalidConfig, read_config

    try:
        found = read_config(folder)
    except InvalidConfig as error:
        findings = [finding.to_dict() for finding in error.findings]
        if session.json:
            emit_json({"status": "error", "findings": findings, "graphs": []})
        else:
            emit_text("\n".join(f"{f['severity']}[{f['code']}] {f['address']}: {f['message']}" for f in findings))
        return Exit.FAILED
    graphs = [graph.id for graph in found.graphs]
    if session.json:
        emit_json({"status": "ok", "findings": [], "graphs": graphs})
    else:
        emit_text(
            f"no findings; {counted(len(graphs), 'graph')}: {', '.join(graphs)}" if graphs else "no findings; no graphs"
        )
    return Exit.DONE


@command("apply", takes="cluster", writes=True)
@config_folder
@options.allow_data_loss
def apply(session: Session, config: str | None, allow_data_loss: bool) -> int:
    """Make the graphs that are missing and apply the schemas that differ, under the cluster's lock.

    Graphs that the folder no longer declares are left alone and reported. Exit 1 unless all is done.
    """
    folder = _folder(session, config)
    if allow_data_loss:
        session.consent(
            "This applies the schemas of the folder and may drop rows or values that exist", even_locally=True
        )
    session.heed_logs()
    from omnigraph.cluster.apply import apply as apply_folder

    with steps(session, "apply", "graphs") as progress:
        report = session.send(
            lambda: apply_folder(folder, actor=session.actor, allow_data_loss=allow_data_loss, progress=progress)
        )
    session.echo(report.storage)
    if session.json:
        emit_json(report.to_dict())
    else:
        lines = [
            f"{g.graph_id:<24} {g.change.replace('_', ' '):<16} {g.commit_id or ''}".rstrip() for g in report.graphs
        ]
        emit_text("\n".join(lines) or "the folder declares no graphs")
        for graph in report.graphs:
            if graph.error is not None:
                session.note(f"error[{graph.error['code']}]: {graph.graph_id}: {graph.error['error']}")
    return Exit.DONE if report.outcome == "done" else Exit.FAILED


@command("status", takes="cluster")
@config_folder
@options.list_format
def status(session: Session, config: str | None, output: str | None) -> int:
    """The graphs in the storage and the head of each; exit 1 if one can't be opened."""
    form = session.form(output)
    place = _place(session, config)
    session.heed_logs()
    from omnigraph.cluster.config import storage_root
    from omnigraph.cluster.status import status as cluster_status

    found = cluster_status(storage_root(place))
    answer = found.to_dict()
    emit_listing(Listing(answer, answer["graphs"], ("graph_id", "state", "head_commit_id")), form)
    return Exit.DONE if all(graph.state == "ready" for graph in found.graphs) else Exit.FAILED


def _folder(session: Session, config: str | None) -> str:
    """The configuration folder. Raises UsageRefused for every other address."""
    given = session.addressing()
    check_taken(given, "cluster")
    if any((given.store, given.server, given.cluster, given.profile, given.graph)):
        raise UsageRefused("This command reads a configuration folder: --config DIR.")
    return config or "."


def _place(session: Session, config: str | None) -> str:
    """--config, --cluster, or a profile that names a cluster; else this folder."""
    given = session.addressing()
    if config is not None or not any((given.store, given.server, given.cluster, given.profile)):
        return _folder(session, config)
    target = resolve(given, session.config, session.environ, "cluster")
    assert isinstance(target, ClusterTarget)
    return target.root


for _each in (validate, apply, status):
    cluster.add_command(_each)
