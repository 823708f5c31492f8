"""Commit records as JSON: the entries of a manifest's `commits`, of the lineage window and of log segments.

A manifest is rewritten by every commit and carries up to 191 records, so a record is small: one-letter names, nothing
that is a default, and what mostly follows from the record before it (branch, parent, generation) is left out when it
does. A list of records is therefore written and read as a whole, from its first one on.

    i  commit id; `@42-…` = on the branch of the record before it
    p  parents (absent: the record before it)      g  generation (absent: one more than the record before it)
    k  kind (absent: mutation)                     a  actor         t  created_at, µs        m  message
    y  by type id: [name, touch a|c|l|d, inserted, updated, deleted], cut after the last that is needed
    o  origin: b l c source branch, life, commit; s bases; r restored from; i imported from; p proposal; n resolutions
    d  idempotency: key and request, base64        f  affected nodes and edges               s  inserted ids
    x  files by type id (in `commits` only)
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any, cast, get_args

from omnigraph.manifest.ids import CommitId
from omnigraph.manifest.jsonvalue import (
    JsonObject,
    Malformed,
    as_int,
    as_list,
    as_object,
    as_text,
    canonical,
    int_pair,
    optional_int,
    optional_text,
    texts,
)
from omnigraph.manifest.model import Commit, CommitKind, Counts, Idempotency, Origin, Touch

_DEFAULT_KIND: CommitKind = "mutation"
_KINDS = frozenset(get_args(CommitKind))
_TOUCH_CODES: Mapping[Touch, str] = {"append": "a", "change": "c", "layout": "l", "drop": "d"}
_TOUCHES: Mapping[str, Touch] = {code: touch for touch, code in _TOUCH_CODES.items()}
_DIGEST_BYTES = 32


def records_to_json(commits: Iterable[Commit], *, files: bool) -> list[dict[str, Any]]:
    """The list as JSON values; `files` are part of `commits` and no part of the log."""
    result: list[dict[str, Any]] = []
    before: Commit | None = None
    for commit in commits:
        result.append(_record_to_json(commit, before, files=files))
        before = commit
    return result


def window_texts(commits: Sequence[Commit]) -> list[bytes]:
    """The records of a lineage window, each as canonical JSON: what `records_to_json` without files would spell.

    A manifest repeats the window of the one before, so that spelling the records anew would be much of what a commit
    costs: the texts of records that are still the same objects are remembered.
    """
    before: Commit | None = None
    texts: list[bytes] = []
    for commit in commits:
        known = _texts.get(id(commit))  # holds the commit, so its id can't be another's
        if known is None or known[1] is not before:
            known = commit, before, canonical(_record_to_json(commit, before, files=False))
            with _texts_lock:
                _texts[id(commit)] = known
                if len(_texts) > _TEXTS_MAX:
                    for oldest in list(islice(_texts, _TEXTS_MAX // 4)):
                        del _texts[oldest]
        texts.append(known[2])
        before = commit
    return texts


_TEXTS_MAX = 4_096
_texts: dict[int, tuple[Commit, Commit | None, bytes]] = {}
_texts_lock = Lock()


def records_from_json(value: Any) -> tuple[Commit, ...]:
    """The list that `records_to_json` wrote. Raises Malformed."""
    result: list[Commit] = []
    before: Commit | None = None
    for item in as_list(value, "a list of commits"):
        before = _record_from_json(as_object(item, "a commit"), before)
        result.append(before)
    return tuple(result)


def idempotency_to_json(value: Idempotency) -> list[str]:
    """Raises ValueError unless both digests are 64 lower-case hexadecimal digits."""
    return [_packed_digest(value.key), _packed_digest(value.request)]


def idempotency_from_json(value: Any) -> Idempotency:
    parts = texts(value, "an idempotency record")
    if len(parts) != 2:
        raise Malformed("an idempotency record has not two digests")
    return Idempotency(_unpacked_digest(parts[0]), _unpacked_digest(parts[1]))


def commit_id_from_text(text: str) -> CommitId:
    """Raises Malformed."""
    try:
        return CommitId.parse(text)
    except ValueError:
        raise Malformed("a commit id can't be read") from None


def _record_to_json(commit: Commit, before: Commit | None, *, files: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "i": _short_id(commit.id, None if before is None else before.id.branch),
        "t": commit.created_at,
    }
    if before is None or commit.parents != (before.id,):
        record["p"] = [_short_id(parent, commit.id.branch) for parent in commit.parents]
    if before is None or commit.generation != before.generation + 1:
        record["g"] = commit.generation
    if commit.kind != _DEFAULT_KIND:
        record["k"] = commit.kind
    if commit.actor is not None:
        record["a"] = commit.actor
    if commit.message is not None:
        record["m"] = commit.message
    if types := _types_to_json(commit):
        record["y"] = types
    if commit.origin is not None:
        record["o"] = _origin_to_json(commit.origin)
    if commit.idempotency is not None:
        record["d"] = idempotency_to_json(commit.idempotency)
    if commit.affected is not None:
        record["f"] = list(commit.affected)
    if commit.ids:
        record["s"] = list(commit.ids)
    if files and commit.files:
        record["x"] = {type_id: list(names) for type_id, names in commit.files.items()}
    return record


def _record_from_json(record: JsonObject, before: Commit | None) -> Commit:
    commit_id = _full_id(as_text(record.get("i"), "a commit id"), None if before is None else before.id.branch)
    if before is None and ("p" not in record or "g" not in record):
        raise Malformed("the first commit of a list lacks its parents or its generation")
    kind = as_text(record.get("k", _DEFAULT_KIND), "a commit kind")
    if kind not in _KINDS:
        raise Malformed("a commit has a kind that does not exist")
    counts, names, touched = _types_from_json(as_object(record.get("y", {}), "the types of a commit"))
    files = as_object(record.get("x", {}), "the files of a commit")
    return Commit(
        id=commit_id,
        parents=_parents(record, commit_id, before),
        generation=as_int(record["g"], "a generation") if "g" in record else cast(Commit, before).generation + 1,
        kind=cast(CommitKind, kind),
        actor=optional_text(record.get("a"), "an actor"),
        created_at=as_int(record.get("t"), "a time"),
        message=optional_text(record.get("m"), "a message"),
        counts=counts,
        names=names,
        touched=touched,
        origin=_origin_from_json(as_object(record["o"], "an origin")) if "o" in record else None,
        idempotency=idempotency_from_json(record["d"]) if "d" in record else None,
        affected=int_pair(record["f"], "affected counts") if "f" in record else None,
        ids=texts(record["s"], "inserted ids") if "s" in record else (),
        files={type_id: texts(value, "files") for type_id, value in files.items()},
    )


def _parents(record: JsonObject, commit_id: CommitId, before: Commit | None) -> tuple[CommitId, ...]:
    if "p" not in record:
        return (cast(Commit, before).id,)
    return tuple(_full_id(text, commit_id.branch) for text in texts(record["p"], "parents"))


def _short_id(commit_id: CommitId, branch: str | None) -> str:
    return f"@{commit_id.version}-{commit_id.nonce}" if commit_id.branch == branch else str(commit_id)


def _full_id(text: str, branch: str | None) -> CommitId:
    return commit_id_from_text(f"{branch}{text}" if branch is not None and text.startswith("@") else text)


def _types_to_json(commit: Commit) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    for type_id in {**commit.names, **commit.touched, **commit.counts}:
        touch = commit.touched.get(type_id)
        entry: list[Any] = [commit.names.get(type_id), None if touch is None else _TOUCH_CODES[touch]]
        counts = commit.counts.get(type_id)
        if counts is not None:  # a count of zero is kept, its absence too: cut down to the first count at most
            entry += [counts.inserted, counts.updated, counts.deleted]
            while len(entry) > 3 and entry[-1] == 0:
                entry.pop()
        result[type_id] = entry
    return result


def _types_from_json(value: JsonObject) -> tuple[dict[str, Counts], dict[str, str], dict[str, Touch]]:
    counts: dict[str, Counts] = {}
    names: dict[str, str] = {}
    touched: dict[str, Touch] = {}
    for type_id, item in value.items():
        entry = as_list(item, "the type entry of a commit")
        if not 2 <= len(entry) <= 5:
            raise Malformed("the type entry of a commit has a wrong length")
        if entry[0] is not None:
            names[type_id] = as_text(entry[0], "a type name")
        if entry[1] is not None:
            touch = _TOUCHES.get(as_text(entry[1], "a touch"))
            if touch is None:
                raise Malformed("a commit touches a type in a way that does not exist")
            touched[type_id] = touch
        if len(entry) > 2:
            counts[type_id] = Counts(*[as_int(number, "a count") for number in entry[2:]])
    return counts, names, touched


_ORIGIN_TEXTS: Sequence[tuple[str, str]] = (
    ("b", "source_branch"),
    ("c", "source_commit"),
    ("r", "restored_from"),
    ("i", "imported_from"),
    ("p", "proposal"),
)


def _origin_to_json(origin: Origin) -> dict[str, Any]:
    record: dict[str, Any] = {
        short: value for short, name in _ORIGIN_TEXTS if (value := getattr(origin, name)) is not None
    }
    if origin.source_life is not None:
        record["l"] = origin.source_life
    if origin.bases:
        record["s"] = list(origin.bases)
    if origin.resolved is not None:
        record["n"] = origin.resolved
    return record


def _origin_from_json(record: JsonObject) -> Origin:
    named = {name: optional_text(record.get(short), "an origin") for short, name in _ORIGIN_TEXTS}
    return Origin(
        **named,
        source_life=optional_int(record.get("l"), "the life of an origin"),
        bases=texts(record.get("s", []), "merge bases"),
        resolved=optional_int(record.get("n"), "a number of resolutions"),
    )


def _packed_digest(digest: str) -> str:
    if len(digest) != 2 * _DIGEST_BYTES or digest != digest.lower():
        raise ValueError("an idempotency digest is 64 lower-case hexadecimal digits")
    return binascii.b2a_base64(bytes.fromhex(digest), newline=False)[:-1].decode()


def _unpacked_digest(text: str) -> str:
    try:
        raw = binascii.a2b_base64(text + "=", strict_mode=True)
    except ValueError:  # binascii.Error is one
        raise Malformed("a digest can't be read") from None
    if len(raw) != _DIGEST_BYTES:
        raise Malformed("a digest has a wrong length")
    return raw.hex()
