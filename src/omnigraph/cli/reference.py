"""The generated part of `docs/cli.md`: every command with its arguments and options, the shared ones once.

    python -m omnigraph.cli.reference docs/cli.md     writes it below its mark, leaving the text above alone

Made from the commands themselves, so a test can compare.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from omnigraph.cli.command import GLOBAL_NAMES, OmnigraphCommand, global_options, takes_text
from omnigraph.cli.errors import EXIT_MEANINGS
from omnigraph.cli.main import COMMANDS, cli

MARK = "<!-- Below this line: written by python -m omnigraph.cli.reference docs/cli.md -->"


def leaves() -> Iterator[tuple[str, OmnigraphCommand]]:
    """Every command that does something, by its full name."""
    context = click.Context(cli)
    for name in COMMANDS:
        found = cli.get_command(context, name)
        if isinstance(found, click.Group):
            for inner in found.commands.values():
                assert isinstance(inner, OmnigraphCommand)
                yield f"{name} {inner.name}", inner
        else:
            assert isinstance(found, OmnigraphCommand)
            yield name, found


def reference() -> str:
    """The text below the mark."""
    context = click.Context(cli)
    parts = [MARK, "## Exit codes", _table(("exit", "meaning"), ((str(int(c)), m) for c, m in EXIT_MEANINGS.items()))]
    parts += ["## Options of every command", _option_table(global_options(), context), "## Commands"]
    for name, command in leaves():
        own = [p for p in command.params if p.name not in GLOBAL_NAMES]
        arguments = [p for p in own if isinstance(p, click.Argument)]
        words = "".join(f" {argument.make_metavar(context)}" for argument in arguments)
        parts += [f"### `omnigraph {name}{words}`", inspect.cleandoc(command.help or ""), takes_text(command)]
        options = [p for p in own if isinstance(p, click.Option) and not p.hidden]
        if options:
            parts.append(_option_table(options, context))
    return "\n\n".join(parts) + "\n"


def _option_table(options: Iterable[click.Parameter], context: click.Context) -> str:
    return _table(("option", "meaning"), (_record(option, context) for option in options))


def _record(option: click.Parameter, context: click.Context) -> tuple[str, str]:
    record = option.get_help_record(context)
    assert record is not None
    head, meaning = record
    repeated = " (may be repeated)" if option.multiple and "may be repeated" not in meaning else ""
    return f"`{head}`", meaning.replace("[required]", "(required)") + repeated


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_reference(document: str) -> str:
    """The document with its generated part made anew."""
    return document.partition(MARK)[0] + reference()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(with_reference(place.read_text(encoding="utf-8")), encoding="utf-8")
