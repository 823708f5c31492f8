"""What callers hand in, judged before anything is done with it: a wrong kind of value is an InvalidRequest that says what
was expected, never a TypeError out of the depths. Knows no graph.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from omnigraph.engine.receipts import as_microseconds
from omnigraph.engine.settings import request_settings
from omnigraph.errors import InvalidParams, InvalidRequest, NotAvailable, OmnigraphError
from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.keys import check_branch_name

MESSAGE_BYTES_MAX = 1_024
_PATH_LENGTH_MAX = 4_096

Source = str | PathLike[str]


def source_text(source: Source) -> str:
    """The text of a schema or query: a str as it is, a path read.

    Raises InvalidRequest for a str that names a file, for a file that can't be read, for anything else.
    """
    if isinstance(source, PathLike):
        return _file_text(Path(source))
    _check(source, str, "A source is a text, or a Path to read it from")
    if "\n" not in source and "{" not in source and 0 < len(source) < _PATH_LENGTH_MAX and Path(source).is_file():
        raise InvalidRequest("This text names a file: pass Path(…) to read it.")
    return source


def _file_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path.name} is not UTF-8 text.") from None
    except OSError as error:
        raise InvalidRequest(f"{path.name} can't be read: {error.strerror}.") from None
    except ValueError:
        raise InvalidRequest("The path of the source is no path.") from None


def merged_params(params: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters given as a mapping and by keyword. Raises InvalidRequest for one that is given twice."""
    if params is None:
        return dict(named)
    _check(params, Mapping, "Parameters are a mapping of names to values")
    for name in named:
        if name in params:
            raise InvalidRequest(f"The parameter '{name}' is given twice, in the mapping and by keyword.")
    return {**params, **named}


def refused_keyword(refused: InvalidParams, named: Mapping[str, Any]) -> OmnigraphError:
    """What is said of a keyword that no parameter has the name of, where it is an option that this version lacks."""
    undeclared = getattr(refused.diagnostic, "code", None) == "P004" and "`version`" in refused.message
    if "version" in named and undeclared:
        what = "Reading by `version` is not part of this version of the program: name a commit with `snapshot`."
        return NotAvailable(what, effects=None)
    return refused


def checked_settings(settings: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Raises InvalidRequest (`invalid_setting`)."""
    if settings is not None:
        _check(settings, Mapping, "Settings are a mapping of names to values", code="invalid_setting")
    request_settings(settings)
    return settings or {}


def checked_output(out: object) -> None:
    """Raises InvalidRequest for what is neither a path nor a file that bytes can be written to."""
    if isinstance(out, (str, PathLike)):
        return
    try:
        cast("IO[bytes]", out).write(b"")
    except (AttributeError, TypeError):
        kind = type(out).__name__
        what = "a file opened for text: open it with mode 'wb'" if isinstance(out, io.TextIOBase) else kind
        raise InvalidRequest(f"The output is a path or a binary file, not {what}.") from None
    except (OSError, ValueError):
        raise InvalidRequest("The output can't be written: the file is closed, or open for reading only.") from None


def checked_names(names: object, what: str) -> None:
    """Raises InvalidRequest for what is no collection of texts."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise InvalidRequest(f"`{what}` is a list of names, not {type(names).__name__}.")
    for name in cast("Collection[object]", names):
        _check(name, str, f"`{what}` is a list of names")


def checked_limit(limit: object) -> None:
    """Raises InvalidRequest for what is given and no integer of at least 1."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise InvalidRequest("`limit` is an integer of at least 1.")


def checked_time(moment: dt.datetime | None, name: str) -> int | None:
    """Microseconds. Raises InvalidRequest for what is given and no datetime."""
    if moment is None:
        return None
    _check(moment, dt.datetime, f"`{name}` is a datetime")
    return as_microseconds(moment)


def checked_seconds(wait: object, name: str) -> float:
    """Seconds, none for None. Raises InvalidRequest for what is no span of time."""
    if wait is None:
        return 0.0
    seconds = wait.total_seconds() if isinstance(wait, dt.timedelta) else wait
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds >= 0:
        raise InvalidRequest(f"`{name}` is a number of seconds of at least 0, or a timedelta.")
    return float(seconds)


def checked_progress(progress: object) -> None:
    """Raises InvalidRequest for what is neither a switch nor something to call."""
    if not isinstance(progress, bool) and progress != "auto" and not callable(progress):
        raise InvalidRequest('`progress` is True, False, "auto" or a function.', effects="none")


def checked_message(message: str | None) -> str | None:
    """Raises InvalidRequest for a note that is no Unicode text or above 1,024 bytes."""
    if message is not None and len(text_bytes(message, "A message")) > MESSAGE_BYTES_MAX:
        raise InvalidRequest(f"A message has at most {MESSAGE_BYTES_MAX:,} bytes.")
    return message


def checked_actor(actor: str | None) -> str | None:
    """Raises InvalidRequest for an actor that is no Unicode text: a commit that names one could not be read again."""
    if actor is not None:
        text_bytes(actor, "An actor")
    return actor


def checked_condition(condition: object) -> str | None:
    """The commit id of a condition. Raises InvalidRequest (`condition_misplaced`) for what names no commit: no head can
    ever be it, so that looking again would not help.
    """
    if condition is None:
        return None
    text = str(condition)
    try:
        named = CommitId.parse(text)
        check_branch_name(named.branch)
    except (ValueError, InvalidRequest):
        raise InvalidRequest(
            "A condition is one commit id, such as main@42-7f3c9a0011223344.",
            code="condition_misplaced",
            effects="none",
        ) from None
    return text


def check_text(value: object, name: str, *, code: str | None = None) -> None:
    """Raises InvalidRequest for an argument that is neither a Unicode text nor left out."""
    if value is not None:
        _check(value, str, f"`{name}` is a text", code=code)
        text_bytes(value, f"`{name}`")


def text_bytes(value: object, what: str) -> bytes:
    """The text in UTF-8. Raises InvalidRequest, which begins with `what`, for anything that is no Unicode text."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{what} is a text, not {type(value).__name__}.")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{what} holds half of a surrogate pair, which is no text.") from None


def _kind(value: object) -> str:
    return type(value).__name__


def _check(value: object, kind: type, rule: str, *, code: str | None = None) -> None:
    if not isinstance(value, kind):
        raise InvalidRequest(f"{rule}, not {_kind(value)}.", code=code)
