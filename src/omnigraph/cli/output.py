"""Answers as bytes on stdout or in a file: the forms of interfaces.md 12.4. Data goes here, notes go to stderr.

A file is written beside its name and takes it when it is whole. Rows are encoded by the engine, whole columns at a time;
only the forms for people look at single cells, and only at as many as are shown.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from omnigraph.cli import terminal
from omnigraph.cli.controls import Kind, shown_pieces, shown_text
from omnigraph.cli.errors import OutputFailed, UsageRefused
from omnigraph.cli.forms import Form, Listing
from omnigraph.cli.operator_config import Output

if TYPE_CHECKING:
    from omnigraph.engine.result import Result


def chosen_output(asked: Output | None, *, json: bool, standing: Output | None, out: str | None) -> Output:
    """`--json` and `--format`, then the operator's default, then a table for people and lines for programs.

    Raises UsageRefused if `--json` meets another `--format`.
    """
    if json:
        if asked not in (None, "json"):
            raise UsageRefused(f"--json and --format {asked} exclude each other.")
        return "json"
    if asked is not None:
        return asked
    if standing is not None:
        return standing
    return "table" if out is None and terminal.stdout_is_terminal() else "jsonl"


def check_writable(out: str | None) -> None:
    """Raises UsageRefused for a path that no file can take; asked before there is an answer."""
    if out is None or out == "-":
        return
    folder = os.path.dirname(os.path.abspath(out))
    try:
        os.stat(os.path.join(folder, ""))
        kind = os.stat(out).st_mode if os.path.exists(out) else stat.S_IFREG
    except OSError as error:
        raise UsageRefused(f"--out {out}: {error.strerror}.") from None
    if stat.S_ISDIR(kind) or out.endswith(os.sep):
        raise UsageRefused(f"--out {out}: {os.strerror(errno.EISDIR)}.")
    if not stat.S_ISREG(kind):  # a device's name would be taken by a file
        raise UsageRefused(f"--out {out}: this is not a regular file; redirect standard output to it.")
    if not os.access(folder, os.W_OK):
        raise UsageRefused(f"--out {out}: {os.strerror(errno.EACCES)}.")


def emit(pieces: Iterable[bytes], out: str | None, kind: Kind | None = None) -> None:
    """Write to stdout, or whole to a file. `kind` says how a terminal is spared the controls in it (`controls`).

    Raises UsageRefused for a file that can't be made, OutputFailed for one or a stdout that does not take it all.
    """
    if out is None or out == "-":
        _to_stdout(shown_pieces(pieces, kind) if kind is not None and terminal.stdout_is_terminal() else pieces)
    else:
        _to_file(pieces, out)


def _to_stdout(pieces: Iterable[bytes]) -> None:
    if sys.stdout is None:  # so Python starts when it is closed
        raise OutputFailed("Standard output is closed.")
    try:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"Standard output can't be written: {error.strerror}.") from None


def _to_file(pieces: Iterable[bytes], out: str) -> None:
    import tempfile  # loads the random numbers, which few commands need

    folder, name = os.path.split(os.path.abspath(out))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    except OSError as error:
        raise UsageRefused(f"--out {out}: {error.strerror}.") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, out)
    except BaseException as error:  # whatever ended it: no half-written file stays, and the cause goes on
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise OutputFailed(f"--out {out}: {error.strerror}.") from None
        raise


def emit_text(text: str, out: str | None = None) -> None:
    """A text for people, with a line end."""
    _emit_lines(shown_text(text) if out is None and terminal.stdout_is_terminal() else text, out)


def emit_drawn(text: str, out: str | None = None) -> None:
    """A drawn table, with a line end: what is in its cells was escaped before it was coloured. It goes through $PAGER if
    it does not fit the terminal.
    """
    long = out is None and text.count("\n") + 1 >= terminal.height()
    if long and os.environ.get("PAGER") and terminal.stdout_is_terminal():
        import click

        click.echo_via_pager(text + "\n")
        return
    _emit_lines(text, out)


def _emit_lines(text: str, out: str | None) -> None:
    emit([text.encode("utf-8", "backslashreplace") + b"\n"], out)


def emit_json(value: Any, out: str | None = None) -> None:
    """One object as the wire spells it."""
    emit([json_bytes(value), b"\n"], out, "json")


def json_bytes(value: Any) -> bytes:
    """As `engine.answers.json_bytes`, which is not imported here: a command without a graph loads no engine."""
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


# --- reads


def emit_result(result: Result, form: Form) -> None:
    """The answer of a query in any form. Raises UsageRefused for Arrow on a terminal."""
    if form.output in ("table", "kv"):
        from omnigraph.cli.table import result_blocks, result_table

        if form.output == "table":
            emit_drawn(result_table(result, form), form.out)
        else:
            emit_text(result_blocks(result, form), form.out)
        return
    if form.output == "arrow" and form.out in (None, "-") and terminal.stdout_is_terminal():
        raise UsageRefused("--format arrow is not for a terminal: add --out PATH or a pipe.")
    kind: dict[str, Kind] = {"json": "json", "jsonl": "json", "csv": "csv"}
    emit(_encoded(result, form), form.out, kind.get(form.output))


def _encoded(result: Result, form: Form) -> Iterator[bytes]:
    from omnigraph.engine.reading import answers
    from omnigraph.query.encode import Spelling, arrow_stream, csv, ndjson

    spelling = Spelling(int64_as_text=result.int64_as_text)
    match form.output:
        case "json":
            yield from answers.result_json(result, spelling)
            yield b"\n"
        case "arrow":
            yield from arrow_stream(result.table, answers.result_metadata(result))
        case "csv":
            yield from csv(result.table, spelling, neutralize_formulas=form.neutralize_formulas)
        case _:
            if form.meta:
                yield json_bytes(result.head()) + b"\n"
            yield from ndjson(result.table, spelling)


# --- lists


def emit_listing(listing: Listing, form: Form) -> None:
    """Raises UsageRefused for the two forms that only query results have."""
    match form.output:
        case "json":
            emit_json(listing.answer, form.out)
        case "jsonl":
            emit((json_bytes(row) + b"\n" for row in listing.rows), form.out, "json")
        case "table" | "kv":
            from omnigraph.cli.table import listing_blocks, listing_table

            if form.output == "table":
                emit_drawn(listing_table(listing, form), form.out)
            elif listing.rows:
                emit_text(listing_blocks(listing), form.out)
        case _:
            raise UsageRefused(f"--format {form.output} is for query results.")
