"""A failure as text: the diagnostic of languages.md 16.3 or one line on stderr, or the JSON object on stdout.

The human form of a write whose outcome is unknown ends with the line to run next.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from omnigraph.cli import terminal
from omnigraph.cli.controls import shown_text
from omnigraph.cli.errors import Interrupted, OutputFailed, UsageRefused, WaitOver, failure_body, takes_key
from omnigraph.cli.output import emit_json
from omnigraph.cli.session import Session
from omnigraph.cli.terminal import say
from omnigraph.cli.values import shell_line
from omnigraph.errors import ConstraintViolation, InvalidData, OmnigraphError, OutcomeUnknown

if TYPE_CHECKING:
    import click

_ADVICE = {
    "refresh": "Nothing was done: read the present state, then decide anew.",
    "retry": "Nothing was done: the same command may be run again.",
    "recover": "Someone must act first.",
}


def report_failure(
    error: OmnigraphError, session: Session, usage: click.UsageError | None = None, *, as_text: bool = False
) -> None:
    """One object on stdout with --json, else lines on stderr; those also where stdout itself is at fault (`as_text`).

    Raises OutputFailed if the object can't be written.
    """
    if isinstance(error, OutputFailed):
        say("\n".join(failure_lines(error, session)))
        return
    if not as_text and (session.json or (usage is not None and "--json" in session.words)):
        emit_json(failure_body(error, session.progressed))
        return
    lines: list[str] = []
    if usage is not None and usage.ctx is not None:
        lines.append(usage.ctx.get_usage())
    lines += failure_lines(error, session)
    if usage is not None and usage.ctx is not None:
        lines.append(f"  {usage.ctx.command_path} --help says what there is")
    say("\n".join(lines))


def failure_lines(error: OmnigraphError, session: Session) -> list[str]:
    """What a person is told: the fault, its place, what may be done now."""
    lines = [_headed(error, session)]
    findings = (
        cast("list[Mapping[str, Any]] | None", error.details) if error.detail_key in ("findings", "migration") else None
    )
    lines += [f"  {_finding(each)}" for each in findings or ()]
    advice = _ADVICE.get(error.retry)
    if error.effects == "unknown":
        lines += _run_next(error, session)
    elif session.writes and advice is not None and not isinstance(error, (UsageRefused, WaitOver, Interrupted)):
        lines.append(f"  {advice}")
    return lines


def _headed(error: OmnigraphError, session: Session) -> str:
    diagnostic = getattr(error, "diagnostic", None)
    source = session.source_name or "<text>"
    if diagnostic is not None:
        text = str(diagnostic.render(source, caret=False))
        head, _, rest = text.partition("]")
        return f"{_red(head + ']', session)}{shown_text(rest)}"
    code = str(error.details["code"]) if isinstance(error, (InvalidData, ConstraintViolation)) else error.code
    text = f"{_red(f'error[{code}]', session)}: {shown_text(error.message)}"
    line = getattr(error, "line_number", None)
    return text if line is None else f"{text}\n  --> {shown_text(source)}:{line}"


def _finding(finding: Mapping[str, Any]) -> str:
    """A finding of a configuration folder, or a step of a migration."""
    if "entity" in finding:
        from omnigraph.cli.schema import step_text

        return step_text(finding)
    return shown_text(f"{finding.get('code')} {finding.get('address')}: {finding.get('message')}")


def _run_next(error: OmnigraphError, session: Session) -> list[str]:
    """The command that finds out, or the same one where repeating it is safe: under its key, or because each step of it
    asks for a state and not for a change.
    """
    kind = error.details["kind"] if isinstance(error, OutcomeUnknown) else ""
    commit = getattr(error, "graph_commit_id", None)
    key = session.progressed.idempotency_key if takes_key(error) else None
    if kind == "init" or session.takes == "cluster":
        return _repeated(session.words)
    if commit is not None:
        return ["  run next:", f"    omnigraph commit outcome {shell_line([commit, *session.here])}"]
    if key is not None:
        given = "--idempotency-key" in session.words
        return _repeated(session.words if given else [*session.words, "--idempotency-key", key])
    list_command = "branch list" if kind.startswith("branch_") else "commit list"
    return ["  run next:", f"    omnigraph {list_command} {shell_line(session.here)}"]


def _repeated(words: Sequence[str]) -> list[str]:
    return ["  run next, which is safe in any case:", f"    omnigraph {shell_line(words)}"]


def _red(text: str, session: Session) -> str:
    return f"\x1b[31m{text}\x1b[0m" if terminal.wants_color(session.color, sys.stderr) else text


def frames(error: BaseException) -> str:
    """Where it happened: files, lines and functions; no values, no message of a lower library."""
    import traceback

    stack = traceback.extract_tb(error.__traceback__)
    return "".join(f"  {frame.filename}:{frame.lineno} in {frame.name}\n" for frame in stack)
