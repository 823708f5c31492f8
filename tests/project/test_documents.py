"""Every example of the documents runs, and every doctest of the package.

In a Markdown file the fenced blocks marked `python` are one program, run from the top in an empty folder; a block marked
`text` right after one is what it prints. A block is left out by `<!-- not run: why -->` on the
line above it.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([CHECKOUT / "README.md", *(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / "examples").rglob("*.md")])
FENCE = re.compile(r"^(?P<skip><!-- not run: .+ -->\n)?```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    line: int  # of its first line in the document


def blocks(text: str) -> list[Block]:
    return [
        Block(match["kind"], match["body"], text.count("\n", 0, match.start("body")) + 1)
        for match in FENCE.finditer(text)
        if not match["skip"]
    ]


def run_blocks(found: list[Block], name: str) -> list[str]:
    """Run the Python blocks in one namespace; complaints about output that differs."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    complaints: list[str] = []
    printed: str | None = None
    for block in found:
        if block.kind == "python":
            code = compile("\n" * (block.line - 1) + block.body, name, "exec")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, namespace)
            printed = out.getvalue()
        else:
            if block.kind == "text" and printed is not None and printed.split() != block.body.split():
                complaints.append(f"{name}:{block.line}: printed\n{printed}\nand the document says\n{block.body}")
            printed = None
    return complaints


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_the_examples_of_a_document_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_blocks(blocks(document.read_text()), document.name) == []


def test_a_block_that_prints_something_else_is_found() -> None:
    text = "```python\nx = 1\n```\n```python\nprint(x + 1)\n```\n```text\n3\n```\n"
    assert len(run_blocks(blocks(text), "made up")) == 1
    assert run_blocks(blocks(text.replace("3", "2")), "made up") == []
    assert blocks("<!-- not run: needs a cloud -->\n```python\n1/0\n```\n") == []


def every_module() -> list[str]:
    found = pkgutil.walk_packages(omnigraph.__path__, "omnigraph.")
    return sorted(each.name for each in found if not each.name.endswith("__main__"))


def test_the_doctests_of_the_package_pass() -> None:
    with_examples = 0
    for name in every_module():
        result = doctest.testmod(importlib.import_module(name))
        assert result.failed == 0, name
        with_examples += result.attempted > 0
    assert with_examples >= 5  # so that it can't pass by finding nothing
