"""Tables for people: plain text for terminals and `repr`, HTML for notebooks.

Text from data is shown with control and bidirectional characters escaped and no markup interpreted (security.md 3).
"""

from __future__ import annotations

import datetime as dt
import html
import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from omnigraph.escaping import safe_text

if TYPE_CHECKING:
    import pyarrow as pa

NULL = "∅"
_CELL_WIDTH = 80
_FIELD_WIDTH = 1_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


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


def text_fields(head: str, fields: Mapping[str, Any]) -> str:
    """A wire object as aligned `name  value` lines below its head; nulls and empty values are left out."""
    shown = shown_fields(fields)
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join([head, *(f"  {name.ljust(width)}  {value}" for name, value in shown)])


def text_line(head: str, fields: Mapping[str, Any]) -> str:
    """The same in one line, for an item of a list."""
    return f"<{head} {', '.join(f'{name}: {value}' for name, value in shown_fields(fields))}>"


def html_fields(head: str, fields: Mapping[str, Any]) -> str:
    """The same as an HTML table, everything escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in shown_fields(fields)
    )
    return f"<table><caption>{html.escape(head)}</caption><tbody>{rows}</tbody></table>"


def shown_fields(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values as people read them: times of day for microseconds, its id for a commit."""
    return [(name, _field_text(name, value)) for name, value in fields.items() if value not in (None, [], {})]


def _field_text(name: str, value: Any) -> str:
    if isinstance(value, dict) and "graph_commit_id" in value:
        value = cast("dict[str, Any]", value)["graph_commit_id"]
    if name.endswith("_at") and isinstance(value, int):
        value = (_EPOCH + dt.timedelta(microseconds=value)).strftime("%Y-%m-%d %H:%M:%SZ")
    return cell_text(value, _FIELD_WIDTH)


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


def profile_text(profile: Sequence[Mapping[str, Any]]) -> str:
    """The steps of a profile as an indented tree, each with the rows that came out of it, its own time and, of hops, the
    edge rows examined and how they were walked.
    """
    steps = [(row["depth"], row["node"], json.loads(row["detail"])) for row in profile if row["tree"] == "profile"]
    about = [json.loads(row["detail"]) for row in profile if row["tree"] == "physical"]
    heads = [f"{'  ' * depth}{node}{_about(of)}" for (depth, node, _), of in zip(steps, about, strict=True)]
    width = max(map(len, heads))
    return "\n".join(f"{head.ljust(width)}  {_did(did)}" for head, (_, _, did) in zip(heads, steps, strict=True))


def _about(of: Mapping[str, Any]) -> str:
    """What tells a step from others of its kind."""
    if "binding" in of:
        return f" {of['binding']}: {of['type']}"
    if "src" in of:
        return f" {of['src']} → {of['dst']}"
    return f" {of['kind']}" if "kind" in of else ""


def _did(did: Mapping[str, Any]) -> str:
    if not did["ran"]:
        return "did not run"
    rows = "1 row" if did["rows_out"] == 1 else f"{did['rows_out']:,} rows"
    walked = f", {did['examined']:,} edges examined" if did["examined"] else ""
    mode = f", {did['mode']}" if "mode" in did else ""
    return f"{rows}, {did['wall_us'] / 1_000:,.2f} ms{walked}{mode}"
