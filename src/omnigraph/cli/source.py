"""Texts that a command reads: query sources, schema files, parameter files. `-` is standard input."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Any

from omnigraph.cli.errors import UsageRefused
from omnigraph.cli.session import Session
from omnigraph.cli.values import json_object, pairs, typed_params


def read_text(path: str, option: str) -> str:
    """A UTF-8 file without its byte order mark, or standard input for `-`. Raises UsageRefused."""
    return exact_text(path, option).removeprefix("\ufeff")


def exact_text(path: str, option: str) -> str:
    """As `read_text`, with the mark: the places in it are those in the file. Raises UsageRefused."""
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except UnicodeDecodeError:
        raise UsageRefused(f"{option} {path}: this is not UTF-8 text.") from None
    except OSError as error:
        raise UsageRefused(f"{option} {path}: {error.strerror}.") from None


def check_readable(path: str, option: str) -> None:
    """Raises UsageRefused for a file that can't be read. Does not open it: what a pipe holds can be read only once."""
    if path == "-":
        return
    try:
        found = os.stat(path)
    except OSError as error:
        raise UsageRefused(f"{option} {path}: {error.strerror}.") from None
    if stat.S_ISDIR(found.st_mode):
        raise UsageRefused(f"{option} {path}: {os.strerror(errno.EISDIR)}.")
    if not os.access(path, os.R_OK):
        raise UsageRefused(f"{option} {path}: {os.strerror(errno.EACCES)}.")


def named(path: str) -> str:
    return "<stdin>" if path == "-" else path


def schema_text(session: Session, path: str) -> str:
    """The text of --schema; diagnostics will name the file."""
    session.source_name = named(path)
    return read_text(path, "--schema")


def query_text(session: Session, file: str | None, text: str | None, name: str | None) -> str:
    """The source given by --query or -e. Raises UsageRefused if there is not exactly one."""
    if file is not None and text is not None:
        raise UsageRefused("--query and -e exclude each other.")
    if file is not None:
        session.source_name = named(file)
        return read_text(file, "--query")
    if text is not None:
        session.source_name = "<-e>"
        return text
    if name is not None:
        raise UsageRefused(
            "Stored queries are served, which is not part of this version: give the source with --query FILE or -e TEXT.",
            code="not_available",
        )
    raise UsageRefused("Give the source with --query FILE or -e TEXT.")


def query_params(
    source: str, name: str | None, *, file: str | None, text: str | None, single: tuple[str, ...]
) -> dict[str, Any]:
    """All parameters: those of --params-file, then --params over them, then -p over both."""
    params: dict[str, Any] = {}
    if file is not None:
        params |= json_object(read_text(file, "--params-file"), "--params-file")
    if text is not None:
        params |= json_object(text, "--params")
    return params | typed_params(source, name, pairs(single, "-p"))
