"""Search indexes change how fast an answer comes and never which rows are in it (languages.md 12.3, trials.md MT-05, QR-10)."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import StorageFailure
from omnigraph.manifest.model import TablePin
from omnigraph.store.open import open_store
from omnigraph.tables.analysis import TERMS, tokens
from omnigraph.tables.index_build import build_indexes, commit_indexes
from omnigraph.tables.index_plans import SEGMENTS_MAX, Waiting, Wanted
from omnigraph.tables.stage import Committed, PinMoved
from omnigraph.tables.store import TableStore
from omnigraph.tables.sync import sync
from tables.samples import addresses, ids, write

N = 4
PAPERS = pa.schema(
    [
        pa.field("__id", pa.utf8(), nullable=False),
        pa.field("aboutIt", pa.utf8()),
        pa.field("place", pa.list_(pa.float32(), N)),
    ]
)
TEXT, VECTOR = Wanted("aboutIt", "text"), Wanted("place", "vector", N)
TEXTS = (
    "the ship sails",
    "Sailing, sailing! The SHIPS of the sea",
    "the of and",
    "",
    None,
    "Stra\u00dfe \u00dcber na\u00efve",
    "being because very",
    "a-b x\u00b2y \u0939\u093f\u0928\u094d\u0926\u0940",
    "\u65e5\u672c\u8a9e ship 3.14",
    "\u0130stanbul \ufb01ne \u017fhip a_ship ship\u0301",
    "a" * 39 + " " + "b" * 40 + " " + "\u00e9" * 20,
    "\U0001f600ship\u200bsea ship\x00sail",
)
QUERIES = (
    "sail",
    "ship sea",
    "strasse",
    "being",
    "very ship",
    "naive uber",
    "fine istanbul",
    "a" * 39,
    "b" * 40,
    "3",
    "\u65e5\u672c\u8a9e",
)


def papers(names: Iterable[str], texts: Iterable[str | None], places: Iterable[list[float] | None]) -> pa.Table:
    columns = {"__id": list(names), "aboutIt": list(texts), "place": pa.array(list(places), PAPERS.field("place").type)}
    return pa.table(columns, schema=PAPERS)


def of_texts(*texts: str | None, start: int = 0) -> pa.Table:
    return papers([f"p{start + n}" for n in range(len(texts))], texts, [None] * len(texts))


def of_places(places: np.ndarray, start: int = 0, nulls: int = 0) -> pa.Table:
    listed = [None if n < nulls else row for n, row in enumerate(places.tolist())]
    return papers([f"p{start + n}" for n in range(len(places))], [None] * len(places), listed)


def put(
    tables: TableStore,
    pin: TablePin | None,
    rows: pa.Table | None = None,
    *,
    remove: Iterable[int] | None = None,
    overwrite: bool = False,
) -> TablePin:
    return write(tables, pin, rows, remove=remove, overwrite=overwrite, schema=PAPERS).pin


def build(tables: TableStore, pin: TablePin, *wanted: Wanted, full: bool = False) -> Committed:
    staged = build_indexes(tables, pin, wanted or (TEXT,), full=full, vector_bytes_least=0)
    assert staged.built, staged.waiting
    return commit_indexes(tables, staged, pin, label="main@9")


def found(tables: TableStore, pin: TablePin, query: str) -> dict[int, float]:
    rows, scores = tables.open(pin).search_indexes.holding("aboutIt", query)
    assert (rows.dtype, scores.dtype) == (np.uint64, np.float32)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def near(tables: TableStore, pin: TablePin, query: np.ndarray, count: int, probes: int = 0) -> list[int]:
    rows, apart = tables.open(pin).search_indexes.nearest("place", query.astype(np.float32), count, probes)
    assert np.all(apart[1:] >= apart[:-1])
    return rows.tolist()


def stored(tables: TableStore, pin: TablePin, column: str) -> dict[int, object]:
    table = tables.open(pin).read([column], with_row_address=True)
    return dict(zip(table.column("_rowaddr").to_pylist(), table.column(column).to_pylist(), strict=True))


def terms(text: object) -> list[str]:
    return tokens(str(text), TERMS) if text else []


# --- texts

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "remove", "replace", "index", "index", "whole", "overwrite"]),
        st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5),
        st.integers(0, 100),
    ),
    min_size=2,
    max_size=9,
)


@given(steps)
@settings(max_examples=40, deadline=None)
def test_the_rows_that_hold_words_are_the_same_whatever_the_index_covers(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, list[str | None], int]]
) -> None:
    tables = TableStore(open_store(tmp_path_factory.mktemp("history")))
    pin = put(tables, None, of_texts(*TEXTS[:3]))
    named = 3
    for action, texts, pick in history:
        held = sorted(stored(tables, pin, "aboutIt"))
        gone = held[pick % (len(held) + 1) :: 2]
        rows = of_texts(*texts, start=named)
        match action:
            case "append":
                pin = put(tables, pin, rows)
            case "remove" if gone:
                pin = put(tables, pin, remove=gone)
            case "replace" if gone:
                pin = put(tables, pin, rows, remove=gone)
            case "overwrite":
                pin = put(tables, pin, rows, overwrite=True)
            case "index" | "whole":
                staged = build_indexes(tables, pin, [TEXT], full=action == "whole")
                pin = commit_indexes(tables, staged, pin, label="main@2").pin if staged.built else pin
            case _:
                continue
        named += len(texts)
        if not tables.open(pin).search_indexes.usable("aboutIt", "text"):
            continue
        for reader in (tables, TableStore(open_store(tables.location.local_path or ""))):
            live = {row: set(terms(text)) for row, text in stored(reader, pin, "aboutIt").items()}
            for query in (*QUERIES[:4], QUERIES[pick % len(QUERIES)]):
                assert set(found(reader, pin, query)) == {row for row in live if live[row] & set(terms(query))}


def exact(texts: dict[int, object], query: str) -> dict[int, float]:
    """The formula of languages.md 12.3 over all rows that hold a term."""
    held = {row: terms(text) for row, text in texts.items() if terms(text)}
    n, mean = len(held), sum(map(len, held.values())) / max(len(held), 1)
    scores: dict[int, float] = {}
    for term, times in Counter(terms(query)).items():
        holders = [row for row in held if term in held[row]]
        idf = math.log(1 + (n - len(holders) + 0.5) / (len(holders) + 0.5))
        for row in holders:
            f = held[row].count(term)
            part = idf * f * 2.2 / (f + 1.2 * (1 - 0.75 + 0.75 * len(held[row]) / mean))
            scores[row] = scores.get(row, 0.0) + times * part
    return scores


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12),
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6),
    st.sets(st.integers(0, 11)),
)
@settings(max_examples=25, deadline=None)
def test_after_a_full_run_scores_are_those_of_the_formula(
    tmp_path_factory: pytest.TempPathFactory, before: list[str | None], after: list[str | None], gone: set[int]
) -> None:
    tables = TableStore(open_store(tmp_path_factory.mktemp("scores")))
    pin = build(tables, put(tables, None, of_texts(*before))).pin
    pin = put(tables, pin, of_texts(*after, start=50), remove=[row for row in gone if row < len(before)])
    pin = build(tables, pin, full=True).pin
    texts = stored(tables, pin, "aboutIt")
    for query in ("ship sea ship", "sail", "very being 3"):
        assert found(tables, pin, query) == pytest.approx(exact(texts, query), rel=1e-5)


def test_scores_of_a_partly_covered_column_are_about_those_of_the_formula(tables: TableStore) -> None:
    words = ("ship", "sea", "land", "sky", "moon", "sun", "wind")
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(420)]
    pin = build(tables, put(tables, None, of_texts(*texts[:400]))).pin
    pin = put(tables, pin, of_texts(*texts[400:], start=400), remove=range(20))
    wanted = exact(stored(tables, pin, "aboutIt"), "ship moon")
    assert found(tables, pin, "ship moon") == pytest.approx(wanted, rel=0.1)


def test_an_index_keeps_the_rows_and_makes_a_version_of_its_own(any_tables: TableStore) -> None:
    first = write(any_tables, None, of_texts("ship", "sea"), schema=PAPERS)
    built = build(any_tables, first.pin)
    assert built.pin.path == first.pin.path
    assert built.pin.version != first.pin.version
    assert (built.rows, built.bytes) == (first.rows, first.bytes)
    assert ids(any_tables, built.pin) == ["p0", "p1"]
    assert list(found(any_tables, built.pin, "ships")) == [0]
    assert not any_tables.open(first.pin).search_indexes.usable("aboutIt", "text")
    transaction = any_tables.open(built.pin).dataset.read_transaction(built.pin.version)
    assert transaction is not None
    assert transaction.transaction_properties == {"omnigraph.base": "main@9"}


def test_every_file_that_an_index_is_made_of_is_among_those_to_make_safe(tables: TableStore) -> None:
    pin = put(tables, None, of_places(np.eye(N, dtype=np.float32)))
    built = build(tables, pin, TEXT, VECTOR)
    root = Path(tables.location.local_path or "")
    held = {
        os.path.relpath(os.path.join(at, name), root)
        for at, _, names in os.walk(root / pin.path / "_indices")
        for name in names
    }
    assert held
    assert held <= set(built.written)
    assert all((root / each).is_file() for each in built.written)
    sync(tables, [built])


def test_an_index_that_was_built_on_another_version_is_not_committed(tables: TableStore) -> None:
    pin = put(tables, None, of_texts("ship"))
    staged = build_indexes(tables, pin, [TEXT])
    moved = put(tables, pin, of_texts("sea", start=1))
    with pytest.raises(PinMoved):
        commit_indexes(tables, staged, moved, label="main@3")


def test_a_column_that_no_row_has_a_value_of_is_unbuildable_until_the_table_stores_it(tables: TableStore) -> None:
    narrow = PAPERS.remove(2).remove(1)
    pin = write(tables, None, pa.table({"__id": ["a"]}, schema=narrow), schema=narrow).pin
    staged = build_indexes(tables, pin, [TEXT, VECTOR], vector_bytes_least=0)
    assert staged.built == ()
    assert staged.waiting == (Waiting("aboutIt", "unbuildable"), Waiting("place", "unbuildable"))
    pin = put(tables, pin, of_texts("ship"))
    staged = build_indexes(tables, pin, [TEXT, VECTOR], vector_bytes_least=0)
    assert [each.work.wanted for each in staged.built] == [TEXT]
    assert staged.waiting == (Waiting("place", "unbuildable"),)
    pin = commit_indexes(tables, staged, pin, label="main@3").pin
    assert len(found(tables, pin, "ship")) == 1


def test_segments_are_added_and_joined_before_they_are_many(tables: TableStore) -> None:
    pin = put(tables, None, of_texts("ship 0"))
    counts: list[int] = []
    for n in range(1, SEGMENTS_MAX + 4):
        pin = build(tables, pin).pin
        assert len(found(tables, pin, "ships")) == n
        assert list(found(tables, pin, str(n - 1))) == [addresses(tables, pin)[f"p{n - 1}"]]
        counts.append(len(tables.open(pin).search_indexes.described["aboutIt_terms"].segments))
        pin = put(tables, pin, of_texts(f"ship {n}", start=n))
    assert max(counts) == SEGMENTS_MAX
    assert counts[SEGMENTS_MAX] == 4
    pin = build(tables, pin, full=True).pin
    [segment] = tables.open(pin).search_indexes.described["aboutIt_terms"].segments
    assert segment.fragments == set(tables.open(pin).dataset.fragment_ids())
    assert build_indexes(tables, pin, [TEXT], full=True).built == ()


def test_a_full_run_counts_rows_that_are_gone_no_more(tables: TableStore) -> None:
    pin = build(tables, put(tables, None, of_texts("ship", "ship sea", "sea"))).pin
    pin = put(tables, pin, remove=[0])
    assert found(tables, pin, "ship") != pytest.approx(exact(stored(tables, pin, "aboutIt"), "ship"), rel=1e-5)
    pin = build(tables, pin, full=True).pin
    assert found(tables, pin, "ship") == pytest.approx(exact(stored(tables, pin, "aboutIt"), "ship"), rel=1e-5)


def test_an_index_with_other_settings_is_not_used_and_built_anew(tables: TableStore) -> None:
    pin = put(tables, None, of_texts("ships"))
    version = tables.open(pin)
    other = version.dataset.create_index_uncommitted(
        "aboutIt", "INVERTED", name=TEXT.name, fragment_ids=[0], **{**TERMS, "stem": False}
    )
    other = version.dataset.merge_existing_index_segments([other])
    operation = lance.LanceOperation.CreateIndex([other], [])
    made = lance.LanceDataset.commit(version.dataset, operation, read_version=pin.version, detached=True)
    pin = TablePin(pin.path, made.version)
    assert not tables.open(pin).search_indexes.usable("aboutIt", "text")
    pin = build(tables, pin).pin
    assert tables.open(pin).search_indexes.usable("aboutIt", "text")
    assert list(found(tables, pin, "ship")) == [0]


def test_a_part_of_a_version_is_searched_without_the_rest(tables: TableStore) -> None:
    first = put(tables, None, of_texts("ship", "sea"))
    later = write(tables, first, of_texts("ship too", start=2), schema=PAPERS)
    pin = build(tables, later.pin, full=True).pin
    part = TablePin(pin.path, pin.version, later.files)
    assert list(found(tables, part, "ship")) == [0]
    assert len(found(tables, pin, "ship")) == 2


def test_an_index_file_that_is_gone_is_a_typed_failure(tables: TableStore, tmp_path: Path) -> None:
    pin = build(tables, put(tables, None, of_texts("ship"))).pin
    for file in (tmp_path / "root" / pin.path / "_indices").glob("*/*.lance"):
        file.unlink()
    with pytest.raises(StorageFailure):
        found(TableStore(open_store(tmp_path / "root")), pin, "ship")


def test_a_file_that_can_not_be_written_is_a_failure_of_staging(tables: TableStore, tmp_path: Path) -> None:
    pin = put(tables, None, of_texts("ship"))
    (tmp_path / "root" / pin.path / "_indices").write_text("in the way")
    with pytest.raises(StorageFailure) as caught:
        build(tables, pin)
    assert caught.value.phase == "stage"
    assert str(tmp_path) not in str(caught.value)


# --- vectors


def distances(tables: TableStore, pin: TablePin, query: np.ndarray) -> dict[int, float]:
    held = {row: np.array(place, np.float32) for row, place in stored(tables, pin, "place").items() if place}
    return {row: float(np.square(place - query).sum()) for row, place in held.items()}


@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "remove", "replace", "index", "whole"]), st.integers(0, 99)), max_size=7
    )
)
@settings(max_examples=25, deadline=None)
def test_the_nearest_are_found_whatever_the_index_covers(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int]]
) -> None:
    tables = TableStore(open_store(tmp_path_factory.mktemp("history")))
    rng = np.random.default_rng(3)
    pin = put(tables, None, of_places(rng.normal(size=(300, N)), nulls=4))
    pin, named = build(tables, pin, VECTOR).pin, 300
    for action, pick in history:
        held = sorted(stored(tables, pin, "place"))
        gone = held[pick :: pick % 7 + 2]
        rows = of_places(rng.normal(size=(pick + 1, N)), start=named, nulls=pick % 3)
        match action:
            case "append":
                pin = put(tables, pin, rows)
            case "remove" if gone:
                pin = put(tables, pin, remove=gone)
            case "replace" if gone:
                pin = put(tables, pin, rows, remove=gone)
            case "index" | "whole":
                staged = build_indexes(tables, pin, [VECTOR], full=action == "whole", vector_bytes_least=0)
                pin = commit_indexes(tables, staged, pin, label="main@2").pin if staged.built else pin
            case _:
                continue
        named += pick + 1
        for query in (np.zeros(N), rng.normal(size=N)):
            apart = distances(tables, pin, query)
            for count in (1, 7, len(apart) + 5):
                rows = near(tables, pin, query, count)
                assert len(set(rows)) == len(rows)
                assert [apart[row] for row in rows] == pytest.approx(sorted(apart.values())[:count], rel=1e-5)


@pytest.mark.parametrize(("rows", "dimension"), [(70_000, 8), (70_000, 6)])
def test_candidates_of_a_quantised_index_are_compared_by_their_vectors(
    tables: TableStore, rows: int, dimension: int
) -> None:
    rng = np.random.default_rng(11)
    places = rng.normal(size=(rows, dimension)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(places.ravel()), dimension)
    table = pa.table({"__id": pa.array(np.arange(rows)).cast(pa.utf8()), "place": column})
    schema = pa.schema([PAPERS.field("__id"), table.schema.field("place")])
    pin = write(tables, None, table.cast(schema), schema=schema).pin
    staged = build_indexes(tables, pin, [Wanted("place", "vector", dimension)], vector_bytes_least=0)
    pin = commit_indexes(tables, staged, pin, label="main@2").pin
    index = tables.open(pin).search_indexes.described["place_vectors"]
    assert index.sort == ("IVF_PQ" if dimension == 8 else "IVF_SQ")
    query = np.zeros(dimension, np.float32)
    at, apart = tables.open(pin).search_indexes.nearest("place", query, 10, 0)
    true = np.square(places[at.astype(np.int64)]).sum(1)
    assert apart == pytest.approx(true, rel=1e-5)
    best = np.argsort(np.square(places).sum(1))[:10]
    assert len(set(best.tolist()) & set(at.tolist())) >= 5


def test_vectors_of_a_part_of_a_version_are_not_searched_by_an_index(tables: TableStore) -> None:
    first = put(tables, None, of_places(np.eye(N)))
    later = write(tables, first, of_places(np.eye(N), start=9), schema=PAPERS)
    pin = build(tables, later.pin, VECTOR, full=True).pin
    assert tables.open(pin).search_indexes.usable("place", "vector")
    assert not tables.open(TablePin(pin.path, pin.version, later.files)).search_indexes.usable("place", "vector")
