"""Tables and blocks for people. Text from data is escaped and no markup interpreted (security.md 3).

rich is loaded here and only when something is drawn.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from omnigraph.cli import terminal
from omnigraph.cli.forms import Form, Listing
from omnigraph.engine.display import NULL, cell_text
from omnigraph.escaping import safe_text

if TYPE_CHECKING:
    from omnigraph.engine.result import Result

_NUMBERS = {"I32", "I64", "U32", "U64", "F32", "F64"}
_FREE_WIDTH = 10_000
_GAP = 3  # blanks between two columns
_NARROWEST = 4


def result_table(result: Result, form: Form) -> str:
    """The first rows with column types under the names, fitted to the terminal; the foot says what is not shown."""
    limit = form.table.max_rows or result.table.num_rows
    numeric = [spelling.rstrip("?") in _NUMBERS for spelling in result.types]
    heads = [
        Text.assemble(safe_text(name), ("\n" + spelling, "dim"))
        for name, spelling in zip(result.columns, result.types, strict=True)
    ]
    rows = [list(row.values()) for row in result.table.slice(0, limit).to_pylist()]
    count = "1 row" if len(result) == 1 else f"{len(result):,} rows"
    foot = f"{count} at {safe_text(result.commit_id)}"
    if len(result) > limit:
        foot = f"{limit:,} of {foot}; --format jsonl gives all"
    drawn = _drawn(heads, numeric, rows, form) if heads else ""
    return f"{drawn}\n{foot}".lstrip("\n")


def result_blocks(result: Result, form: Form) -> str:
    """One block a row, `name: value` lines, a blank line between."""
    limit = form.table.max_rows or result.table.num_rows
    blocks = [_block(row, result.columns) for row in result.table.slice(0, limit).to_pylist()]
    if len(result) > limit:
        blocks.append(f"{limit:,} of {len(result):,} rows; --format jsonl gives all")
    return "\n\n".join(blocks) or "no rows"


def listing_table(listing: Listing, form: Form) -> str:
    """The shown fields of each item. Empty for no items."""
    if not listing.rows:
        return "none"
    cells = [[_field(row.get(name), name) for name in listing.shown] for row in listing.rows]
    numeric = [
        all(isinstance(row.get(name), int) for row in listing.rows) and not name.endswith("_at")
        for name in listing.shown
    ]
    return _drawn([Text(name) for name in listing.shown], numeric, cells, form)


def listing_blocks(listing: Listing) -> str:
    return "\n\n".join(_block(row, list(row)) for row in listing.rows)


def fields_text(fields: Mapping[str, Any]) -> str:
    """One object as aligned `name  value` lines; nulls are left out."""
    given = {name: value for name, value in fields.items() if value not in (None, [], {})}
    width = max((len(name) for name in given), default=0)
    return "\n".join(
        f"{name.ljust(width)}  {cell_text(_field(value, name), _FREE_WIDTH)}" for name, value in given.items()
    )


def _field(value: Any, name: str) -> Any:
    """Microseconds of the wire as a time that people read."""
    if name.endswith("_at") and isinstance(value, int):
        from omnigraph.engine.receipts import as_datetime

        return as_datetime(value).strftime("%Y-%m-%d %H:%M:%SZ")
    return value


def _block(row: Mapping[str, Any], names: Sequence[str]) -> str:
    width = max((len(safe_text(name)) for name in names), default=0)
    return "\n".join(
        f"{(safe_text(name) + ':').ljust(width + 1)} {cell_text(_field(row.get(name), name), _FREE_WIDTH)}"
        for name in names
    )


def fitted_widths(natural: Sequence[int], room: int) -> list[int]:
    """The widths that columns get in a room: the widest give way first, none below four.

    >>> fitted_widths([7, 5, 40], 30)
    [7, 5, 18]
    """
    cap = max(natural, default=0)
    while cap > _NARROWEST and sum(min(width, cap) for width in natural) > room:
        cap -= 1
    return [min(width, cap) for width in natural]


def _drawn(heads: Sequence[Text], numeric: Sequence[bool], rows: Sequence[Sequence[Any]], form: Form) -> str:
    wraps = form.table.cell_layout == "wrap"
    to_terminal = form.out is None and terminal.stdout_is_terminal()
    width = terminal.width() if to_terminal else _FREE_WIDTH
    longest = _FREE_WIDTH if wraps else form.table.max_column_width
    cells = [[Text(cell_text(v, longest), style="dim" if v is None else "") for v in row] for row in rows]
    natural = [
        min(max(cell_len(line) for text in column for line in text.plain.split("\n")), form.table.max_column_width)
        for column in zip(heads, *cells, strict=True)
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for head, number, fitted in zip(
        heads, numeric, fitted_widths(natural, width - _GAP * (len(heads) - 1)), strict=True
    ):
        table.add_column(
            head,
            justify="right" if number else "left",
            overflow="fold" if wraps else "ellipsis",
            no_wrap=not wraps,
            width=fitted,
        )
    for row in cells:
        table.add_row(*row)
    colored = form.out is None and terminal.wants_color(form.color, sys.stdout)
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colored,
        color_system="standard" if colored else None,
        no_color=not colored,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip("\n").splitlines())


__all__ = ["NULL", "fields_text", "listing_blocks", "listing_table", "result_blocks", "result_table"]
