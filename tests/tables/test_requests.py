"""What a table operation costs on object storage (storage.md 8, history.md 0.2 and 0.4), counted at a proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.manifest.model import TablePin
from omnigraph.store.open import open_store
from omnigraph.tables.changes import difference
from omnigraph.tables.indexes import build_scalar_index, lookup_ids
from omnigraph.tables.stage import Committed
from omnigraph.tables.store import TableStore
from support.proxy import S3Proxy
from support.seaweed import S3Server
from tables.samples import GROWN_PORTS, at, ports, write


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_server.endpoint) as running:
        yield running


@pytest.fixture
def fresh(s3_root: str, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch):
    """A new process, as far as tables can tell: nothing is open, nothing is remembered."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    return lambda: TableStore(open_store(s3_root))


def verbs(seen) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in seen:
        found[each.verb] = found.get(each.verb, 0) + 1
    return found


def first_rows(tables: TableStore) -> Committed:
    return write(tables, None, ports(*(f"p{n}" for n in range(100))))


def test_an_insert_into_an_open_table_costs_three_puts(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    pin = first_rows(tables).pin
    for step in range(3):
        with proxy.recording() as seen:
            pin = write(tables, pin, ports(f"new{step}")).pin
        assert verbs(seen) == {"PUT": 3}
        assert [each.key.split("/")[-2] for each in seen] == ["data", "_transactions", "_versions"]


def test_an_update_of_one_row_costs_four_puts_also_in_a_fragment_with_deletions(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    pin = first_rows(tables).pin
    for row in range(3):
        with proxy.recording() as seen:
            pin = write(tables, pin, ports(f"p{row}", depth=9), remove=[row]).pin
        assert verbs(seen) == {"PUT": 4}


def test_a_delete_costs_three_puts_and_one_of_a_whole_fragment_two(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    done = write(tables, first_rows(tables).pin, ports("new"))
    with proxy.recording() as seen:
        write(tables, done.pin, remove=[5])
    assert verbs(seen) == {"PUT": 3}
    with proxy.recording() as seen:
        write(tables, done.pin, remove=done.appended)
    assert verbs(seen) == {"PUT": 2}


def test_an_overwrite_costs_three_puts(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    pin = first_rows(tables).pin
    with proxy.recording() as seen:
        write(tables, pin, ports("new"), overwrite=True)
    assert verbs(seen) == {"PUT": 3}


def test_adding_columns_costs_two_puts_more_once(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    pin = first_rows(tables).pin
    with proxy.recording() as seen:
        pin = write(tables, pin, ports("new"), schema=GROWN_PORTS).pin
    assert verbs(seen) == {"PUT": 5}
    with proxy.recording() as seen:
        write(tables, pin, ports("newer"), schema=GROWN_PORTS)
    assert verbs(seen) == {"PUT": 3}


def test_a_committed_version_is_open_without_a_request(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    done = write(tables, first_rows(tables).pin, ports("new"), remove=[0])
    with proxy.recording() as seen:
        version = tables.open(done.pin)
        assert (version.rows, version.bytes > 0, len(version.schema)) == (100, True, 3)
    assert seen == []


def test_a_pinned_version_is_opened_cold_with_a_head_and_a_get_and_then_stays_open(proxy: S3Proxy, fresh) -> None:
    pin = first_rows(fresh()).pin
    tables = fresh()
    with proxy.recording() as seen:
        version = tables.open(pin)
        assert (version.rows, version.bytes > 0) == (100, True)
    assert verbs(seen) == {"HEAD": 1, "GET": 1}
    with proxy.recording() as seen:
        tables.open(TablePin(pin.path, pin.version))
    assert seen == []


def test_the_first_write_of_a_type_makes_its_folder_with_two_lists_and_two_puts(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    with proxy.recording() as seen:
        first_rows(tables)
    assert verbs(seen) == {"LIST": 2, "PUT": 2 + 3}


def test_another_process_reads_the_deletion_file_of_a_fragment_once(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    pin = write(tables, first_rows(tables).pin, remove=[3]).pin
    other = fresh()
    other.open(pin)
    with proxy.recording() as seen:
        pin = write(other, pin, remove=[4]).pin
    assert verbs(seen) == {"GET": 1, "PUT": 3}
    with proxy.recording() as seen:
        write(other, pin, remove=[5])
    assert verbs(seen) == {"PUT": 3}


def test_a_difference_of_one_row_reads_that_row_only(proxy: S3Proxy, fresh) -> None:
    writer = fresh()
    first = first_rows(writer)
    second = write(writer, first.pin, ports("p7", depth=9), remove=[7])
    reader = fresh()
    for pin in (first.pin, second.pin):
        reader.open(pin)
    with proxy.recording() as seen:
        found = difference(reader, first.pin, second.pin, ["__id", "depth"])
    assert (found.removed.tolist(), found.added.column("__id").to_pylist()) == ([7], ["p7"])
    assert set(verbs(seen)) == {"GET"}
    assert not [each for each in seen if each.key.endswith(first.files[0])]


def test_an_id_is_found_in_a_warm_index_without_reading_the_table(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    pin = build_scalar_index(tables, first_rows(tables).pin, "__id", label="main@3").pin
    version = tables.open(pin)
    assert lookup_ids(version, ["p7"]).tolist() == [7]
    with proxy.recording() as seen:
        assert lookup_ids(version, ["p8"]).tolist() == [8]
    assert seen == []


def test_a_point_read_costs_one_request_for_each_column_and_two_more_at_most(proxy: S3Proxy, fresh) -> None:
    tables = fresh()
    version = tables.open(first_rows(tables).pin)
    version.take(at(0), ["name", "depth"])
    with proxy.recording() as seen:
        assert version.take(at(50), ["name", "depth"]).to_pylist() == [{"name": "P50", "depth": 1}]
    assert len(seen) <= 2 + 2
