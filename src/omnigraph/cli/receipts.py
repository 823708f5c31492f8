"""Receipts of writes as people read them: a line or two; with --json the wire's object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.cli.output import emit_json, emit_text
from omnigraph.cli.session import Session
from omnigraph.cli.values import shell_line

if TYPE_CHECKING:
    from omnigraph.engine.receipts import BranchCreated, BranchDeleted, Commit, LoadResult, MergeResult, WriteResult


class Answer(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def emit_receipt(session: Session, answer: Answer, text: str) -> None:
    if session.json:
        emit_json(answer.to_dict())
    else:
        emit_text(text)


def written_text(result: WriteResult) -> str:
    what = f"{counted(result.affected_nodes, 'node')}, {counted(result.affected_edges, 'edge')}"
    return f"{result.query_name}: {what}; {_committed(result.commit, result.replayed)}"


def loaded_text(result: LoadResult) -> str:
    lines = [f"{t.name:<24} {t.entities_loaded:>12,}" for t in (*result.nodes, *result.edges)]
    target = f"the new branch {result.branch}" if result.branch_created else result.branch
    total = f"{counted(result.total_entities, 'entity', 'entities')} loaded into {target}"
    return "\n".join([*lines, f"{total}; {_committed(result.commit, result.replayed)}"])


def created_text(result: BranchCreated) -> str:
    replay = " (done before under this key)" if result.replayed else ""
    return f"branch {result.name} created from {result.from_} at {result.base_commit_id}{replay}"


def deleted_text(result: BranchDeleted, here: Sequence[str]) -> str:
    """`here`: the options that lead to the same graph again."""
    left = f", {counted(result.unmerged_commits, 'commit')} not in main" if result.unmerged_commits else ""
    if result.last_commit_id is None:
        return f"branch {result.name} deleted{left}"
    undo = f"omnigraph branch create {shell_line([result.name, '--from', result.last_commit_id, *here])}"
    return f"branch {result.name} deleted{left}\n  undo: {undo}"


def merged_text(result: MergeResult) -> str:
    if result.dry_run:
        return f"{result.source} into {result.target} would be: {result.outcome.replace('_', ' ')}; nothing was done"
    if result.outcome == "already_up_to_date":
        text = f"{result.target} has everything of {result.source} already"
    else:
        how = result.outcome.replace("_", " ")
        text = f"{result.source} into {result.target}, {how}; {_committed(result.commit, result.replayed)}"
    return f"{text}\nbranch {result.source} deleted" if result.branch_deleted else text


def _committed(commit: Commit | None, replayed: bool) -> str:
    if commit is None:
        return "nothing to commit"
    return f"commit {commit.graph_commit_id}" + (" (done before under this key)" if replayed else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
