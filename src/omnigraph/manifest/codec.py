"""Manifests and log segments as bytes, and back.

The bytes are canonical JSON, so equal values give equal bytes. Reading never trusts: an object of a newer format is
FormatMismatch, anything that is not exactly one whole manifest of the branch and version asked for is StorageFailure
of class `corrupt`, with the branch, the version and what can be done. Fields that this program does not know are
passed over: `min_reader` is what says that they matter. Knows no store.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

from omnigraph.errors import FormatMismatch, GraphReplaced, StorageClass, StorageFailure, StoragePhase
from omnigraph.manifest.jsonvalue import (
    JsonObject,
    Malformed,
    as_int,
    as_list,
    as_object,
    as_text,
    canonical,
    canonical_list,
    canonical_object,
    int_pair,
    optional_int,
    optional_text,
    parsed,
)
from omnigraph.manifest.model import (
    Base,
    Commit,
    CreatedFrom,
    Lineage,
    Manifest,
    SegmentRef,
    TablePin,
    TypeEntry,
    content_label,
)
from omnigraph.manifest.records import (
    commit_id_from_text,
    idempotency_from_json,
    idempotency_to_json,
    records_from_json,
    records_to_json,
    window_texts,
)

FORMAT = 1
"""The format that this program writes, the newest that it reads, and the newest that it publishes on top of."""

MIN_READER = 1
"""What a program must know to read what this one writes."""


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal: how manifests and segments are referred to."""
    return hashlib.sha256(data).hexdigest()


def to_bytes(manifest: Manifest) -> bytes:
    """The manifest object. Raises ValueError for values that have no place in it (a lone surrogate, a bad digest)."""
    fields: dict[str, Any] = {
        "format": FORMAT,
        "min_reader": MIN_READER,
        "min_writer": manifest.min_writer,
        "graph": manifest.graph,
        "branch": manifest.branch,
        "version": manifest.version,
        "state": manifest.state,
        "life": manifest.life,
        "commits": records_to_json(manifest.commits, files=True),
        "schema": manifest.schema,
        "types": {type_id: _type_to_json(entry) for type_id, entry in manifest.types.items()},
        "nonce": manifest.nonce,
    }
    if manifest.base is not None:
        fields["base"] = {"version": manifest.base.version, "sha256": manifest.base.sha256}
    if manifest.forked_from is not None:
        fields["forked_from"] = str(manifest.forked_from)
    if manifest.created_from is not None:
        fields["created_from"] = _created_from_to_json(manifest.created_from)
    segments = [_segment_to_json(segment) for segment in manifest.lineage.segments]
    members = {name: canonical(value) for name, value in fields.items()}
    members["lineage"] = canonical_object(
        {"segments": canonical(segments), "window": canonical_list(window_texts(manifest.lineage.window))}
    )
    return canonical_object(members)


def from_bytes(data: bytes, *, branch: str, version: int, graph: str | None = None) -> Manifest:
    """The manifest that must be this version of this branch, of this graph if one is named.

    Raises FormatMismatch if a newer program is needed, StorageFailure (`corrupt`, `read`) if the object is damaged,
    GraphReplaced if it belongs to another graph.
    """
    try:
        fields = parsed(data)
        _check_reader(as_int(fields.get("min_reader"), "min_reader"), branch, version)
        manifest = _manifest_from_json(fields)
    except Malformed as problem:
        raise damaged_version(branch, version, str(problem)) from None
    if (manifest.branch, manifest.version) != (branch, version):
        raise damaged_version(branch, version, "it holds another version")
    if graph is not None and manifest.graph != graph:
        raise graph_replaced(branch)
    return manifest


def branch_in(data: bytes) -> str | None:
    """The branch that a manifest object says it belongs to, unchecked; None if it can't be read."""
    try:
        return as_text(parsed(data).get("branch"), "branch")
    except Malformed:
        return None


