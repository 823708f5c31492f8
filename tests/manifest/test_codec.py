"""Manifests and segments as bytes: nothing is lost, nothing damaged is believed, and a full one stays small."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifest import samples
from manifest.samples import commits, draft, fork, head, manifests, nonce, runs, sha
from omnigraph.errors import FormatMismatch, StorageClass, StorageFailure, StoragePhase
from omnigraph.manifest.builder import next_version
from omnigraph.manifest.codec import (
    check_writable,
    digest,
    from_bytes,
    segment_from_bytes,
    segment_to_bytes,
    to_bytes,
)
from omnigraph.manifest.model import Counts, Idempotency, Manifest, SegmentRef, TablePin, TypeEntry, content_label
from omnigraph.manifest.records import records_from_json, records_to_json

relaxed = settings(suppress_health_check=[HealthCheck.too_slow])


def read(data: bytes, version: int = 2) -> Manifest:
    return from_bytes(data, branch="main", version=version)


def sample() -> bytes:
    return samples.follow(head(samples.first_version()), 1).data


@relaxed
@given(manifests)
def test_a_manifest_comes_back_as_it_was_written(manifest: Manifest) -> None:
    data = to_bytes(manifest)
    assert from_bytes(data, branch=manifest.branch, version=manifest.version) == manifest
    assert to_bytes(from_bytes(data, branch=manifest.branch, version=manifest.version)) == data


@relaxed
@given(runs(files=True))
def test_a_run_of_commits_comes_back_with_files_and_without(run: tuple[samples.Commit, ...]) -> None:
    through_json = json.loads(json.dumps(records_to_json(run, files=True)))
    assert records_from_json(through_json) == run
    bare = records_from_json(json.loads(json.dumps(records_to_json(run, files=False))))
    assert bare == tuple(replace(commit, files={}) for commit in run)


@relaxed
@given(runs(files=False, min_size=1))
def test_a_segment_comes_back_if_its_digest_is_the_one_named(run: tuple[samples.Commit, ...]) -> None:
    data = segment_to_bytes(run)
    ref = SegmentRef("x", digest(data), len(run), (0, 1), (0, 1))
    assert segment_from_bytes(data, ref) == run
    for wrong in (replace(ref, sha256=sha("other")), replace(ref, records=len(run) + 1)):
        with pytest.raises(StorageFailure, match="history") as caught:
            segment_from_bytes(data, wrong)
        assert caught.value.cls is StorageClass.CORRUPT


def test_the_bytes_are_canonical() -> None:
    data = sample()
    value = json.loads(data)
    assert data == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert {"format", "min_reader", "min_writer"} <= value.keys()


def test_what_was_spelled_for_one_version_is_right_in_every_other() -> None:
    """Records of the window are remembered by object; a record's text depends on the one before it, which changes where
    the window is cut, where a branch goes on from another, and in a part of a window.
    """

    def spelled_anew(manifest: Manifest) -> dict[str, object]:
        return {
            **json.loads(to_bytes(manifest))["lineage"],
            "window": records_to_json(manifest.lineage.window, files=False),
        }

    base = head(samples.first_version())
    cuts = 0
    for number in range(1, 400):
        built = samples.follow(base, number)
        cuts += len(built.manifest.lineage.window) < len(base.manifest.lineage.window)
        base = head(built)
        if number % 7 == 0:
            other = head(fork(f"b{number}", base.manifest))
            for manifest in (other.manifest, head(samples.follow(other, 1, 2)).manifest):
                assert json.loads(to_bytes(manifest))["lineage"] == spelled_anew(manifest)
        window = base.manifest.lineage.window
        for part in (window, window[1:], window[:-1], window[len(window) // 2 :]):
            manifest = replace(base.manifest, lineage=replace(base.manifest.lineage, window=part))
            assert json.loads(to_bytes(manifest))["lineage"] == spelled_anew(manifest)
    assert cuts >= 2


def test_a_pinned_version_is_text_so_that_no_reader_rounds_it() -> None:
    base = head(samples.first_version())
    entry = TypeEntry("node", "Port", TablePin("nodes/a-1", 2**63 + 1), content="nodes/a-1@9223372036854775809")
    data = next_version(base, [draft(1)], now_us=0, nonce="n", types={"a": entry}).data
    assert json.loads(data)["types"]["a"]["version"] == "9223372036854775809"
    assert read(data).types["a"] == entry


@pytest.mark.parametrize("field", ["rows", "bytes", "content", "indexes"])
def test_a_type_that_never_held_a_row_takes_no_space_for_what_it_lacks(field: str) -> None:
    entry = TypeEntry("node", "Port", None, content_label(None))
    data = next_version(head(samples.first_version()), [draft(1)], now_us=0, nonce="n", types={"a": entry}).data
    assert field not in json.loads(data)["types"]["a"]


# --- size


def full_graph(types: int = 20) -> Manifest:
    """A served graph: each record has an actor, digests, counts and an inserted id; versions have five digits."""
    built = samples.first_version(now_us=1_764_470_000_000_000)
    entries = {
        f"{number:016x}": TypeEntry(
            kind="node",
            name=f"Measurement{number}",
            pin=TablePin(f"nodes/{number:016x}-01J9ZXQ4T8A2B3C4D5E6F7G8H9", 2**63 + 10**18 + number),
            content=f"nodes/{number:016x}-01J9ZXQ4T8A2B3C4D5E6F7G8H9@{2**63 + 10**18 + 7}",
            rows=262_144 + number,
            bytes=104_857_600 + number,
            indexes={"__id": {"segments": 3, "rows": 262_000}},
        )
        for number in range(types)
    }
    manifest = replace(built.manifest, version=40_000, lineage=built.manifest.lineage)
    base = replace(head(built), manifest=manifest)
    for number in range(1, 320):
        type_id = f"{number % types:016x}"
        commit = draft(
            number * 2**40 + 7,
            actor="alice@example.org",
            counts={type_id: Counts(1, 0, 0)},
            names={type_id: f"node:Measurement{number % types}"},
            touched={type_id: "append"},
            idempotency=Idempotency(sha(f"k{number}"), sha(f"r{number}")),
            affected=(1, 0),
            ids=(f"01J9ZXQ4T8A2B3C4D5E6F7{number:04d}",),
        )
        now = 1_764_470_000_000_000 + number * 1_000_003
        built = next_version(base, [commit], now_us=now, nonce=nonce(number) * 2, types=entries)
        base = head(built)
        if len(base.manifest.lineage.window) == 191:
            return base.manifest
    raise AssertionError("the window never filled")


def test_20_types_and_a_full_window_stay_below_64_kib() -> None:
    manifest = full_graph()
    assert len(manifest.types) == 20
    assert len(manifest.lineage.window) == 191
    assert len(to_bytes(manifest)) < 64 * 1024


def test_a_long_branch_name_is_not_repeated_in_every_record() -> None:
    main = head(samples.first_version())
    name = "review/" + "x" * 190
    base = head(fork(name, main.manifest))
    for number in range(1, 100):
        base = head(samples.follow(base, number))
    assert to_bytes(base.manifest).count(name.encode()) < 10


# --- damage


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"", "it is empty"),
        (lambda data: bytes(len(data)), "zero bytes"),
        (lambda data: b"  \n", "blanks"),
        (lambda data: data[: len(data) // 2], "no complete JSON"),
        (lambda data: data[:-1], "no complete JSON"),
        (lambda data: data + b"}", "no complete JSON"),
        (lambda data: b"\xff" + data, "no UTF-8"),
        (lambda data: b"[1]", "no JSON object"),
        (lambda data: b"{}", "min_reader is no integer"),
        (lambda data: b'{"min_reader":NaN}', "no complete JSON"),
        (lambda data: b'{"a":' * 100_000, "nested|JSON"),
        (lambda data: b"[" * 200_000, "nested|JSON"),
        (lambda data: b'{"min_reader":' + b"9" * 5_000 + b"}", "no complete JSON"),
    ],
)
def test_an_empty_cut_or_foreign_object_is_a_typed_error_with_a_remedy(
    change: Callable[[bytes], bytes], said: str
) -> None:
    with pytest.raises(StorageFailure, match=said) as caught:
        read(change(sample()))
    error = caught.value
    assert (error.cls, error.phase) == (StorageClass.CORRUPT, StoragePhase.READ)
    assert "Version 2 of branch 'main' is damaged" in error.message
    assert "backup" in error.message
    assert "--from <commit id>" in error.message
    assert "__manifest" not in error.message
    assert error.__cause__ is None


def test_the_first_version_has_no_earlier_commit_to_point_at() -> None:
    with pytest.raises(StorageFailure) as caught:
        from_bytes(b"", branch="main", version=1)
    assert "--from" not in caught.value.message
    assert "backup" in caught.value.message


@pytest.mark.parametrize("cut", range(0, 2_000, 37))
def test_a_manifest_cut_anywhere_is_damaged(cut: int) -> None:
    data = sample()
    with pytest.raises(StorageFailure):
        read(data[: min(cut, len(data) - 1)])


@settings(max_examples=300)
@given(st.data())
def test_a_value_of_a_wrong_kind_is_damage_and_never_a_crash(data: st.DataObject) -> None:
    value = json.loads(to_bytes(full_graph_small()))
    place = value
    while True:
        keys = list(range(len(place))) if isinstance(place, list) else sorted(place)
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(
            st.sampled_from([None, True, 1.5, -1, "x", [], {}, [None], {"x": None}, [1, 2, 3, 4, 5, 6]])
        )
        break
    try:
        read(json.dumps(value).encode(), version=value["version"] if isinstance(value["version"], int) else 2)
    except (StorageFailure, FormatMismatch):
        return


def full_graph_small() -> Manifest:
    base = head(samples.first_version())
    origin = samples.Origin(source_branch="r", source_life=1, source_commit="r@1-0", bases=("main@1-0",))
    rich = draft(
        1,
        kind="merge",
        counts={"a": Counts(1, 2, 3)},
        names={"a": "node:Port"},
        touched={"a": "change"},
        origin=origin,
        idempotency=Idempotency(sha("k"), sha("r")),
        affected=(1, 2),
        ids=("x",),
        files={"a": ("f",)},
        message="m",
    )
    entry = TypeEntry("node", "Port", TablePin("nodes/a", 7), content="c", rows=1, indexes={"i": 1})
    branch = head(fork("main", base.manifest, target=samples.NoHead("main", 0.0)))
    built = next_version(branch, [rich, draft(2)], now_us=0, nonce="n", types={"a": entry})
    return built.manifest


@pytest.mark.parametrize(("branch", "version"), [("main", 3), ("other", 2)])
def test_an_object_that_lies_under_another_key_is_damage(branch: str, version: int) -> None:
    with pytest.raises(StorageFailure, match="another version"):
        from_bytes(sample(), branch=branch, version=version)


# --- other generations of the program


def test_a_newer_object_is_refused_with_the_version_it_needs() -> None:
    value = json.loads(sample()) | {"format": 7, "min_reader": 6, "types": "in a form of its own"}
    with pytest.raises(FormatMismatch, match="format 6, this one knows format 1") as caught:
        read(json.dumps(value).encode())
    assert "branch 'main'" in caught.value.message
    assert caught.value.code == "format_mismatch"


def test_a_segment_of_a_newer_format_is_refused_as_such() -> None:
    data = json.dumps({"format": 4, "min_reader": 4, "records": {}}).encode()
    with pytest.raises(FormatMismatch, match="format 4"):
        segment_from_bytes(data, SegmentRef("x", digest(data), 1, (0, 0), (0, 0)))


def test_a_field_of_a_newer_program_that_readers_may_ignore_is_ignored() -> None:
    value = json.loads(sample())
    expected = read(json.dumps(value).encode())
    value |= {"format": 2, "hint": [1]}
    value["lineage"]["window"][0]["z"] = 5
    assert read(json.dumps(value).encode()) == expected


def test_a_version_that_only_newer_programs_may_follow_reads_and_refuses_writes() -> None:
    value = json.loads(sample()) | {"min_writer": 3}
    manifest = read(json.dumps(value).encode())
    with pytest.raises(FormatMismatch, match="knows format 3") as caught:
        check_writable(manifest)
    assert "Reading still works" in caught.value.message
    with pytest.raises(FormatMismatch):
        next_version(head(replace_manifest(manifest)), [draft(9)], now_us=0, nonce="n")


def replace_manifest(manifest: Manifest) -> samples.Built:
    return samples.Built(manifest, to_bytes(manifest))


@given(commits(files=False))
def test_half_a_character_can_not_be_written(commit: samples.Commit) -> None:
    with pytest.raises(ValueError):
        segment_to_bytes((replace(commit, message="\ud800"),))


def test_a_digest_that_is_none_can_not_be_written() -> None:
    with pytest.raises(ValueError, match="64 lower-case"):
        samples.follow(head(samples.first_version()), drafts=[draft(1, idempotency=Idempotency("AB" * 32, "x"))])
