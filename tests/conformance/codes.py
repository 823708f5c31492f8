"""Which codes there are: those of the list, those that the source holds, and those that a file of cases asks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.cases import read_cases

CODE = re.compile(r"[LNPQSW][0-9]{3}|T[0-9]{1,2}|OG-[A-Z]{2}-[0-9]{3}")
"""A code as the language has them, but for those in words."""

Place = tuple[str, str]
"""A case by its file and its title."""

_WITHIN = re.compile(rf"\b(?:{CODE.pattern})\b")
_VALUE = "\0"  # in the place of what a text is completed with when it runs
_COMPOSED = re.compile(rf"(?<![\w{_VALUE}])(?:[LNPQSTW][0-9]{{0,2}}|OG-[A-Z]{{0,2}}(?:-[0-9]{{0,2}})?){_VALUE}")


@dataclass(frozen=True)
class Listed:
    """`producer`: a file, perhaps `::` and the name of a test behind it; None if nothing raises the code."""

    code: str
    producer: str | None


@dataclass(frozen=True)
class Asking:
    """A case and the codes that it asks for."""

    file: Path
    title: str
    codes: frozenset[str]

    @property
    def place(self) -> Place:
        return str(self.file), self.title


def listed(path: Path) -> list[Listed]:
    """The lines of a list as `codes.txt` is one."""
    lines = path.read_text(encoding="utf-8").splitlines()
    parts = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return [Listed(code, None if where == "-" else where) for code, where, *_ in parts]


def asking(path: Path) -> list[Asking]:
    """The cases of a `.case` or a `.cases`, with the codes that they ask for: of a step, as a refusal by its title, or of a
    step of a migration.
    """
    found: list[Asking] = []
    for case in read_cases(path):
        if path.suffix == ".case":
            codes = re.findall(r"^= code (\S+)$", case.body, re.MULTILINE)
        else:
            of_steps = re.findall(r"^\S+ \S+ (\S+)$", case.body, re.MULTILINE)
            codes = [code for code in (case.title.rpartition(": ")[2], *of_steps) if CODE.fullmatch(code)]
        found.append(Asking(path, case.title, frozenset(codes)))
    return found


def texts(source: str) -> Iterator[str]:
    """The texts that a module holds, docstrings aside. What one is completed with when it runs is a NUL in it."""
    aside: set[int] = set()
    for node in ast.walk(ast.parse(source)):  # from the outside inwards
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                aside.add(id(docstring))
            case ast.JoinedStr(values=values):
                aside |= {id(value) for value in values}
                yield "".join(str(v.value) if isinstance(v, ast.Constant) else _VALUE for v in values)
            case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Add() | ast.Mod()):
                yield re.sub(r"%\w|$", _VALUE, text)
            case ast.Constant(value=str(text)) if id(node) not in aside:
                yield re.sub(r"\{\w*\}", _VALUE, text)
            case _:
                pass


def whole_codes(held: Iterable[str]) -> set[str]:
    """The codes among texts."""
    return {text for text in held if CODE.fullmatch(text)}


def hidden_codes(held: Iterable[str]) -> set[str]:
    """The texts that hold a code among other things, or that are completed to one: what `whole_codes` overlooks."""
    within = {text for text in held if _WITHIN.search(text) or _COMPOSED.search(text)}
    return within - whole_codes(within)
