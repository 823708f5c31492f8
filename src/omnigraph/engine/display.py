"""Tables for people: plain text for terminals and `repr`, HTML for notebooks.

Text from data is shown with control and bidirectional characters escaped and no markup interpreted (security.md 3).
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pyarrow as pa

NULL = "∅"
_CELL_WIDTH = 80
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0, C1 and bidirectional controls."""


def safe_text(text: str) -> str:
    r"""The text with C0, C1 and bidirectional controls spelled as escapes.

    >>> safe_text("a\x1b[31m")
    'a\\x1b[31m'
    """
    return CONTROLS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cell_text(value: Any, width: int = _CELL_WIDTH) -> str:
    """One value as people read it: vectors and long lists shortened, long text cut."""
    if value is None:
        return NULL
    if isinstance(value, list):
        items = cast("list[Any]", value)
        shown = ", ".join(cell_text(item, width) for item in items[:4])
        text = f"[{shown}]" if len(items) <= 4 else f"[{shown}, … ×{len(items)}]"
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        text = "{" + ", ".join(f"{k}: {cell_text(v, width)}" for k, v in fields.items() if v is not None) + "}"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    else:
        text = safe_text(str(value))
    return text if len(text) <= width else text[: width - 1] + "…"


def _is_number(spelling: str) -> bool:
    return spelling.rstrip("?") in {"I32", "I64", "U32", "U64", "F32", "F64"}


def text_table(
    table: pa.Table, types: Sequence[str], *, shown: int, foot: str, width: int | None = None, types_row: bool = True
) -> str:
    """The first `shown` rows with column types under the names; `width` in characters, None for as wide as needed."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, spelling in zip(table.column_names, types, strict=True):
        head = Text(safe_text(name))
        if types_row:
            head.append(f"\n{spelling}", style="dim")
        drawn.add_column(head, justify="right" if _is_number(spelling) else "left", overflow="fold")
    for row in table.slice(0, shown).to_pylist():
        drawn.add_row(*(Text(cell_text(v), style="dim" if v is None else "") for v in row.values()))
    out = io.StringIO()
    console = Console(file=out, width=width or 10_000, color_system=None, legacy_windows=False)
    console.print(drawn)
    lines = [line.rstrip() for line in out.getvalue().rstrip("\n").splitlines()]
    if table.num_rows > shown:
        lines.append(f"… {table.num_rows - shown:,} more")
    return "\n".join([*lines, foot])


def html_table(table: pa.Table, types: Sequence[str], *, shown: int, foot: str) -> str:
    """The same as an HTML table, everything escaped."""
    head = "".join(
        f"<th>{html.escape(safe_text(n))}<br><small>{html.escape(t)}</small></th>"
        for n, t in zip(table.column_names, types, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell_text(v))}</td>" for v in row.values()) + "</tr>"
        for row in table.slice(0, shown).to_pylist()
    )
    more = f"… {table.num_rows - shown:,} more<br>" if table.num_rows > shown else ""
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><small>{more}{html.escape(foot)}</small></p>"
    )
