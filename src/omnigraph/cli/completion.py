"""`omnigraph completion`: a script that teaches a shell the commands and options."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from omnigraph.cli.command import command
from omnigraph.cli.output import emit_text
from omnigraph.cli.session import Session

VARIABLE = "_OMNIGRAPH_COMPLETE"

_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $env:%(complete_var)s = "powershell_complete"
    $env:COMP_WORDS = $commandAst.ToString()
    $env:COMP_CWORD = $wordToComplete
    %(prog_name)s | ForEach-Object {
        $value, $help = $_ -split "`t", 2
        [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", "$help ")
    }
    $env:%(complete_var)s = ""; $env:COMP_WORDS = ""; $env:COMP_CWORD = ""
}
"""


class PowerShellComplete(ShellComplete):
    """The words come whole, with the one to complete beside them."""

    name = "powershell"
    source_template = _POWERSHELL

    def get_completion_args(self) -> tuple[list[str], str]:
        import os

        words = split_arg_string(os.environ.get("COMP_WORDS", ""))
        incomplete = os.environ.get("COMP_CWORD", "")
        args = words[1:]
        if incomplete and args and args[-1] == incomplete:
            args.pop()
        return args, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.value}\t{item.help or ''}"


def register() -> None:
    """Let click know the shell it does not bring; asked for when a completion runs."""
    add_completion_class(PowerShellComplete)


@command("completion", takes="local")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
def completion(session: Session, shell: str) -> None:
    """Print a completion script, such as: omnigraph completion bash >> ~/.bashrc"""
    session.refuse_addressing()
    register()
    kind = get_completion_class(shell)
    assert kind is not None
    root: Any = click.get_current_context().find_root().command
    emit_text(kind(root, {}, "omnigraph", VARIABLE).source().rstrip("\n"))
