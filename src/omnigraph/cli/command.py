"""Commands with the global options of interfaces.md 12.2, which may stand before or after the command's name.

    @command("export", takes="any")
    @click.argument("uri", required=False)
    def export(session: Session, uri: str | None) -> None: …

Knows click, and no command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, cast

import click

from omnigraph.cli.scope import ScopeClass
from omnigraph.cli.session import Session
from omnigraph.cli.values import duration_seconds

CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["--help"], "max_content_width": 100}

_TAKES = {
    "any": "a store, a cluster's graph, or a profile",
    "direct": "a store or a cluster's graph",
    "store": "a store that stands alone",
    "cluster": "a cluster",
    "local": "no graph",
}


class Duration(click.ParamType[int]):
    """Whole seconds of `90s`, `15m`, `24h`, `7d`, `4w`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return duration_seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Note a global option that stands on the command line; the one after the command wins over the one before it."""
    name = param.name or ""
    if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
        _session(ctx).given[name] = value
    return value


def _session(ctx: click.Context) -> Session:
    root = ctx.find_root()
    if not isinstance(root.obj, Session):
        root.obj = Session()
    return root.obj


def _option(*names: str, **settings: Any) -> click.Option:
    return click.Option(list(names), expose_value=False, callback=_keep, **settings)


def global_options() -> list[click.Parameter]:
    """Fresh option objects, the same for every command."""
    return [
        _option("--store", metavar="URI", help="One graph's storage: a folder or s3://bucket/prefix."),
        _option("--cluster", metavar="NAME|DIR|URI", help="A cluster, with --graph."),
        _option("--graph", metavar="ID", help="Which graph of the cluster."),
        _option("--server", metavar="NAME|URL", help="A served graph: not part of this version."),
        _option("--profile", metavar="NAME", help="A profile of the configuration."),
        _option("--as", "actor", metavar="ACTOR", help="Actor of direct writes."),
        _option("--json", is_flag=True, help="One JSON object on stdout, exactly the HTTP answer."),
        _option("--yes", "-y", is_flag=True, help="Consent to what would be asked."),
        _option("--quiet", "-q", is_flag=True, help="No notes on stderr."),
        _option("--verbose", "-v", is_flag=True, help="Tracebacks of unexpected errors."),
        _option("--color", type=click.Choice(["auto", "always", "never"]), help="Colour; auto honours NO_COLOR."),
        _option(
            "--progress",
            type=click.Choice(["auto", "always", "never", "json"]),
            help="Progress on stderr; json: one object a line.",
        ),
        _option("--timeout", type=Duration(), metavar="DURATION", help="Wait no longer, on reads; 90s 15m 24h 7d 4w."),
    ]


GLOBAL_NAMES = frozenset(option.name for option in global_options())


class OmnigraphCommand(click.Command):
    """A leaf command. `takes` says where it works, `writes` whether a failure says what became of the write."""

    def __init__(self, name: str | None, *, takes: ScopeClass = "local", writes: bool = False, **settings: Any) -> None:
        settings.setdefault("context_settings", CONTEXT_SETTINGS)
        super().__init__(name, **settings)
        self.takes: ScopeClass = takes
        self.writes = writes
        self.params.extend(global_options())

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if parent is not None:  # known before the arguments are read, so that a usage error is judged as this command's
            session = _session(parent)
            session.takes, session.writes = self.takes, self.writes
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [p for p in self.get_params(ctx) if p.name not in GLOBAL_NAMES]
        shared = [p for p in self.get_params(ctx) if p.name in GLOBAL_NAMES]
        _section(ctx, formatter, "Options", own)
        _section(ctx, formatter, "Global options", shared)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(takes_text(self))
        super().format_epilog(ctx, formatter)


def takes_text(command: OmnigraphCommand) -> str:
    """A sentence that says what a command works on."""
    return f"Works on {_TAKES[command.takes]}."


def _section(ctx: click.Context, formatter: click.HelpFormatter, title: str, params: Iterable[click.Parameter]) -> None:
    records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


class LazyGroup(click.Group):
    """Commands by name, each imported when it is asked for. `modules`: name -> `module:attribute`."""

    def __init__(self, name: str | None = None, *, modules: dict[str, str] | None = None, **settings: Any) -> None:
        settings.setdefault("context_settings", CONTEXT_SETTINGS)
        super().__init__(name, **settings)
        self.modules = modules or {}
        self.params.extend(global_options())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules) or list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.modules.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, attribute = place.split(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        if ctx.parent is None:
            _section(ctx, formatter, "Options", self.get_params(ctx))


def command(
    name: str, *, takes: ScopeClass, writes: bool = False
) -> Callable[[Callable[..., int | None]], OmnigraphCommand]:
    """Make a command of a function whose first argument is the session. What it returns, if anything, is the exit code."""

    def wrap(function: Callable[..., int | None]) -> OmnigraphCommand:
        made = click.command(name, cls=OmnigraphCommand, takes=takes, writes=writes)(click.pass_obj(function))
        return made

    return wrap


def group(name: str, help: str) -> LazyGroup:
    """A group whose commands are added with `add_command`."""
    return LazyGroup(name, help=help, no_args_is_help=True)
