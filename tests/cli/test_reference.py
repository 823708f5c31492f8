"""Every command is documented and has help, and `docs/cli.md` says what the program says."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from omnigraph.cli.command import OmnigraphCommand
from omnigraph.cli.reference import leaves, with_reference
from support.command_line import Run

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
LEAVES = list(leaves())


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_a_command_explains_itself(run: Run, name: str, command: OmnigraphCommand) -> None:
    shown = run(*name.split(), "--help")
    assert shown.code == 0
    assert command.help is not None
    assert command.help.split(".")[0].split()[0] in shown.out
    for param in command.params:
        assert not isinstance(param, click.Option) or param.help, f"{name}: {param.name}"
    assert f"### `omnigraph {name}" in DOCUMENT.read_text()


def test_the_document_says_what_the_commands_say() -> None:
    text = DOCUMENT.read_text()
    assert text == with_reference(text), "run python -m omnigraph.cli.reference docs/cli.md"


def test_there_is_one_test_file_for_each_command() -> None:
    files = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert {f"test_{name.split()[0]}" for name, _ in LEAVES} <= files
