"""`omnigraph branch`: create, list, delete and merge branches."""

from __future__ import annotations

import click

from omnigraph.cli import options
from omnigraph.cli.command import command, group
from omnigraph.cli.forms import Listing
from omnigraph.cli.output import emit_listing
from omnigraph.cli.progress import waiting
from omnigraph.cli.receipts import created_text, deleted_text, emit_receipt, merged_text
from omnigraph.cli.session import Session

branch = group("branch", "Branches: create, list, delete, merge.")


@command("create", takes="any", writes=True)
@click.argument("name")
@click.option("--from", "from_", metavar="BRANCH|COMMIT", help="What it begins from, instead of main.")
@options.idempotency_key
def create(session: Session, name: str, from_: str | None, idempotency_key: str | None) -> None:
    """Make a branch of another one's head or of a commit: one request, nothing is copied."""
    with session.writing() as graph:
        key = session.key(idempotency_key)
        result = session.send(lambda: graph.branches.create(name, from_=from_, idempotency_key=key))
    emit_receipt(session, result, created_text(result))


@command("list", takes="any")
@options.list_format
def list_(session: Session, output: str | None) -> None:
    """Live branches, main first."""
    form = session.form(output)
    with session.reading() as graph:
        found = graph.branches.list()
    from omnigraph.engine.reading.answers import branches_answer

    answer = branches_answer(found)
    shown = ("name", "head_commit_id", "created_from", "created_at")
    emit_listing(Listing(answer, answer["details"], shown), form)


@command("delete", takes="any", writes=True)
@click.argument("name")
def delete(session: Session, name: str) -> None:
    """Delete a branch. Its commits stay known; the answer says how to bring it back."""
    session.consent(f"This deletes branch {name}")
    with session.writing() as graph:
        result = session.send(lambda: graph.branches.delete(name))
    emit_receipt(session, result, deleted_text(result, session.here))


@command("merge", takes="any", writes=True)
@click.argument("source")
@click.option("--into", metavar="BRANCH", help="What takes the changes in, instead of main.")
@click.option("--delete-branch", is_flag=True, help="Delete the source afterwards.")
@click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")
@options.message
@options.idempotency_key
def merge(
    session: Session,
    source: str,
    into: str | None,
    delete_branch: bool,
    dry_run: bool,
    message: str | None,
    idempotency_key: str | None,
) -> None:
    """Take the changes of branch SOURCE into another branch.

    This version merges where the target did not change since the two parted. Where both changed, branch anew from the
    target and write the change again.
    """
    if delete_branch and not dry_run:
        session.consent(f"This deletes branch {source} after the merge")
    with session.writing() as graph, waiting(session, "merge"):
        key = session.key(idempotency_key)
        result = session.send(
            lambda: graph.branches.merge(
                source,
                into,
                delete_branch=delete_branch,
                dry_run=dry_run,
                message=message,
                idempotency_key=key,
            )
        )
    emit_receipt(session, result, merged_text(result))
    refused = result.branch_delete_error_details
    if refused is not None:
        session.note(f"warning: the merge stands, but the branch was not deleted: {refused['error']}")


for _each in (create, list_, delete, merge):
    branch.add_command(_each)
