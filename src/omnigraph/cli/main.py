"""The entry point `omnigraph`: the table of commands, and the one place where a failure becomes text and an exit code.

Loads no engine: `omnigraph --help` and `--version` stay quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from omnigraph._version import __version__
from omnigraph.cli.command import LazyGroup
from omnigraph.cli.errors import Exit, Interrupted, OutputFailed, UsageRefused, exit_code
from omnigraph.cli.session import Session
from omnigraph.cli.terminal import say
from omnigraph.errors import InternalError, OmnigraphError

COMMANDS = {
    "init": "omnigraph.cli.init:init",
    "query": "omnigraph.cli.query:query",
    "mutate": "omnigraph.cli.mutate:mutate",
    "load": "omnigraph.cli.load:load",
    "export": "omnigraph.cli.export:export",
    "snapshot": "omnigraph.cli.snapshot:snapshot",
    "schema": "omnigraph.cli.schema:schema",
    "branch": "omnigraph.cli.branch:branch",
    "commit": "omnigraph.cli.commit:commit",
    "lint": "omnigraph.cli.lint:lint",
    "optimize": "omnigraph.cli.optimize:optimize",
    "cluster": "omnigraph.cli.cluster:cluster",
    "profile": "omnigraph.cli.profile:profile",
    "config": "omnigraph.cli.config:config",
    "completion": "omnigraph.cli.completion:completion",
    "version": "omnigraph.cli.version:version",
}

PROGRAM = "omnigraph"
COMPLETION = "_OMNIGRAPH_COMPLETE"  # set by a shell that asks for completions


class _Program(LazyGroup):
    """Turns whatever ends a command into an exit code."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        words = list(sys.argv[1:] if args is None else args)
        session = Session(words)
        extra.pop("standalone_mode", None)
        if COMPLETION in os.environ:
            from omnigraph.cli.completion import register

            register()
        try:
            sys.exit(self._run(words, session, extra))
        finally:
            _detach_closed_stdout()

    def _run(self, words: list[str], session: Session, extra: dict[str, Any]) -> int:
        try:
            done = super().main(words, PROGRAM, standalone_mode=False, obj=session, **extra)
            _flush()
            return done if isinstance(done, int) else Exit.DONE
        except click.exceptions.NoArgsIsHelpError as asked:
            say(asked.format_message())
            return Exit.USAGE
        except click.UsageError as error:
            return self._failed(UsageRefused(_usage_text(error)), session, usage=error)
        except click.ClickException as error:
            return self._failed(UsageRefused(error.format_message()), session)
        except BrokenPipeError:
            return Exit.FAILED  # whoever read has gone; there is nobody to tell
        except (KeyboardInterrupt, click.Abort):
            return self._failed(Interrupted(staged=session.progressed.staged), session)
        except OutputFailed as error:
            sent = session.progressed.writes and session.progressed.sent
            return self._failed(OutputFailed(error.message, write_sent=sent), session)
        except OmnigraphError as error:
            return self._failed(error, session)
        except Exception as error:  # a fault of this program: one line, and the frames with --verbose
            return self._failed(_lost_output(error) or _unexpected(error, session), session)

    def _failed(self, error: OmnigraphError, session: Session, usage: click.UsageError | None = None) -> int:
        from omnigraph.cli.failures import report_failure

        if session.writes:
            error.of_write(staged=session.progressed.staged)
        try:
            report_failure(error, session, usage)
            _flush()
        except BrokenPipeError:
            pass  # the exit code still says it
        except OutputFailed:  # the object of --json found no room: then the words, where they may be read
            report_failure(error, session, usage, as_text=True)
        return exit_code(error, session.progressed)


def _lost_output(error: Exception) -> OutputFailed | None:
    """What click itself could not print: help, the version, a completion."""
    import traceback

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, OSError) or frames[-1].f_code is not click.echo.__code__:
        return None
    return OutputFailed(f"Standard output can't be written: {error.strerror}.")


def _unexpected(error: Exception, session: Session) -> InternalError:
    if session.verbose:
        from omnigraph.cli.failures import frames

        say(frames(error).rstrip("\n"))
    return InternalError(f"A fault of this program: {type(error).__name__}. --verbose shows where; please report it.")


def _usage_text(error: click.UsageError) -> str:
    """As click says it, but a missing choice in one line."""
    param = error.param if isinstance(error, click.MissingParameter) else None
    if isinstance(param, click.Option) and isinstance(param.type, click.Choice):
        return f"Missing option {param.opts[0]} {'|'.join(map(str, param.type.choices))}."
    return error.format_message()


def _flush() -> None:
    """Raises BrokenPipeError, OutputFailed. A process that was started without a stdout has nothing to flush."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"Standard output can't be written: {error.strerror}.") from None


def _detach_closed_stdout() -> None:
    """A reader that went away must not make the interpreter complain at its end."""
    try:
        _flush()
    except (BrokenPipeError, OutputFailed):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


cli = _Program(
    PROGRAM,
    modules=COMMANDS,
    no_args_is_help=True,
    help="A typed property graph on a folder or a bucket, with branches and one query language.",
)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()


cli.params.insert(
    0,
    click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version and end.",
    ),
)


def main() -> NoReturn:
    """Run the command line of this process."""
    cli.main()