def check_writable(manifest: Manifest) -> None:
    """Raises FormatMismatch if publishing on top of this version needs a newer program."""
    if manifest.min_writer > FORMAT:
        raise FormatMismatch(
            f"Branch '{manifest.branch}' was last written by a newer OmniGraph: writing to it needs a program that "
            f"knows format {manifest.min_writer}, this one knows format {FORMAT}. Reading still works. "
            "Upgrade this program to write",
            effects="none",
        )


def segment_to_bytes(records: tuple[Commit, ...]) -> bytes:
    """The object of a run of the log."""
    return canonical({"format": FORMAT, "min_reader": MIN_READER, "records": records_to_json(records, files=False)})


def segment_from_bytes(data: bytes, ref: SegmentRef) -> tuple[Commit, ...]:
    """The records of a segment. Raises as `from_bytes`; the bytes must have the digest that the manifest names."""
    try:
        fields = parsed(data)
        _check_reader(as_int(fields.get("min_reader"), "min_reader"), None, None)
        records = records_from_json(fields.get("records"))
    except Malformed as problem:
        raise damaged_segment(ref, str(problem)) from None
    if digest(data) != ref.sha256 or len(records) != ref.records:
        raise damaged_segment(ref, "its digest is not the one that the manifest names")
    return records


def damaged_version(branch: str, version: int, problem: str) -> StorageFailure:
    """The error for a version whose object can't be used."""
    earlier = (
        "Earlier commits still read by their ids (`--snapshot`), and `branch create NEW --from <commit id>` goes on "
        "from one of them. "
        if version > 1
        else ""
    )
    return StorageFailure(
        f"Version {version} of branch '{branch}' is damaged: {problem}. Nothing was changed. {earlier}"
        "Put the object back from a backup to heal it",
        cls=StorageClass.CORRUPT,
        phase=StoragePhase.READ,
    )


def graph_replaced(branch: str) -> GraphReplaced:
    """The error for a chain that is not the one that was opened, or lacks what was seen in it."""
    return GraphReplaced(
        f"Branch '{branch}' as storage holds it does not belong to the graph that was opened: that one was removed, made "
        "anew at the same address or put back from an older copy. Nothing was changed. Open the graph again"
    )


def damaged_segment(ref: SegmentRef, problem: str) -> StorageFailure:
    """The error for a log segment whose object can't be used."""
    return StorageFailure(
        f"A part of the history ({ref.records} commits, generations {ref.generations[0]} to {ref.generations[1]}) is "
        f"damaged: {problem}. Nothing was changed. Newer commits and all data still read. "
        "Put the object back from a backup to heal it",
        cls=StorageClass.CORRUPT,
        phase=StoragePhase.READ,
    )


def _check_reader(min_reader: int, branch: str | None, version: int | None) -> None:
    if min_reader > FORMAT:
        what = "A part of the history" if branch is None else f"Version {version} of branch '{branch}'"
        raise FormatMismatch(
            f"{what} was written by a newer OmniGraph: reading it needs a program that knows format {min_reader}, "
            f"this one knows format {FORMAT}. Upgrade this program",
            effects="none",
        )


def _manifest_from_json(fields: JsonObject) -> Manifest:
    state = as_text(fields.get("state"), "state")
    if state not in ("active", "deleted"):
        raise Malformed("its state is neither active nor deleted")
    lineage = as_object(fields.get("lineage"), "lineage")
    window = records_from_json(lineage.get("window"))
    if not window:
        raise Malformed("its log is empty")
    forked_from = optional_text(fields.get("forked_from"), "forked_from")
    return Manifest(
        graph=as_text(fields.get("graph"), "graph"),
        branch=as_text(fields.get("branch"), "branch"),
        version=as_int(fields.get("version"), "version"),
        state="active" if state == "active" else "deleted",
        life=as_int(fields.get("life"), "life"),
        base=_base_from_json(as_object(fields["base"], "base")) if "base" in fields else None,
        forked_from=None if forked_from is None else commit_id_from_text(forked_from),
        created_from=_created_from_from_json(fields["created_from"]) if "created_from" in fields else None,
        commits=records_from_json(fields.get("commits")),
        schema=as_text(fields.get("schema"), "schema"),
        types={key: _type_from_json(value) for key, value in as_object(fields.get("types"), "types").items()},
        lineage=Lineage(
            window=window,
            segments=tuple(_segment_from_json(item) for item in as_list(lineage.get("segments"), "segments")),
        ),
        nonce=as_text(fields.get("nonce"), "nonce"),
        min_writer=as_int(fields.get("min_writer"), "min_writer"),
    )


