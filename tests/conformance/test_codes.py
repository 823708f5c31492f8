"""Every code of languages.md is produced by some test: `codes.txt` says which, and is held to what it says."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = HERE.parent
SOURCE = TESTS.parent / "src" / "omnigraph"

# A code as the source writes it; those in words are told apart from other words by the list alone.
_QUOTED = re.compile(r'"((?:[LNPQSW][0-9]{3}|T[0-9]{1,2}|OG-[A-Z]{2}-[0-9]{3}))"')


@dataclass(frozen=True)
class Listed:
    """`producer`: a file below tests/, perhaps with the name of a test; None if nothing raises the code."""

    code: str
    producer: str | None


def listed() -> list[Listed]:
    lines = (HERE / "codes.txt").read_text(encoding="utf-8").splitlines()
    parts = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return [Listed(code, None if where == "-" else where) for code, where, *_ in parts]


CODES = listed()


def raised_codes() -> set[str]:
    """The codes that the source names, those of words among those that are listed."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    found = {code for text in texts for code in _QUOTED.findall(text)}
    words = {each.code for each in CODES if each.code.islower()}
    return found | {word for word in words if any(f'"{word}"' in text for text in texts)}


def test_each_code_is_listed_once() -> None:
    assert len({each.code for each in CODES}) == len(CODES) > 120


def test_every_code_that_the_source_can_raise_has_a_case() -> None:
    assert raised_codes() - {each.code for each in CODES if each.producer is not None} == set()


def test_every_code_with_a_case_is_one_of_the_source() -> None:
    assert {each.code for each in CODES if each.producer is not None} - raised_codes() == set()


@pytest.mark.parametrize("code", [each for each in CODES if each.producer is not None], ids=lambda each: each.code)
def test_the_case_of_a_code_asks_for_it(code: Listed) -> None:
    assert code.producer is not None
    file, _, test = code.producer.partition("::")
    assert asks_for(TESTS / file, test, code.code), f"{code.producer} does not ask for {code.code}"


def asks_for(path: Path, test: str, code: str) -> bool:
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".case":
            pattern = rf"^= code {code}$"
        case ".cases":  # a refusal by its title, or a step of a migration
            pattern = rf"^## .*: {code}$|^\S+ \S+ {code}$"
        case _:
            text, pattern = body_of(text, test), rf"[\"']{code}[\"']"
    return re.search(pattern, text, re.MULTILINE) is not None


def body_of(text: str, test: str) -> str:
    """The text of a test, its decorators included."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == test:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "\n".join(lines[first - 1 : node.end_lineno])
    return ""


def test_a_file_that_does_not_ask_for_a_code_is_found() -> None:
    assert asks_for(HERE / "search.case", "", "T38")
    assert not asks_for(HERE / "search.case", "", "T3")
    assert not asks_for(Path(__file__), "test_each_code_is_listed_once", "T38")
    assert not asks_for(Path(__file__), "test_that_is_not_there", "T38")
