"""`omnigraph completion`."""

from __future__ import annotations

import pytest

from support.command_line import Run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_script_for_each_shell(run: Run, shell: str) -> None:
    script = run("completion", shell)
    assert script.code == 0
    assert "_OMNIGRAPH_COMPLETE" in script.out
    assert "omnigraph" in script.out


def test_another_shell_is_a_mistake_of_usage(run: Run) -> None:
    assert run("completion", "ksh").code == 2


@pytest.mark.parametrize(
    ("shell", "words", "cword"),
    [("bash", "omnigraph branch de", "2"), ("powershell", "omnigraph branch de", "de")],
)
def test_a_shell_that_asks_gets_commands(
    run: Run, monkeypatch: pytest.MonkeyPatch, shell: str, words: str, cword: str
) -> None:
    monkeypatch.setenv("_OMNIGRAPH_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", cword)
    answer = run()
    assert "delete" in answer.out
    assert "merge" not in answer.out