def _base_from_json(value: JsonObject) -> Base:
    return Base(as_int(value.get("version"), "base"), as_text(value.get("sha256"), "base"))


def _created_from_to_json(value: CreatedFrom) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if value.branch is not None:
        fields["branch"] = value.branch
    if value.life is not None:
        fields["life"] = value.life
    if value.idempotency is not None:
        fields["idempotency"] = idempotency_to_json(value.idempotency)
    if value.created_at is not None:
        fields["created_at"] = value.created_at
    return fields


def _created_from_from_json(value: Any) -> CreatedFrom:
    fields = as_object(value, "created_from")
    return CreatedFrom(
        branch=optional_text(fields.get("branch"), "created_from"),
        life=optional_int(fields.get("life"), "created_from"),
        idempotency=idempotency_from_json(fields["idempotency"]) if "idempotency" in fields else None,
        created_at=optional_int(fields.get("created_at"), "created_from"),
    )


def _type_to_json(entry: TypeEntry) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": entry.kind, "name": entry.name}
    if entry.pin is not None:
        # detached versions use the top bit of 64: as text they survive readers that keep numbers as doubles
        fields |= {"path": entry.pin.path, "version": str(entry.pin.version)}
    if entry.content != content_label(entry.pin):
        fields["content"] = entry.content
    if entry.rows:
        fields["rows"] = entry.rows
    if entry.bytes:
        fields["bytes"] = entry.bytes
    if entry.indexes:
        fields["indexes"] = entry.indexes
    return fields


def _type_from_json(value: Any) -> TypeEntry:
    fields = as_object(value, "a type")
    kind = as_text(fields.get("kind"), "the kind of a type")
    if kind not in ("node", "edge"):
        raise Malformed("a type is neither node nor edge")
    pin = _pin_from_json(fields) if "path" in fields else None
    return TypeEntry(
        kind="node" if kind == "node" else "edge",
        name=as_text(fields.get("name"), "the name of a type"),
        pin=pin,
        content=as_text(fields.get("content", content_label(pin)), "a content label"),
        rows=as_int(fields.get("rows", 0), "a number of rows"),
        bytes=as_int(fields.get("bytes", 0), "a number of bytes"),
        indexes=cast(dict[str, Any], as_object(fields.get("indexes", {}), "index coverage")),
    )


def _pin_from_json(fields: JsonObject) -> TablePin:
    version = as_text(fields.get("version"), "a table version")
    if not (version.isascii() and version.isdigit() and len(version) <= 20):
        raise Malformed("a table version is no number")
    return TablePin(as_text(fields.get("path"), "a table folder"), int(version))


def _segment_to_json(segment: SegmentRef) -> dict[str, Any]:
    return {
        "name": segment.name,
        "sha256": segment.sha256,
        "records": segment.records,
        "generations": list(segment.generations),
        "created": list(segment.created),
    }


def _segment_from_json(value: Any) -> SegmentRef:
    fields = as_object(value, "a segment")
    return SegmentRef(
        name=as_text(fields.get("name"), "a segment"),
        sha256=as_text(fields.get("sha256"), "a segment"),
        records=as_int(fields.get("records"), "a segment"),
        generations=int_pair(fields.get("generations"), "a segment"),
        created=int_pair(fields.get("created"), "a segment"),
    )
