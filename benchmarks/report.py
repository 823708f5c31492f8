"""The report: sections of one table each, as Markdown. Knows no measurement."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a target says to a number."""

    MET = "met"
    MISSED = "**missed**"
    NONE = ""  # a number beside a target, for comparison


def judged(holds: bool) -> Verdict:
    return Verdict.MET if holds else Verdict.MISSED


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one line but for the last, which is the verdict."""

    cells: tuple[str, ...]
    verdict: Verdict = Verdict.NONE


@dataclass(frozen=True, slots=True)
class Section:
    """One subject. `about` says what was done, `notes` what is to be known when reading the numbers."""

    title: str
    about: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict is Verdict.MISSED)


def section_text(section: Section) -> str:
    """A section as Markdown, readable on a terminal too.

    >>> print(section_text(Section("Size", "Counted.", ("what", "n"), (Row(("a", "1"), Verdict.MET),))))
    ## Size
    <BLANKLINE>
    Counted.
    <BLANKLINE>
    | what | n |     |
    | :--- | -: | :-- |
    | a    | 1 | met |
    """
    header = (*section.header, "")
    lines = [(*row.cells, row.verdict.value) for row in section.rows]
    table = _table(header, lines, numbers=_number_columns(section))
    return "\n\n".join([f"## {section.title}", filled(section.about), table, *map(filled, section.notes)])


def filled(text: str) -> str:
    """A paragraph in lines of 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _number_columns(section: Section) -> set[int]:
    """Columns whose every cell begins with a digit or is empty stand to the right."""
    columns = range(len(section.header))
    return {
        at for at in columns if all(row.cells[at][:1].isdigit() or row.cells[at] in ("", "–") for row in section.rows)
    }


def _table(header: Sequence[str], lines: Iterable[Sequence[str]], *, numbers: set[int]) -> str:
    whole = [header, *lines]
    widths = [max(len(line[at]) for line in whole) for at in range(len(header))]

    def row(cells: Sequence[str]) -> str:
        placed = (
            cell.rjust(width) if at in numbers else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(placed)} |"

    rules = [
        "-" * max(width - 1, 1) + ":" if at in numbers else ":" + "-" * max(width - 1, 2)
        for at, width in enumerate(widths)
    ]
    return "\n".join([row(header), row(rules), *map(row, whole[1:])])


def document(sections: Iterable[Section], *, preface: str) -> str:
    """The whole report."""
    return "\n\n".join([preface, *map(section_text, sections)]) + "\n"
